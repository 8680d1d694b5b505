// Searching in a flame graph.

import type { Figures, Label } from "../api/types";
import type { TreeNode } from "./tree";

/** True if a name matches the search text: a substring in any case, or `/a regular expression/`. */
export function matcher(text: string): ((label: Label) => boolean) | null {
  const wanted = text.trim();
  if (wanted === "") return null;
  const regex = /^\/(.+?)\/?$/.exec(wanted);
  if (regex) {
    try {
      const compiled = new RegExp(regex[1] as string, "i");
      return (label) => compiled.test(label.name) || compiled.test(label.place ?? "");
    } catch {
      // An incomplete regular expression is searched for literally.
    }
  }
  const lower = wanted.toLowerCase();
  return (label) => label.name.toLowerCase().includes(lower) || (label.place ?? "").toLowerCase().includes(lower);
}

/** The matches that are not inside of others, largest first. */
export function outermost(nodes: readonly TreeNode[], { isMatch }: Found): number[] {
  const isInside = new Uint8Array(nodes.length);
  const found: number[] = [];
  nodes.forEach((node, i) => {
    const { parent } = node;
    if (parent !== null && (isMatch[parent] === 1 || isInside[parent] === 1)) isInside[i] = 1;
    else if (isMatch[i] === 1) found.push(i);
  });
  const size = (i: number) => (nodes[i] as TreeNode).total.bytes.value;
  return found.sort((a, b) => size(b) - size(a));
}

export interface Found {
  /** 1 for each node that matches. */
  isMatch: Uint8Array;
  nodes: number;
  bytes: number;
  blocks: number;
}

/** The matches and their total: memory inside several matches counts once. */
export function find(nodes: readonly TreeNode[], matches: (label: Label) => boolean): Found {
  const isMatch = new Uint8Array(nodes.length);
  const isInside = new Uint8Array(nodes.length);
  const found = { isMatch, nodes: 0, bytes: 0, blocks: 0 };
  nodes.forEach((node, i) => {
    const parentInside = node.parent !== null && isInside[node.parent] === 1;
    if (parentInside) isInside[i] = 1;
    if (node.kind === "other" || !matches(node.label)) return;
    isMatch[i] = 1;
    isInside[i] = 1;
    found.nodes += 1;
    if (!parentInside) add(found, node.total);
  });
  return found;
}

function add(found: { bytes: number; blocks: number }, figures: Figures): void {
  found.bytes += figures.bytes.value;
  found.blocks += figures.blocks.value;
}
