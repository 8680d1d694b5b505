// The trees of a flame graph: one, or with a focus two with the focus between them.

import type { Figures } from "../api/types";
import type { Tree, TreeNode } from "./tree";
import { colourNumbers } from "./colours";
import { type Band, ROW } from "./draw";
import { layOut, type Layout, type Order, pathNames, type Unit } from "./layout";
import { find, type Found, matcher } from "./search";
import type { State } from "../state/state";

/** The prefix of names of callers in the URL. */
const CALLERS = "c.";

export interface Part {
  layout: Layout;
  names: string[];
  colours: Uint8Array;
  isUp: boolean;
  /** The position of its row 0, counted in rows from the top. */
  baseRow: number;
}

export interface Picture {
  parts: Part[];
  rows: number;
  /** The total that spans the whole width. */
  total: Figures;
  /** The boxes that span the whole width, and their row: everything, or the functions in focus. */
  bar: { row: number; texts: string[] };
}

export interface Choices {
  unit: Unit;
  order: Order;
  colour: State["colour"];
  shape: State["shape"];
}

/** The parts of a tree that are drawn. */
export type DrawnTree = Pick<Tree, "nodes" | "callers" | "focus" | "focus_total" | "total"> & {
  subject: Pick<Tree["subject"], "duration">;
};

/** Adds a tree to a flame graph. */
export function picture(tree: DrawnTree, choices: Choices, barText: string): Picture {
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

/** Search matches in all parts; callers do not count, because not all of their memory is in focus. */
export function search(picture: Picture, text: string): { found: (Found | null)[]; shown: Found | null } {
  const matches = matcher(text);
  if (!matches) return { found: picture.parts.map(() => null), shown: null };
  const found = picture.parts.map((part) => find(part.layout.nodes, matches));
  return { found, shown: found[0] ?? null };
}

/** The band of a part: `zoomed` is the node that spans the whole width, or -1. */
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

/** Finds the part and node for a name in the URL. */
export function locate(picture: Picture, name: string): { part: number; node: number } | null {
  if (name === "") return null;
  const part = name.startsWith(CALLERS) ? 1 : 0;
  const node = picture.parts[part]?.names.indexOf(part === 1 ? name.slice(CALLERS.length) : name) ?? -1;
  return node >= 0 ? { part, node } : null;
}

/** The name of a node for the URL. */
export function nameOf(picture: Picture, part: number, node: number): string {
  const name = picture.parts[part]?.names[node] ?? "";
  return part === 0 ? name : CALLERS + name;
}
