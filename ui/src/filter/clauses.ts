// Common clauses, for the menu of the filter bar.

import { queryTime } from "../format";

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

export function quickClauses(duration: number, hasPromotions: boolean): QuickClause[] {
  const tenth = queryTime(Number((duration / 10).toPrecision(2)));
  return [
    ...(hasPromotions ? GENERATIONAL : []),
    { text: hasPromotions ? "Collected" : "Freed", clause: "collected" },
    { text: "Alive at the end", clause: "live at end" },
    { text: `Living longer than ${tenth}`, clause: `lifetime > ${tenth}` },
    { text: "Large blocks", clause: "size >= 2KiB" },
    { text: "Small blocks", clause: "size <= 16w" },
    ...(hasPromotions ? [{ text: "Not in the standard library", clause: "not inside module /^Stdlib/" }] : []),
  ];
}
