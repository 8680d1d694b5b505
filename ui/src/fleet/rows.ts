// The rows of changes between groups of runs: sorted by any column, and searched.

import { matcher } from "../flame/search";
import { bytes, countShort, estimatedBytes, estimatedChange, estimatedCount, printable, signedCount } from "../format";
import type { State } from "../state/state";
import type { Change, ChangeRow, Group, Mean, Unit } from "./types";

/** The value of a property, or a word for none. */
export function shownValue(value: string): string {
  return value === "" ? "(none)" : printable(value);
}

/** The values of all properties. */
export function groupText(group: Group): string {
  return Object.values(group).map(shownValue).join(" ");
}

/** The rows whose group matches. */
export function found<T extends { group: Group }>(rows: readonly T[], search: string): T[] {
  const matches = matcher(search);
  return matches ? rows.filter((row) => matches({ name: groupText(row.group) })) : [...rows];
}

/** The columns that rows are sorted by. New groups come first: their change in percent is infinite. */
const KEYS: Record<"percent" | "before" | "after", (row: ChangeRow) => number> = {
  percent: (row) => (row.percent === null ? Number.POSITIVE_INFINITY : Math.abs(row.percent)),
  before: (row) => row.before.mean,
  after: (row) => row.after.mean,
};

/** The rows that match, largest first. The order of the report is that by change. */
export function shownChanges(rows: readonly ChangeRow[], sort: State["diffSort"], search: string): ChangeRow[] {
  const shown = found(rows, search);
  if (sort === "name") return shown.sort((a, b) => (groupText(a.group) < groupText(b.group) ? -1 : 1));
  if (sort !== "percent" && sort !== "before" && sort !== "after") return shown;
  const key = KEYS[sort];
  return shown.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === y ? 0 : x < y ? 1 : -1;
  });
}

/** A mean and its error, as the terminal has it. */
export function meanText(unit: Unit, { mean, error }: Pick<Mean, "mean" | "error">): string {
  const estimate = { value: mean, error, low: mean - error, high: mean + error };
  return unit === "bytes" ? estimatedBytes(estimate) : estimatedCount(estimate);
}

/** A change with its sign and error, as the terminal has it. */
export function changeText(unit: Unit, { change, error }: Pick<Change, "change" | "error">): string {
  if (unit === "blocks") return `${signedCount(change)} ± ${countShort(error)}`;
  return estimatedChange({ value: change, error, low: change - error, high: change + error });
}

export function amountText(unit: Unit, amount: number): string {
  return unit === "bytes" ? bytes(amount) : countShort(amount);
}

/** The verdict on a change in words. */
export function verdictText({ is_significant, p, q }: Change): string {
  if (p === null || q === null) return "Not tested: run-to-run variation needs two runs on each side.";
  const chance = (value: number) => (value < 0.001 ? "less than 0.001" : value.toFixed(3));
  const verdict = is_significant ? "Significant" : "Within run-to-run variation";
  return `${verdict}: p ${chance(p)}, and ${chance(q)} after adjusting for the number of groups.`;
}
