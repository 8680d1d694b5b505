// The rows of a comparison: sorted by any column, and searched.

import type { DiffRow } from "../api/types";
import { matcher } from "../flame/search";
import { countShort, printable } from "../format";
import type { State } from "../state/state";

/** Rows that are new come first: their change in percent is infinite. */
function share(row: DiffRow): number {
  return row.percent === null ? Number.POSITIVE_INFINITY : Math.abs(row.percent);
}

const KEYS: Record<Exclude<State["diffSort"], "name">, (row: DiffRow) => number> = {
  change: (row) => Math.abs(row.bytes.value),
  percent: share,
  before: (row) => row.before.bytes.value,
  after: (row) => row.after.bytes.value,
  blocks: (row) => Math.abs(row.blocks.value),
};

/** The rows whose name matches, largest first. The order of the report, which has real changes first, is that by change. */
export function shownRows(rows: readonly DiffRow[], sort: State["diffSort"], search: string): DiffRow[] {
  const matches = matcher(search);
  const found = matches ? rows.filter((row) => matches(row.label)) : [...rows];
  if (sort === "change") return found;
  if (sort === "name") return found.sort((a, b) => (a.label.name < b.label.name ? -1 : 1));
  const key = KEYS[sort];
  return found.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === y ? 0 : x < y ? 1 : -1;
  });
}

/** A change in percent with its sign, such as `+12.3`; short if it is large, such as `+204 k`. */
export function changePercent(percent: number | null): string {
  if (percent === null) return "new";
  const text = Math.abs(percent) < 999.95 ? percent.toFixed(1) : countShort(percent);
  return percent > 0 ? `+${text}` : text;
}

/** The names of two files without their folders, but for as many as are needed to tell them apart. */
export function shortNames(before: string, after: string): { before: string; after: string } {
  const [a, b] = [before.split("/"), after.split("/")];
  const longest = Math.max(a.length, b.length);
  let parts = 1;
  while (parts < longest && a.slice(-parts).join("/") === b.slice(-parts).join("/")) parts += 1;
  return { before: printable(a.slice(-parts).join("/")), after: printable(b.slice(-parts).join("/")) };
}
