// The trees of a flame graph: one, or with a focus two with the focus between them.

import type { Figures } from "../api/types";
import { bytes, countShort, percent } from "../format";
import type { NameKind } from "../colours";
import type { Tree, TreeNode } from "./tree";
import { type ColourMode, colourNumbers } from "./colours";
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
  /** The position of its first row, counted in rows from the top. */
  baseRow: number;
  /** Rows that are folded, from the roots on. */
  folded: number;
}

export interface Picture {
  parts: Part[];
  colour: ColourMode;
  rows: number;
  /** The total that spans the whole width. */
  total: Figures;
  /** The boxes that span the whole width, and their row: everything, or the functions in focus. */
  bar: { row: number; texts: string[] };
  /** The frames that nearly all stacks share, and the bar that stands for them; null if they are not folded. */
  fold: { bar: number; names: string[] } | null;
}

export interface Choices {
  unit: Unit;
  order: Order;
  colour: ColourMode;
  /** The kind of the boxes, which colours by name depend on. */
  kind: NameKind;
  shape: State["shape"];
  /** True if the frames that nearly all stacks share are one box. */
  folds: boolean;
}

/** The share of the memory that has a frame in common for it to be folded. */
const COMMON = 0.99;

/** Fewer frames are not worth a box of their own. */
const FEWEST_FOLDED = 2;

/**
 * The frames from the root on that nearly all memory has in common, without the last: that is where stacks begin to
 * differ.
 */
export function commonFrames(nodes: readonly TreeNode[], total: number, unit: Unit): number[] {
  const chain: number[] = [];
  // Nodes are in preorder: the next frame of the chain is the next large one below the last.
  nodes.forEach((node, i) => {
    const isNext = node.parent === (chain.at(-1) ?? null);
    if (isNext && node.kind === "call" && node.total[unit].value >= COMMON * total) chain.push(i);
  });
  const folded = chain.slice(0, -1);
  return total > 0 && folded.length >= FEWEST_FOLDED ? folded : [];
}

/** The parts of a tree that are drawn. */
export type DrawnTree = Pick<Tree, "nodes" | "callers" | "focus" | "focus_total" | "total"> & {
  subject: Pick<Tree["subject"], "duration">;
};

/** Adds a tree to a flame graph. */
export function picture(tree: DrawnTree, choices: Choices, barText: string): Picture {
  const total = tree.focus_total ?? tree.total;
  const part = (nodes: readonly TreeNode[]): Omit<Part, "isUp" | "baseRow"> => ({
    folded: 0,
    layout: layOut(nodes, total[choices.unit].value, choices.unit, choices.order),
    names: pathNames(nodes),
    colours: colourNumbers(nodes, choices.colour, choices.kind, tree.subject.duration),
  });
  const main = part(tree.nodes);
  const depth = main.layout.rows.length;
  if (tree.focus.length > 0) {
    const callers = part(tree.callers);
    const above = callers.layout.rows.length;
    const bars = tree.focus.length;
    return {
      colour: choices.colour,
      parts: [
        { ...main, isUp: false, baseRow: above + bars },
        { ...callers, isUp: true, baseRow: above },
      ],
      rows: above + bars + depth,
      total,
      // The answer has them in quotes.
      bar: { row: above, texts: tree.focus.map((text) => text.replace(/^"(.*)"$/s, "$1")) },
      fold: null,
    };
  }
  const isFlame = choices.shape === "flame";
  const common = choices.folds ? commonFrames(tree.nodes, total[choices.unit].value, choices.unit) : [];
  const names = common.map((node) => tree.nodes[node]?.label.name ?? "");
  const texts = names.length > 0 ? [barText, `${names.length} frames: ${names.join(" › ")}`] : [barText];
  const shown = depth - names.length;
  return {
    colour: choices.colour,
    parts: [{ ...main, folded: names.length, isUp: isFlame, baseRow: isFlame ? shown : texts.length }],
    rows: shown + texts.length,
    total,
    bar: { row: isFlame ? shown : 0, texts: isFlame ? texts.reverse() : texts },
    fold: names.length > 0 ? { bar: isFlame ? 0 : 1, names } : null,
  };
}

/** An amount in the unit of the boxes. */
export function amountText(figures: Figures, unit: Unit): string {
  return unit === "bytes" ? bytes(figures.bytes.value) : `${countShort(figures.blocks.value)} blocks`;
}

/** The picture of a box that is zoomed to: the bar of everything says what the width is. */
export function zoomedPicture(picture: Picture, node: TreeNode, unit: Unit): Picture {
  const { bar, fold, total } = picture;
  const root = fold?.bar === 0 ? 1 : 0;
  const share = percent(node.total[unit].value, total[unit].value);
  const zoomed = `${node.label.name}: ${amountText(node.total, unit)}, ${share}`;
  const texts = bar.texts.map((text, k) => (k === root ? `${zoomed} of ${text}` : text));
  return { ...picture, bar: { ...bar, texts } };
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
    folded: part.folded,
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
