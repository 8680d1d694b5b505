// Converts columns of nodes to nodes.

import type { Estimate, Flame, Label, NodeColumns } from "../api/types";
import type { Tree, TreeNode } from "./tree";

const KINDS = ["call", "site", "other"] as const;

/** The tree of an answer. */
export function treeOf(flame: Flame): Tree {
  const hasMinorHeap = flame.subject.tells.promotions;
  const nodes = (columns: NodeColumns) => nodesOf(columns, flame.labels, hasMinorHeap);
  return { ...flame, nodes: nodes(flame.nodes), callers: nodes(flame.callers) };
}

function nodesOf(columns: NodeColumns, labels: readonly Label[], hasMinorHeap: boolean): TreeNode[] {
  const nodes: TreeNode[] = [];
  const at = (column: readonly number[] | undefined, i: number) => column?.[i] ?? 0;
  for (let i = 0; i < columns.parent.length; i++) {
    const parent = columns.parent[i] as number;
    const others = at(columns.others, i);
    const bytes = at(columns.bytes, i);
    const lifetime = at(columns.lifetime, i);
    const [major, external] = [at(columns.major, i), at(columns.external, i)];
    const rest = Math.max(0, bytes - major - external);
    nodes.push({
      parent: parent < 0 ? null : parent,
      depth: parent < 0 ? 0 : (nodes[parent] as TreeNode).depth + 1,
      label: labels[columns.label[i] as number] ?? { name: `other (${others})` },
      kind: KINDS[columns.kind[i] as number] ?? "call",
      others,
      total: {
        bytes: estimate(bytes, at(columns.error, i)),
        // Null if the source does not tell.
        blocks: estimate(columns.blocks[i] ?? Number.NaN, at(columns.blocks_error, i)),
        samples: at(columns.samples, i),
      },
      own: estimate(at(columns.own, i), at(columns.own_error, i)),
      details: {
        lifetime: lifetime < 0 ? null : lifetime,
        promoted: at(columns.promoted, i),
        heap: { minor: hasMinorHeap ? rest : 0, major, external, native: hasMinorHeap ? 0 : rest },
        live_at_half: at(columns.at_half, i),
        live_at_end: at(columns.at_end, i),
      },
    });
  }
  return nodes;
}

function estimate(value: number, error: number): Estimate {
  return { value, error, low: Math.max(0, value - error), high: value + error };
}
