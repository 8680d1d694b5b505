// The dominator tree as nodes that the flame graph and the tree table draw.

import type { DominatorNode, DominatorTree, Estimate, Figures, HeapAmount } from "../api/types";
import type { DrawnTree } from "../flame/picture";
import { NO_DETAILS } from "../flame/transform";

/** The figures of snapshots are exact. */
function exact(value: number): Estimate {
  return { value, error: 0, low: value, high: value };
}

export function figures({ bytes, blocks }: HeapAmount): Figures {
  return { bytes: exact(bytes), blocks: exact(blocks), samples: blocks };
}

export function drawnTree(tree: DominatorTree): DrawnTree {
  return {
    nodes: tree.nodes.map((node) => ({
      parent: node.parent,
      depth: node.depth,
      label: { name: node.name, ...(node.place ? { place: node.place } : {}), module: colourGroup(node) },
      kind: node.kind === null ? "other" : "call",
      others: node.kind === null ? node.values : 0,
      total: figures(node.retained),
      own: exact(node.own.bytes),
      details: NO_DETAILS,
    })),
    callers: [],
    focus: [],
    focus_total: null,
    total: figures(tree.subject.total),
    subject: { duration: 0 },
  };
}

/** Nodes of a group have the same hue: definitions of a module, and values of a kind. */
function colourGroup({ kind, name }: DominatorNode): string {
  if (kind === "module") return name.replace(/^module /, "");
  if (kind === "definition") return name.replace(/(\.[^.]*| field \d+)$/, "");
  return kind ?? "";
}

/** The names on the way from the root to a node, without those that explain nothing, as `heapline retained --at` takes it. */
export function pathOf(nodes: readonly DominatorNode[], index: number): string {
  const names: string[] = [];
  for (let i: number | null = index; i !== null; i = nodes[i]?.parent ?? null) {
    const { kind, name } = nodes[i] as DominatorNode;
    names.push(name);
    // A path may begin at a definition or a module.
    if (kind === "definition" || kind === "module") break;
  }
  return names.reverse().join(" > ");
}
