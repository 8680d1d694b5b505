// The layout of a flame graph: flat arrays, no recursion, because OCaml stacks are thousands of frames deep and a hundred
// thousand boxes must be laid out without a noticeable delay.

import type { TreeNode } from "./tree";

export type Unit = "bytes" | "blocks";
export type Order = "size" | "name";

export interface Layout {
  nodes: readonly TreeNode[];
  /** Left and right edges of each node, in shares of the total width. */
  left: Float64Array;
  right: Float64Array;
  /** The index of each node's parent, or -1. */
  parent: Int32Array;
  /** The nodes of each depth from left to right. */
  rows: Int32Array[];
}

/** Lays out a tree. `nodes` is in preorder; `total` spans the whole width. */
export function layOut(nodes: readonly TreeNode[], total: number, unit: Unit, order: Order): Layout {
  const n = nodes.length;
  const left = new Float64Array(n);
  const right = new Float64Array(n);
  const parent = new Int32Array(n);
  const counts: number[] = [];
  nodes.forEach((node, i) => {
    parent[i] = node.parent ?? -1;
    counts[node.depth] = (counts[node.depth] ?? 0) + 1;
  });
  const rows = counts.map((count) => new Int32Array(count));
  const filled = counts.map(() => 0);
  // The position of the next child of each node; of the roots in the last element.
  const next = new Float64Array(n + 1);
  const inOrder = order === "size" ? null : byName(nodes, parent);
  for (let k = 0; k < n; k++) {
    const i = inOrder ? (inOrder[k] as number) : k;
    const node = nodes[i] as TreeNode;
    const above = parent[i] as number;
    const slot = above < 0 ? n : above;
    const start = next[slot] as number;
    const width = total > 0 ? node.total[unit].value / total : 0;
    left[i] = start;
    right[i] = start + width;
    next[slot] = start + width;
    next[i] = start;
    const row = rows[node.depth] as Int32Array;
    row[(filled[node.depth] as number)++] = i;
  }
  return { nodes, left, right, parent, rows };
}

/** The nodes in preorder, siblings sorted by name; merged "other" nodes are last. */
function byName(nodes: readonly TreeNode[], parent: Int32Array): Int32Array {
  const children = new Map<number, number[]>();
  for (let i = 0; i < nodes.length; i++) {
    const siblings = children.get(parent[i] as number);
    if (siblings) siblings.push(i);
    else children.set(parent[i] as number, [i]);
  }
  const name = (i: number) => (nodes[i] as TreeNode).label.name;
  const isOther = (i: number) => ((nodes[i] as TreeNode).kind === "other" ? 1 : 0);
  const descending = (a: number, b: number) => isOther(b) - isOther(a) || (name(a) < name(b) ? 1 : -1);
  const out = new Int32Array(nodes.length);
  const stack = (children.get(-1) ?? []).sort(descending);
  for (let k = 0; stack.length > 0; k++) {
    const i = stack.pop() as number;
    out[k] = i;
    const below = children.get(i);
    if (below) stack.push(...below.sort(descending));
  }
  return out;
}

/** The index in a row of the first node that ends right of `x`. */
export function firstRightOf(layout: Layout, row: Int32Array, x: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((layout.right[row[middle] as number] as number) > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The node at a depth and a share of the width, or -1. */
export function nodeAt(layout: Layout, depth: number, x: number): number {
  const row = layout.rows[depth];
  if (!row) return -1;
  const i = row[firstRightOf(layout, row, x)];
  return i !== undefined && (layout.left[i] as number) <= x ? i : -1;
}

/** The path from the root to a node, both included. */
export function pathTo(layout: Layout, node: number): number[] {
  const path: number[] = [];
  for (let i = node; i >= 0; i = layout.parent[i] as number) path.push(i);
  return path.reverse();
}

/**
 * A short name for each node that is the same for the same path in other trees, so that the URL can identify the zoomed
 * node.
 */
export function pathNames(nodes: readonly TreeNode[]): string[] {
  const hashes = new Uint32Array(nodes.length);
  return nodes.map((node, i) => {
    let hash = node.parent === null ? 0x811c9dc5 : (hashes[node.parent] as number);
    const text = `${node.kind}\0${node.label.name}\0${node.label.place ?? ""}`;
    for (let k = 0; k < text.length; k++) hash = Math.imul(hash ^ text.charCodeAt(k), 0x01000193);
    hashes[i] = hash;
    return (hash >>> 0).toString(36);
  });
}

/** The nearest node in a direction, for the arrow keys; -1 if there is none. */
export function neighbour(layout: Layout, node: number, way: "parent" | "child" | "left" | "right"): number {
  if (way === "parent") return layout.parent[node] as number;
  const depth = (layout.nodes[node] as TreeNode).depth;
  if (way === "child") {
    const row = layout.rows[depth + 1];
    if (!row) return -1;
    // The largest: if siblings are sorted by name, it is not the first.
    let best = -1;
    for (let k = firstRightOf(layout, row, layout.left[node] as number); k < row.length; k++) {
      const child = row[k] as number;
      if (layout.parent[child] !== node) break;
      if (best < 0 || width(layout, child) > width(layout, best)) best = child;
    }
    return best;
  }
  const row = layout.rows[depth] as Int32Array;
  const place = row.indexOf(node);
  return row[way === "left" ? place - 1 : place + 1] ?? -1;
}

function width(layout: Layout, node: number): number {
  return (layout.right[node] as number) - (layout.left[node] as number);
}
