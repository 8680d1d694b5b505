// Draws a flame graph on a canvas: only visible boxes, and none that are too narrow to see.

import type { Label } from "../api/types";
import type { TreeNode } from "./tree";
import { estimatedChange, printable } from "../format";
import type { Palette } from "../colours";
import type { Pen } from "../save/pictures";
import { firstRightOf, type Layout } from "./layout";
import { isExact } from "../state/session";

export const ROW = 20;
const TEXT_PADDING = 5;
const MIN_TEXT = 26;
/** The least space between the name and the figure of a box. */
const FIGURE_GAP = 16;

/** A tree as part of a flame graph: with a focus there are two, callers above and callees below. */
export interface Band {
  layout: Layout;
  colours: Uint8Array;
  matches: Uint8Array | null;
  /** Rows of the tree that are folded, from its roots on. */
  folded: number;
  /** The line that the tree grows from, and its direction. */
  base: number;
  isUp: boolean;
  /** The visible part of the width. */
  from: number;
  to: number;
}

export interface Look {
  palette: Palette;
  ground: string;
  outline: string;
  accent: string;
  match: string;
  matchText: string;
  font: string;
  /** The amount of a box in words. */
  figure: (node: TreeNode) => string;
}

export interface Pointer {
  band: number;
  node: number;
}

/** The upper edge of the row of a depth. */
export function rowTop(band: Band, depth: number): number {
  const row = depth - band.folded;
  return band.isUp ? band.base - (row + 1) * ROW : band.base + row * ROW;
}

/** The depth at a height, or -1. */
export function depthAt(band: Band, y: number): number {
  const row = Math.floor((band.isUp ? band.base - y : y - band.base) / ROW);
  const depth = row + band.folded;
  return row >= 0 && depth < band.layout.rows.length ? depth : -1;
}

/** Draws the visible part of a band. `top` is the scroll offset. */
export function drawBand(
  context: Pen,
  band: Band,
  view: { width: number; height: number; top: number },
  look: Look,
  marked: { hovered: number; selected: number },
): void {
  const { layout } = band;
  const scale = view.width / (band.to - band.from);
  context.font = look.font;
  context.textBaseline = "middle";
  for (let depth = band.folded; depth < layout.rows.length; depth++) {
    const y = rowTop(band, depth) - view.top;
    if (y + ROW < 0 || y > view.height) continue;
    const row = layout.rows[depth] as Int32Array;
    // Boxes that are too narrow to see are merged, so that their width is not lost.
    let crumbsFrom = -1;
    let crumbsTo = -1;
    for (let k = firstRightOf(layout, row, band.from); k < row.length; k++) {
      const node = row[k] as number;
      const start = layout.left[node] as number;
      if (start >= band.to) break;
      const x0 = Math.max(0, (start - band.from) * scale);
      const x1 = Math.min(view.width, ((layout.right[node] as number) - band.from) * scale);
      if (x1 - x0 < 1.2) {
        if (crumbsFrom < 0) crumbsFrom = x0;
        else if (x0 - crumbsTo > 1) {
          drawCrumbs(context, crumbsFrom, crumbsTo, y, look);
          crumbsFrom = x0;
        }
        crumbsTo = x1;
        continue;
      }
      drawBox(context, band, node, x0, x1, y, look, marked);
    }
    if (crumbsFrom >= 0) drawCrumbs(context, crumbsFrom, crumbsTo, y, look);
  }
}

function drawCrumbs(context: Pen, from: number, to: number, y: number, look: Look): void {
  if (to - from < 0.4) return;
  context.fillStyle = look.palette.faded[0] as string;
  context.fillRect(from, y, Math.max(0.6, to - from), ROW - 1);
}

