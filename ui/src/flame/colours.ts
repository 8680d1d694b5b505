// The colours of boxes. A box has the number of a colour; the colours themselves depend on the theme.

import { namePalette, type NameKind, nameNumber, PLAIN, type Palette, type Tone, tones } from "../colours";
import type { State } from "../state/state";
import type { TreeNode } from "./tree";

/** The meaning of the colour of a box; in comparisons, its change. */
export type ColourMode = State["colour"] | "change";

const STEPS = 9;

/** The legend of a colour mode: the text at both ends, and the fills between. */
export interface Legend {
  low: string;
  high: string;
  fills: readonly string[];
}

export function palette(mode: ColourMode, isDark: boolean): Palette {
  switch (mode) {
    case "module":
      return namePalette(isDark);
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
    case "change":
      // Blue and red are told apart by all kinds of colour vision.
      return tones(isDark, ramp(250, 28, 0.15));
  }
}

/** A gradient from one hue over grey to another. */
function ramp(from: number, to: number, chroma = 0.1): Tone[] {
  return Array.from({ length: STEPS }, (_, k) => {
    const place = (2 * k) / (STEPS - 1) - 1;
    return [0.012 + (chroma - 0.012) * Math.abs(place), place < 0 ? from : to, 0.06 * Math.abs(place) - 0.02];
  });
}

/** The number of each node's colour. */
export function colourNumbers(
  nodes: readonly TreeNode[],
  mode: ColourMode,
  kind: NameKind,
  duration: number,
): Uint8Array {
  return Uint8Array.from(nodes, (node) =>
    node.kind === "other" && mode !== "change" ? PLAIN : number(node, mode, kind, duration),
  );
}

function number(node: TreeNode, mode: ColourMode, kind: NameKind, duration: number): number {
  const details = node.details;
  switch (mode) {
    case "module":
      return nameNumber(node.label, kind);
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
    case "change": {
      if (!node.change?.isReal) return PLAIN;
      const { before, after, change } = node.change;
      const share = Math.abs(change.value) / Math.max(before.value, after.value);
      // A small change that is real is not grey.
      return step(0.5 + 0.5 * Math.sign(change.value) * (0.4 + 0.6 * share));
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

export function legend(mode: ColourMode, colours: Palette): Legend | null {
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
    case "change":
      return { low: "▼ less", high: "▲ more; grey: no real change", fills };
  }
}
