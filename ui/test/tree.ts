// Trees for tests: `["a", 10, [...children]]`.

import type { Figures } from "../src/api/types";
import type { Tree, TreeNode } from "../src/flame/tree";

export type Branch = [name: string, bytes: number, children?: Branch[]];

export function figures(value: number, error = 0): Figures {
  const estimate = { value, error, low: value - error, high: value + error };
  return { bytes: estimate, blocks: { ...estimate, value: value / 10, error: 0 }, samples: value };
}

/** The nodes of branches, each before its children. A name that starts with "other" is put together. */
export function nodesOf(branches: readonly Branch[]): TreeNode[] {
  const nodes: TreeNode[] = [];
  const add = ([name, bytes, children = []]: Branch, parent: number | null, depth: number): void => {
    const own = bytes - children.reduce((sum, child) => sum + child[1], 0);
    const place = nodes.length;
    nodes.push({
      parent,
      depth,
      label: { name },
      kind: name.startsWith("other") ? "other" : "call",
      others: name.startsWith("other") ? 2 : 0,
      total: figures(bytes, 3),
      own: figures(own).bytes,
      details: {
        lifetime: 1,
        promoted: 0,
        heap: { minor: bytes, major: 0, external: 0, native: 0 },
        live_at_half: 0,
        live_at_end: bytes,
      },
    });
    for (const child of children) add(child, place, depth + 1);
  };
  for (const branch of branches) add(branch, null, 0);
  return nodes;
}

export function treeOf(branches: readonly Branch[]): Tree {
  return {
    subject: {
      program: "p",
      duration: 1,
      estimator: "horvitz_thompson",
      is_exact: false,
      tells: { lifetimes: true, promotions: true, gc_parameters: true, lanes: true, sizes: true },
      word_bytes: 8,
      bytes_per_sample: 100,
      sampled_blocks: 1,
      lost_allocations: 0,
      flaws: 0,
    },
    by: "function",
    direction: "top_down",
    total: figures(branches.reduce((sum, branch) => sum + branch[1], 0)),
    focus: [],
    focus_total: null,
    nodes: nodesOf(branches),
    callers: [],
  };
}

/** The nodes as text: `a 10 (b 4, c 6)`. */
export function shape(nodes: readonly TreeNode[]): string {
  const children = (parent: number | null): string =>
    nodes
      .map((node, i) => ({ node, i }))
      .filter(({ node }) => node.parent === parent)
      .map(({ node, i }) => {
        const below = children(i);
        return `${node.label.name} ${node.total.bytes.value}${below === "" ? "" : ` (${below})`}`;
      })
      .join(", ");
  return children(null);
}
