// What a flame graph consists of: one tree, or with a focus two with the focus between them.

import type { Figures } from "../api/types";
import type { Tree, TreeNode } from "./tree";
import { colourNumbers } from "./colours";
import { type Band, ROW } from "./draw";
import { layOut, type Layout, type Order, pathNames, type Unit } from "./layout";
import { find, type Found, matcher } from "./search";
import type { State } from "../state/state";

/** What the names of callers begin with, in the address. */
const CALLERS = "c.";

export interface Part {
  layout: Layout;
  names: string[];
  colours: Uint8Array;
  isUp: boolean;
  /** Where its row 0 begins, counted in rows from the top. */
  baseRow: number;
}

export interface Picture {
  parts: Part[];
  rows: number;
  /** What is as wide as the picture. */
  total: Figures;
  /** The boxes that are as wide as the picture, and their row: everything, or the functions in focus. */
  bar: { row: number; texts: string[] };
}

export interface Choices {
  unit: Unit;
  order: Order;
  colour: State["colour"];
  shape: State["shape"];
}

/** Puts a tree into a picture. */
export function picture(tree: Tree, choices: Choices, barText: string): Picture {
  const total = tree.focus_total ?? tree.total;
  const part = (nodes: readonly TreeNode[]): Omit<Part, "isUp" | "baseRow"> => ({
    layout: layOut(nodes, total[choices.unit].value, choices.unit, choices.order),
    names: pathNames(nodes),
    colours: colourNumbers(nodes, choices.colour, tree.subject.duration),
  });
  const main = part(tree.nodes);
  const depth = main.layout.rows.length;
  if (tree.focus.length > 0) {
    const callers = part(tree.callers);
    const above = callers.layout.rows.length;
    const bars = tree.focus.length;
    return {
      parts: [
        { ...main, isUp: false, baseRow: above + bars },
        { ...callers, isUp: true, baseRow: above },
      ],
      rows: above + bars + depth,
      total,
      // The answer has them in quotes.
      bar: { row: above, texts: tree.focus.map((text) => text.replace(/^"(.*)"$/s, "$1")) },
    };
  }
  const isFlame = choices.shape === "flame";
  return {
    parts: [{ ...main, isUp: isFlame, baseRow: isFlame ? depth : 1 }],
    rows: depth + 1,
    total,
    bar: { row: isFlame ? depth : 0, texts: [barText] },
  };
}

/** What a search finds in all parts; callers do not count, because what is inside them is not all in focus. */
export function search(picture: Picture, text: string): { found: (Found | null)[]; shown: Found | null } {
  const matches = matcher(text);
  if (!matches) return { found: picture.parts.map(() => null), shown: null };
  const found = picture.parts.map((part) => find(part.layout.nodes, matches));
  return { found, shown: found[0] ?? null };
}

/** The band of a part: `zoomed` is the node that is as wide as the picture, or -1. */
export function bandOf(part: Part, found: Found | null, zoomed: number, top: number): Band {
  return {
    layout: part.layout,
    colours: part.colours,
    matches: found?.isMatch ?? null,
    base: top + part.baseRow * ROW,
    isUp: part.isUp,
    from: zoomed >= 0 ? (part.layout.left[zoomed] as number) : 0,
    to: zoomed >= 0 ? (part.layout.right[zoomed] as number) : 1,
  };
}

/** The part and node that a name in the address means. */
export function locate(picture: Picture, name: string): { part: number; node: number } | null {
  if (name === "") return null;
  const part = name.startsWith(CALLERS) ? 1 : 0;
  const node = picture.parts[part]?.names.indexOf(part === 1 ? name.slice(CALLERS.length) : name) ?? -1;
  return node >= 0 ? { part, node } : null;
}

/** The name of a node for the address. */
export function nameOf(picture: Picture, part: number, node: number): string {
  const name = picture.parts[part]?.names[node] ?? "";
  return part === 0 ? name : CALLERS + name;
}
