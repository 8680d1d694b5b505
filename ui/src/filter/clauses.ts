// Common clauses, for the menu of the filter bar.

import type { Capabilities } from "../api/types";
import { queryTime } from "../format";
import { endText } from "../state/describe";

export interface QuickClause {
  text: string;
  clause: string;
}

const GENERATIONAL: QuickClause[] = [
  { text: "On the major heap", clause: "heap = major" },
  { text: "On the minor heap", clause: "heap = minor" },
  { text: "Outside of OCaml's heaps", clause: "heap = external" },
  { text: "Promoted", clause: "promoted" },
];

const SIZES: QuickClause[] = [
  { text: "Large blocks", clause: "size >= 2KiB" },
  { text: "Small blocks", clause: "size <= 16w" },
];

export function quickClauses(duration: number, tells: Capabilities): QuickClause[] {
  const tenth = queryTime(Number((duration / 10).toPrecision(2)));
  const isOCaml = tells.promotions || !tells.lifetimes;
  return [
    ...(tells.promotions ? GENERATIONAL : []),
    ...(tells.lifetimes ? [{ text: tells.promotions ? "Collected" : "Freed", clause: "collected" }] : []),
    { text: `Alive ${endText()}`, clause: "live at end" },
    ...(tells.lifetimes ? [{ text: `Living longer than ${tenth}`, clause: `lifetime > ${tenth}` }] : []),
    ...(tells.sizes ? SIZES : []),
    ...(isOCaml ? [{ text: "Not allocated by the standard library itself", clause: "not module /^Stdlib/" }] : []),
  ];
}
