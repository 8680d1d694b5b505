// Axes: ticks at round values, and their labels.

import { bytes, countShort, estimatedBytes, estimatedCount, seconds } from "../format";
import type { State } from "../state/state";

/** Round steps of time above a second. */
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400];

/** The smallest of 1, 2 and 5 times a power of ten that is at least `step`. */
export function niceStep(step: number): number {
  if (!(step > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(step));
  // Rounds steps such as 0.30000000000000004 to 0.3.
  const digit = [1, 2, 5, 10].find((one) => one * power >= step * (1 - 1e-9)) as number;
  return digit * power;
}

/** Round times between `from` and `to`, at most about `most` of them. */
export function timeTicks(from: number, to: number, most: number): number[] {
  const wanted = (to - from) / Math.max(1, most);
  const step = wanted <= 0.5 ? niceStep(wanted) : (CLOCK_STEPS.find((one) => one >= wanted) ?? niceStep(wanted));
  return multiples(from, to, step);
}

function multiples(from: number, to: number, step: number): number[] {
  const ticks: number[] = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to * (1 + 1e-12); k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** A time label, with enough digits to distinguish adjacent ticks. */
export function tickTime(t: number, step: number): string {
  if (t === 0) return "0";
  if (step < 1e-3) return t < 1e-3 ? `${trim(t * 1e6)} µs` : `${trim(t * 1e3)} ms`;
  if (step < 1) return t < 1 ? `${trim(t * 1e3)} ms` : `${trim(t)} s`;
  if (t < 60) return `${trim(t)} s`;
  const whole = Math.round(t);
  const two = (n: number) => String(n).padStart(2, "0");
  const minutes = `${Math.floor(whole / 60) % 60}`;
  if (whole >= 3600) return `${Math.floor(whole / 3600)}:${minutes.padStart(2, "0")}:${two(whole % 60)}`;
  return `${minutes}:${two(whole % 60)}`;
}

function trim(n: number): string {
  return String(Number(n.toPrecision(6)));
}

/** The time of day, in UTC or local time, with as many digits as `step` needs. */
export function wallTime(startMicros: number, t: number, step: number, isLocal: boolean): string {
  const date = new Date(startMicros / 1000 + t * 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  const [h, m, s, ms] = isLocal
    ? [date.getHours(), date.getMinutes(), date.getSeconds(), date.getMilliseconds()]
    : [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds(), date.getUTCMilliseconds()];
  const clock = `${two(h)}:${two(m)}:${two(s)}`;
  if (step >= 1) return clock;
  if (step >= 1e-3) return `${clock}.${String(ms).padStart(3, "0")}`;
  const micros = Math.floor((startMicros + t * 1e6) % 1e6);
  return `${clock}.${String(micros).padStart(6, "0")}`;
}

export type Measure = State["measure"];

/** A value of a measure, formatted. */
export function measured(measure: Measure, value: number): string {
  switch (measure) {
    case "live-blocks":
      return countShort(value);
    case "live-words":
    case "allocated-words":
      return `${countShort(value)} words`;
    case "allocation-rate":
    case "promotion-rate":
      return `${bytes(value)}/s`;
    default:
      return bytes(value);
  }
}

/** A value of a measure with its error, formatted. */
export function estimated(measure: Measure, value: number, error: number): string {
  if (error === 0) return measured(measure, value);
  const estimate = { value, error, low: value - error, high: value + error };
  switch (measure) {
    case "live-blocks":
      return estimatedCount(estimate);
    case "live-words":
    case "allocated-words":
      return `${estimatedCount(estimate)} words`;
    case "allocation-rate":
    case "promotion-rate":
      return `${estimatedBytes(estimate)}/s`;
    default:
      return estimatedBytes(estimate);
  }
}

export const MEASURE_NAMES: Record<Measure, string> = {
  "live-bytes": "Live bytes",
  "live-blocks": "Live blocks",
  "live-words": "Live words",
  "allocated-bytes": "Allocated bytes",
  "allocated-words": "Allocated words",
  "allocation-rate": "Allocation rate",
  "promoted-bytes": "Promoted bytes",
  "promotion-rate": "Promotion rate",
};

/** Measures that need a source that tells promotions. */
export const PROMOTION_MEASURES: ReadonlySet<Measure> = new Set<Measure>(["promoted-bytes", "promotion-rate"]);

export const MEASURE_HELP: Record<Measure, string> = {
  "live-bytes": "Memory that was allocated and not yet collected, headers included.",
  "live-blocks": "Number of live blocks.",
  "live-words": "Live memory in machine words.",
  "allocated-bytes": "All memory allocated since the start, dead or alive.",
  "allocated-words": "All words allocated since the start, dead or alive.",
  "allocation-rate": "Memory allocated per second.",
  "promoted-bytes": "Memory that outlived the minor heap since the start.",
  "promotion-rate": "Memory promoted to the major heap per second.",
};

/** Round values from 0 to the maximum, for grid lines: bytes are round in their unit. */
export function valueTicks(measure: Measure, largest: number, most: number): number[] {
  if (!(largest > 0)) return [0];
  const isBytes = !measure.endsWith("words") && measure !== "live-blocks";
  const unit = isBytes ? 1024 ** Math.max(0, Math.floor(Math.log(largest) / Math.log(1024) + 1e-9)) : 1;
  return multiples(0, largest / unit, niceStep(largest / unit / most)).map((tick) => tick * unit);
}

/** The length of a window, as text. */
export function spanText(from: number, to: number): string {
  return `${from === 0 ? "0" : seconds(from)} – ${seconds(to)}`;
}