function drawBox(
  context: Pen,
  band: Band,
  node: number,
  x0: number,
  x1: number,
  y: number,
  look: Look,
  marked: { hovered: number; selected: number },
): void {
  const { palette } = look;
  const box = band.layout.nodes[node] as TreeNode;
  const isMatch = band.matches?.[node] === 1;
  // Ancestors of the zoomed box, and boxes that do not match a search, are dimmed.
  const isPassed =
    (band.layout.right[node] as number) - (band.layout.left[node] as number) > (band.to - band.from) * 1.0001;
  const isFaded = isPassed || (band.matches !== null && !isMatch);
  const colour = band.colours[node] as number;
  context.fillStyle = isMatch ? look.match : ((isFaded ? palette.faded : palette.fills)[colour] as string);
  const width = Math.max(0.7, x1 - x0 - (x1 - x0 > 3 ? 1 : 0.3));
  context.fillRect(x0, y, width, ROW - 1);
  if (box.kind === "other") hatch(context, x0, y, width, look);
  if (node === marked.hovered || node === marked.selected) {
    context.strokeStyle = look.outline;
    context.lineWidth = node === marked.selected ? 2 : 1;
    const inset = context.lineWidth / 2;
    context.strokeRect(x0 + inset, y + inset, width - 2 * inset, ROW - 1 - 2 * inset);
  }
  if (width < MIN_TEXT) return;
  const mark = changeMark(box);
  const room = width - 2 * TEXT_PADDING - textWidth(context, mark);
  const { name, place } = boxText(box, band.layout.nodes);
  const whole = place === "" ? name : `${name} ${place}`;
  const text = place !== "" && textWidth(context, whole) <= room ? whole : fitted(context, name, room);
  if (text === "") return;
  context.fillStyle = isMatch ? look.matchText : isFaded ? palette.fadedText : palette.text;
  context.fillText(mark + text, x0 + TEXT_PADDING, y + ROW / 2);
  const figure = look.figure(box);
  const left = x1 - TEXT_PADDING - 1 - textWidth(context, figure);
  if (left > x0 + TEXT_PADDING + textWidth(context, mark + text) + FIGURE_GAP)
    context.fillText(figure, left, y + ROW / 2);
}

/** The sign of a real change: colours are not for everybody. */
function changeMark({ change }: TreeNode): string {
  if (!change?.isReal) return "";
  return change.change.value > 0 ? "▲ " : "▼ ";
}

/** The change of a box for screen readers; empty if nothing is compared. */
export function changeText({ change }: TreeNode): string {
  if (!change) return "";
  return `, change ${estimatedChange(change.change)}, ${change.isReal ? "real" : isExact() ? "none" : "within the sampling error"}`;
}

/** Stripes mark merged boxes. */
function hatch(context: Pen, x: number, y: number, width: number, look: Look): void {
  if (width < 4) return;
  context.save();
  context.beginPath();
  context.rect(x, y, width, ROW - 1);
  context.clip();
  context.strokeStyle = look.ground;
  context.globalAlpha = 0.55;
  context.lineWidth = 1;
  context.beginPath();
  for (let k = x - ROW; k < x + width; k += 6) {
    context.moveTo(k, y + ROW);
    context.lineTo(k + ROW, y);
  }
  context.stroke();
  context.restore();
}

/** The text on a box. The line of an allocation needs no name if it is below its function. */
export function boxText(node: TreeNode, nodes: readonly TreeNode[]): { name: string; place: string } {
  if (node.kind === "other") return { name: `other (${node.others})`, place: "" };
  const { name, place = "" } = node.label;
  const above = node.parent === null ? undefined : nodes[node.parent];
  if (node.kind === "site" && place !== "" && above?.label.name === name) return { name: place, place: "" };
  return { name, place };
}

const widths = new Map<string, number>();
let widthsFont = "";

function textWidth(context: Pen, text: string): number {
  if (widthsFont !== context.font || widths.size > 20_000) {
    widths.clear();
    widthsFont = context.font;
  }
  let width = widths.get(text);
  if (width === undefined) {
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

/** Shortens a name to fit: without its outer modules, then truncated. */
export function fitted(context: Pen, raw: string, room: number): string {
  const text = printable(raw);
  if (textWidth(context, text) <= room) return text;
  for (let dot = text.indexOf("."); dot >= 0; dot = text.indexOf(".", dot + 1)) {
    const rest = text.slice(dot + 1);
    if (rest.length < 2) break;
    if (textWidth(context, rest) <= room) return rest;
  }
  const last = text.slice(text.lastIndexOf(".") + 1) || text;
  const perCharacter = textWidth(context, last) / last.length;
  const fits = Math.floor(room / perCharacter) - 1;
  return fits >= 2 ? `${last.slice(0, fits)}…` : "";
}

/** Cuts a text off at its end to fit. */
export function cutOff(context: Pen, raw: string, room: number): string {
  const text = printable(raw);
  const width = context.measureText(text).width;
  if (width <= room) return text;
  return `${text.slice(0, Math.max(0, Math.floor((room / width) * text.length) - 2))}…`;
}

/** The full name of a label, for tooltips and screen readers. */
export function fullName(node: { kind: string; others: number; label: Label }): string {
  if (node.kind === "other") return `other: ${node.others} more, each too small to show`;
  return printable(node.label.place ? `${node.label.name} (${node.label.place})` : node.label.name);
}
