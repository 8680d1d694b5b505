// Searching in a flame graph.

import type { Figures, Label } from "../api/types";
import type { TreeNode } from "./tree";

/** Whether a name is meant by what was typed: a part of it in any case, or `/a regular expression/`. */
export function matcher(text: string): ((label: Label) => boolean) | null {
  const wanted = text.trim();
  if (wanted === "") return null;
  const regex = /^\/(.+?)\/?$/.exec(wanted);
  if (regex) {
    try {
      const compiled = new RegExp(regex[1] as string, "i");
      return (label) => compiled.test(label.name) || compiled.test(label.place ?? "");
    } catch {
      // Still being typed; until it is one, it is looked for as it stands.
    }
  }
  const lower = wanted.toLowerCase();
  return (label) => label.name.toLowerCase().includes(lower) || (label.place ?? "").toLowerCase().includes(lower);
}

export interface Found {
  /** 1 for each node that matches. */
  isMatch: Uint8Array;
  nodes: number;
  bytes: number;
  blocks: number;
}

/** What matches, and how much that is: what is inside of several matches counts once. */
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
