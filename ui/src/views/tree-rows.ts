// The visible rows of a tree, given the expanded nodes.

import type { TreeNode } from "../flame/tree";

export interface TreeRow {
  node: number;
  depth: number;
  hasChildren: boolean;
  isOpen: boolean;
}

/** The rows from top to bottom. `nodes` has each node before its children. */
export function visibleRows(
  nodes: readonly TreeNode[],
  open: ReadonlySet<string>,
  names: readonly string[],
): TreeRow[] {
  const hasChildren = new Uint8Array(nodes.length);
  for (const node of nodes) if (node.parent !== null) hasChildren[node.parent] = 1;
  const isShown = new Uint8Array(nodes.length);
  const rows: TreeRow[] = [];
  nodes.forEach((node, i) => {
    const parent = node.parent;
    if (parent !== null && (isShown[parent] === 0 || !open.has(names[parent] as string))) return;
    isShown[i] = 1;
    rows.push({ node: i, depth: node.depth, hasChildren: hasChildren[i] === 1, isOpen: open.has(names[i] as string) });
  });
  return rows;
}

/** The nodes to expand with a node: also its only children, so that one click shows the next branch. */
export function opening(nodes: readonly TreeNode[], node: number, names: readonly string[]): string[] {
  const opened: string[] = [];
  let at = node;
  for (;;) {
    opened.push(names[at] as string);
    const children: number[] = [];
    for (let i = at + 1; i < nodes.length && (nodes[i] as TreeNode).depth > (nodes[at] as TreeNode).depth; i++) {
      if ((nodes[i] as TreeNode).parent === at) children.push(i);
    }
    if (children.length !== 1) return opened;
    at = children[0] as number;
  }
}

/** The nodes to expand so that all matches are visible. */
export function leadingTo(
  nodes: readonly TreeNode[],
  matches: (node: TreeNode) => boolean,
  names: readonly string[],
): string[] {
  const opened = new Set<string>();
  for (const node of nodes) {
    if (!matches(node)) continue;
    for (let i = node.parent; i !== null; i = (nodes[i] as TreeNode).parent) {
      if (opened.has(names[i] as string)) break;
      opened.add(names[i] as string);
    }
  }
  return [...opened];
}

/** All rows are open, or none: as in the URL. */
export const ALL_OPEN = "*";
export const NONE_OPEN = "-";

/**
 * The names of the expanded nodes, from the URL. If it has none of this tree, the largest branch is expanded: a collapsed
 * tree shows little.
 */
export function openRows(text: string, nodes: readonly TreeNode[], names: readonly string[]): ReadonlySet<string> {
  if (text === ALL_OPEN) return new Set(names);
  if (text === NONE_OPEN) return new Set();
  const chosen = new Set(text.split("."));
  if (names.some((name) => chosen.has(name))) return chosen;
  return new Set(nodes.length > 0 ? opening(nodes, 0, names) : []);
}

/** The text of expanded nodes for the URL. */
export function openText(open: ReadonlySet<string>): string {
  return open.size === 0 ? NONE_OPEN : [...open].join(".");
}
