// The colours of boxes. A box has the number of a colour; the colours themselves depend on the theme.

import type { Label } from "../api/types";
import type { TreeNode } from "./tree";
import type { State } from "../state/state";

export interface Palette {
  /** Fills by number, and the same for boxes that do not match a search. */
  fills: readonly string[];
  faded: readonly string[];
  text: string;
  fadedText: string;
}

/** Number 0 is for boxes without a colour: "other" and unknown. */
export const PLAIN = 0;

const HUES = [32, 58, 88, 122, 152, 178, 205, 232, 258, 285, 315, 350];
const STEPS = 9;

/** The legend of a colour mode: the text at both ends, and the fills between. */
export interface Legend {
  low: string;
  high: string;
  fills: readonly string[];
}

function tones(isDark: boolean, colours: readonly [chroma: number, hue: number, shift: number][]): Palette {
  const lightness = isDark ? 0.44 : 0.84;
  const fill = (chroma: number, hue: number, shift: number, fade: number) => {
    const base = lightness + (isDark ? shift : -shift);
    const ground = isDark ? 0.26 : 0.955;
    return `oklch(${(base + (ground - base) * fade).toFixed(3)} ${(chroma * (1 - fade)).toFixed(3)} ${hue})`;
  };
  const all: readonly [number, number, number][] = [[0.008, 80, isDark ? -0.12 : -0.06], ...colours];
  return {
    fills: all.map(([chroma, hue, shift]) => fill(chroma, hue, shift, 0)),
    faded: all.map(([chroma, hue, shift]) => fill(chroma, hue, shift, 0.72)),
    text: isDark ? "#f3efe9" : "#221f1a",
    fadedText: isDark ? "#8d8880" : "#8b857b",
  };
}

export function palette(mode: State["colour"], isDark: boolean): Palette {
  switch (mode) {
    case "module":
      return tones(
        isDark,
        [0, 0.045].flatMap((shift) => HUES.map((hue): [number, number, number] => [0.085, hue, shift])),
      );
    case "heap":
      // From blue (all on the minor heap) through grey to orange (all on the major heap); the last is external.
      return tones(isDark, [...ramp(248, 50), [0.1, 150, 0.02]]);
    case "lifetime":
      return tones(
        isDark,
        Array.from({ length: STEPS }, (_, k) => {
          const share = k / (STEPS - 1);
          return [0.02 + 0.11 * share, 95 + 215 * share, 0.12 * share - 0.04];
        }),
      );
    case "growth":
      return tones(isDark, ramp(245, 28));
  }
}

/** A gradient from one hue over grey to another. */
function ramp(from: number, to: number): [number, number, number][] {
  return Array.from({ length: STEPS }, (_, k) => {
    const place = (2 * k) / (STEPS - 1) - 1;
    return [0.012 + 0.088 * Math.abs(place), place < 0 ? from : to, 0.06 * Math.abs(place) - 0.02];
  });
}

/** The module of a name: as given by the trace, or the part before the last dot. */
export function moduleOf(label: Label): string {
  if (label.module) return label.module;
  const dot = label.name.lastIndexOf(".");
  return dot > 0 ? label.name.slice(0, dot) : label.name;
}

function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  // The last multiplication only mixes the high bits, but colours use the low ones.
  h ^= h >>> 15;
  return Math.imul(h, 0x2c1b3c6d) >>> 0;
}

/** The number of each node's colour. */
export function colourNumbers(nodes: readonly TreeNode[], mode: State["colour"], duration: number): Uint8Array {
  const out = new Uint8Array(nodes.length);
  const known = new Map<string, number>();
  nodes.forEach((node, i) => {
    out[i] = node.kind === "other" ? PLAIN : number(node, mode, duration, known);
  });
  return out;
}

function number(node: TreeNode, mode: State["colour"], duration: number, known: Map<string, number>): number {
  const details = node.details;
  switch (mode) {
    case "module": {
      const name = moduleOf(node.label);
      let found = known.get(name);
      if (found === undefined) {
        found = 1 + (hash(name) % (2 * HUES.length));
        known.set(name, found);
      }
      return found;
    }
    case "heap": {
      const { minor, major, external } = details.heap;
      if (external > minor + major) return STEPS + 1;
      return minor + major > 0 ? step(major / (minor + major)) : PLAIN;
    }
    case "lifetime":
      return details.lifetime === null ? PLAIN : step(lifetimeShare(details.lifetime, duration));
    case "growth": {
      const largest = Math.max(details.live_at_end, details.live_at_half);
      return largest > 0 ? step(0.5 + (0.5 * (details.live_at_end - details.live_at_half)) / largest) : PLAIN;
    }
  }
}

/** From 0 for a ten-thousandth of the run to 1 for all of it. */
function lifetimeShare(lifetime: number, duration: number): number {
  return duration > 0 && lifetime > 0 ? 1 + Math.log10(lifetime / duration) / 4 : 0;
}

function step(share: number): number {
  return 1 + Math.round(Math.min(1, Math.max(0, share)) * (STEPS - 1));
}

export function legend(mode: State["colour"], colours: Palette): Legend | null {
  const fills = colours.fills.slice(1, STEPS + 1);
  switch (mode) {
    case "module":
      return null;
    case "heap":
      return { low: "minor heap", high: "major heap", fills };
    case "lifetime":
      return { low: "short-lived", high: "lives on", fills };
    case "growth":
      return { low: "shrinks", high: "grows", fills };
  }
}
