// Formats amounts like the terminal output (crates/text/src/units.rs).

import type { Estimate, Label } from "./api/types";

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;
const COUNT_UNITS = ["", " k", " M", " G", " T"] as const;

/** The text in place of a number that the source does not tell. */
const UNTOLD = "?";

/** True if the source does not tell a number: it is null in answers, whatever their types say. */
function isUntold(n: number | null): boolean {
  return n === null || Number.isNaN(n);
}

/** An amount of memory, such as `12.3 MiB`. */
export function bytes(amount: number): string {
  if (isUntold(amount)) return UNTOLD;
  const [scale, unit] = byteScale(amount);
  return `${significant(amount / scale)} ${unit}`;
}

/** An amount of memory and its error in the same unit; `< 23.4 KiB` if nothing was sampled. */
export function estimatedBytes({ value, error }: Estimate): string {
  if (isUntold(value)) return UNTOLD;
  if (value === 0 && error > 0) return `< ${bytes(error)}`;
  // The larger one decides, so that both are short.
  const [scale, unit] = byteScale(Math.max(value, error));
  return `${withError(value / scale, error / scale)} ${unit}`;
}

/** A short count, such as `12.3 k`. */
export function countShort(n: number): string {
  if (isUntold(n)) return UNTOLD;
  const [scale, unit] = countScale(n);
  return unit === "" ? n.toFixed(0) : `${significant(n / scale)}${unit}`;
}

/** The unit for a number of things, with a space before it. */
function countScale(n: number): [number, string] {
  let scale = 1;
  let unit = 0;
  while (Math.abs(n) / scale >= 999.5 && unit + 1 < COUNT_UNITS.length) {
    scale *= 1000;
    unit += 1;
  }
  return [scale, COUNT_UNITS[unit] ?? ""];
}

/** A short count and its error, such as `12.30 ± 0.40 k`; `< 2.99 k` if nothing was sampled. */
export function estimatedCount({ value, error }: Estimate): string {
  if (value === 0 && error > 0) return `< ${countShort(error)}`;
  if (isUntold(value) || error === 0) return countShort(value);
  const [scale, unit] = countScale(Math.max(value, error));
  return `${withError(value / scale, error / scale)}${unit}`;
}

/** A change of memory with its sign and error, such as `+1.2 ± 0.3 MiB`. */
export function estimatedChange({ value, error }: Estimate): string {
  const [scale, unit] = byteScale(Math.max(Math.abs(value), error));
  return `${value > 0 ? "+" : ""}${withError(value / scale, error / scale)} ${unit}`;
}

/** A count with its sign, such as `+12.3 k`. */
export function signedCount(n: number): string {
  return n > 0 ? `+${countShort(n)}` : countShort(n);
}

/** An amount that is known exactly. */
export function exact(value: number): Estimate {
  return { value, error: 0, low: value, high: value };
}

/** An integer with digit grouping: `7,353,975`. */
export function count(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A number of things with their name, such as `1 row` or `1,200 rows`. */
export function plural(n: number, thing: string): string {
  return `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
}

/** A share, such as `12.3 %`. */
export function percent(part: number, whole: number): string {
  if (isUntold(part) || isUntold(whole)) return UNTOLD;
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.05) return "< 0.1 %";
  return whole > 0 ? `${share.toFixed(1)} %` : "-";
}

/** A time, such as `41.6 ms` or `2 min 3 s`. */
export function seconds(t: number): string {
  if (t < 1e-3) return `${significant(t * 1e6)} µs`;
  if (t < 1) return `${significant(t * 1e3)} ms`;
  if (t < 60) return `${significant(t)} s`;
  const whole = Math.round(t);
  const hours = Math.floor(whole / 3600);
  return hours === 0
    ? `${Math.floor(whole / 60)} min ${whole % 60} s`
    : `${hours} h ${Math.floor(whole / 60) % 60} min`;
}

/** A sampling rate, such as `0.001` or `1e-4`. */
export function samplingRate(rate: number): string {
  return rate >= 1e-3 ? String(rate) : rate.toExponential();
}

/** The name of a group, and its source location. */
export function label({ name, place }: Label): string {
  return printable(place ? `${name} (${place})` : name);
}

/**
 * The end of a name that tells functions apart: without outer modules, but with the function of anonymous ones: `start.(fun)` of
 * `Shop.Sessions.start.(fun)`. The whole name if its parts cannot be told.
 */
export function innermost(name: string): string {
  const found = /(?:\.|::)((?:[^.:<>()]+|\([^()]*\))(?:\.\(fun[^()]*\)|::\{\{?closure[^}]*\}\}?)*)$/.exec(name);
  return found?.[1] ?? name;
}

/** Removes control characters and bidirectional overrides from a text of the trace. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, "\ufffd");
}

/** A time in the syntax of the query language, exact to the microsecond of the trace. */
export function queryTime(t: number): string {
  return `${Number(t.toFixed(6))}s`;
}

function byteScale(amount: number): [number, string] {
  let scale = 1;
  let unit: string = BYTE_UNITS[0];
  for (const next of BYTE_UNITS.slice(1)) {
    // 1023.95 would be printed as 1024.
    if (Math.abs(amount) / scale < 1023.5) break;
    scale *= 1024;
    unit = next;
  }
  return [scale, unit];
}

/** Three significant digits; integers without decimals. */
function significant(n: number): string {
  if (Number.isInteger(n)) return n.toFixed(0);
  const size = Math.abs(n);
  return rounded(n, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** A number with so many decimals. Halves become even, as in the reports of the command line: 31.25 is 31.2. */
function rounded(n: number, digits: number): string {
  const up = n.toFixed(digits);
  const isHalf = new RegExp(`\\.\\d{${digits}}50*$`).test(n.toFixed(20));
  if (!isHalf || Number(up.at(-1)) % 2 === 0) return up;
  return (Number(up) - Math.sign(n) * 10 ** -digits).toFixed(digits);
}

/** Formats with as many digits as are significant given the error. */
function withError(n: number, error: number): string {
  if (error === 0) return significant(n);
  const digits = error >= 10 ? 0 : error >= 1 ? 1 : error >= 0.1 ? 2 : 3;
  return `${rounded(n, digits)} ± ${rounded(error, digits)}`;
}
