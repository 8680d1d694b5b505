// A comparison of call trees as nodes that the flame graph draws.

import type { ChangeColumns, Estimate, NamedDiffTree } from "../api/types";
import { NO_DETAILS } from "./transform";
import type { DrawnTree } from "./picture";
import type { NodeChange, TreeNode } from "./tree";

/** The side that the width of boxes shows. */
export type Side = "before" | "after";

/** A node of a comparison. */
type ChangedNode = TreeNode & { change: NodeChange };

/** The nodes of a comparison: the width of a box is one side of it. */
export function changedTree(diff: NamedDiffTree, side: Side): DrawnTree & { nodes: ChangedNode[] } {
  const nodes: ChangedNode[] = [];
  const { nodes: columns, labels, total } = diff;
  for (let i = 0; i < columns.parent.length; i++) {
    const parent = columns.parent[i] as number;
    const others = columns.others[i] as number;
    const change = changeOf(columns, i);
    nodes.push({
      parent: parent < 0 ? null : parent,
      depth: parent < 0 ? 0 : (nodes[parent] as TreeNode).depth + 1,
      label: labels[columns.label[i] as number] ?? { name: `other (${others})` },
      kind: others > 0 ? "other" : "call",
      others,
      total: { bytes: change[side], blocks: UNTOLD, samples: change.samples[side === "before" ? 0 : 1] },
      own: UNTOLD,
      details: NO_DETAILS,
      change,
    });
  }
  return { nodes, callers: [], focus: [], focus_total: null, total: total[side], subject: diff[side] };
}

/** Comparisons as trees are about bytes. */
const UNTOLD: Estimate = { value: Number.NaN, error: 0, low: 0, high: 0 };

function changeOf(columns: ChangeColumns, i: number): NodeChange {
  const at = (column: readonly number[]) => column[i] as number;
  const estimate = (value: number, error: number): Estimate => ({
    value,
    error,
    low: Math.max(0, value - error),
    high: value + error,
  });
  const [value, error] = [at(columns.change), at(columns.change_error)];
  return {
    before: estimate(at(columns.before), at(columns.before_error)),
    after: estimate(at(columns.after), at(columns.after_error)),
    change: { value, error, low: value - error, high: value + error },
    samples: [at(columns.before_samples), at(columns.after_samples)],
    p: at(columns.p_value),
    isReal: columns.is_real[i] as boolean,
  };
}

/** The nodes that are on the other side only, and so have no width; without those below them, largest first. */
export function missing(nodes: readonly ChangedNode[], side: Side): number[] {
  const isMissing = (node: ChangedNode | undefined) => {
    if (!node) return false;
    const [before, after] = node.change.samples;
    return side === "after" ? after === 0 && before > 0 : before === 0 && after > 0;
  };
  const found: number[] = [];
  nodes.forEach((node, i) => {
    const isOutermost = node.parent === null || !isMissing(nodes[node.parent]);
    if (isOutermost && node.kind !== "other" && isMissing(node)) found.push(i);
  });
  const size = (i: number) => Math.abs((nodes[i] as ChangedNode).change.change.value);
  return found.sort((a, b) => size(b) - size(a));
}
