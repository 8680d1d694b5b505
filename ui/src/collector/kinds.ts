// The kinds of work of the garbage collector, with the names of crates/text/src/gc.rs.

import type { CollectionKind, Phase } from "../api/types";

/** The kinds in the order of the band, from below. */
export const KINDS = ["minor", "slice", "finalisers", "forced"] as const satisfies CollectionKind[];

/** One piece of work. */
export const PIECE_NAMES: Record<CollectionKind, string> = {
  minor: "minor collection",
  slice: "major slice",
  forced: "forced major collection",
  finalisers: "finalisers",
  reading: "reading",
};

/** All work of a kind. */
export const KIND_NAMES: Record<CollectionKind, string> = {
  minor: "minor",
  slice: "major slices",
  forced: "forced major",
  finalisers: "finalisers",
  reading: "readings",
};

export const KIND_HELP: Record<CollectionKind, string> = {
  minor: "The minor heap is emptied: what is still alive is promoted to the major heap.",
  slice: "A part of a major collection: marking, or sweeping what is dead.",
  forced: "A whole major collection that the program asked for (Gc.full_major, Gc.major, Gc.compact).",
  finalisers: "Functions of the program that run when a value dies (Gc.finalise).",
  reading: "The counters were read.",
};

/** A slice that begins between two collections begins one. */
export const PHASE_NAMES: Record<Phase, string> = { mark: "mark", clean: "clean", sweep: "sweep", idle: "begin" };

const LIGHT: Record<CollectionKind, string> = {
  minor: "oklch(0.8 0.07 240)",
  slice: "oklch(0.6 0.12 250)",
  forced: "oklch(0.4 0.14 265)",
  finalisers: "oklch(0.7 0.14 320)",
  reading: "transparent",
};

const DARK: Record<CollectionKind, string> = {
  minor: "oklch(0.52 0.08 240)",
  slice: "oklch(0.68 0.12 245)",
  forced: "oklch(0.86 0.08 235)",
  finalisers: "oklch(0.66 0.15 320)",
  reading: "transparent",
};

/** The colours of the kinds: shades of one hue, and another one for functions of the program. */
export function kindColours(isDark: boolean): Record<CollectionKind, string> {
  return isDark ? DARK : LIGHT;
}
