// Draws memory over time: stacked layers, the maximum of each interval as a line above them, and error bars
// of the total.

import type { Series } from "../api/types";
import type { Pen } from "../save/pictures";
import type { Span } from "../state/codec";
import type { Inks } from "../theme";
import { measured, type Measure, valueTicks } from "./scale";

export const AXIS = 22;
export const TOP = 20;

/** Pixels between two error bars. */
const ERROR_STEP = 26;

export interface Plot {
  series: Series;
  /** The total of all blocks, if the series is filtered. */
  whole: Series | null;
  /** The total without the blocks of the what-if. */
  without: Series | null;
  measure: Measure;
  range: Span;
  width: number;
  height: number;
  /** The fills of the layers. */
  colours: readonly string[];
  other: string;
  inks: Inks;
  font: string;
  ticks: { at: number; text: string }[];
  /** The brushed window, or those that are compared, with their names. */
  windows: readonly { span: Span; text: string }[];
  hovered: { index: number; layer: number } | null;
  moment: number | null;
}

export function xOf(plot: { range: Span; width: number }, t: number): number {
  return ((t - plot.range.from) / (plot.range.to - plot.range.from)) * plot.width;
}

export function timeOf(plot: { range: Span; width: number }, x: number): number {
  const share = Math.min(1, Math.max(0, x / plot.width));
  return plot.range.from + share * (plot.range.to - plot.range.from);
}

/** The largest value to be drawn. */
export function largest(series: Series, whole: Series | null): number {
  let most = 0;
  for (const one of [series, whole]) for (const value of one?.total.high ?? []) if (value > most) most = value;
  series.total.values.forEach((value, i) => {
    most = Math.max(most, value + (series.error[i] ?? 0));
  });
  return most;
}

/** The index of the largest value; 0 if there is none. */
export function largestIndex(values: readonly number[]): number {
  return values.reduce((best, value, i) => (value > (values[best] as number) ? i : best), 0);
}

/** The 95 % interval of the total at each point; null if nothing is estimated. */
export function errorBand({ total, error }: Pick<Series, "total" | "error">): { low: number; high: number }[] | null {
  if (!error.some((one) => one > 0)) return null;
  return total.values.map((value, i) => {
    const one = error[i] ?? 0;
    return { low: Math.max(0, value - one), high: value + one };
  });
}

/** The tops of the layers at each point, from the lowest layer up. */
export function stack(series: Series): Float64Array[] {
  const tops: Float64Array[] = [];
  let below = new Float64Array(series.times.length);
  for (const group of series.groups) {
    const top = below.map((base, i) => base + (group.values[i] ?? 0));
    tops.push(top);
    below = top;
  }
  return tops.length > 0 ? tops : [Float64Array.from(series.total.values)];
}

/**
 * The line above the layers: the total at each point, and between two points the highest value of the interval, if that
 * is higher than both. Places are counted in points; the first interval begins at -1.
 */
export function outline({ values, high }: Pick<Series["total"], "values" | "high">): { at: number; value: number }[] {
  const line: { at: number; value: number }[] = [];
  values.forEach((value, i) => {
    const most = high[i] ?? value;
    if (most > Math.max(value, values[i - 1] ?? 0) * (1 + 1e-9)) line.push({ at: i - 0.5, value: most });
    line.push({ at: i, value });
  });
  return line;
}

/** The layer at a value, or -1 above all. */
export function layerAt(tops: readonly Float64Array[], index: number, value: number): number {
  return tops.findIndex((top) => value <= (top[index] as number));
}

/** The first point at or after a time. */
export function indexAt(times: readonly number[], t: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) >= t) high = middle;
    else low = middle + 1;
  }
  return Math.min(low, times.length - 1);
}

export function drawTimeline(context: Pen, plot: Plot, tops: readonly Float64Array[]): void {
  const { series, height, inks } = plot;
  const most = largest(series, plot.whole);
  const bottom = height - AXIS;
  const y = (value: number) => bottom - (most > 0 ? value / most : 0) * (bottom - TOP);
  const xs = series.times.map((t) => xOf(plot, t));
  context.font = plot.font;

  // The first point ends the first interval: the layers begin at the left edge with the same value, or at 0.
  const start = plot.range.from === 0 ? 0 : null;
  const line = (values: ArrayLike<number>) => {
    context.lineTo(0, y(start ?? values[0] ?? 0));
    for (let i = 0; i < xs.length; i++) context.lineTo(xs[i] as number, y(values[i] as number));
  };

  const placeOf = (at: number) => {
    const [left, right] = [xs[Math.floor(at)] ?? 0, xs[Math.ceil(at)] ?? 0];
    return left + (right - left) * (at - Math.floor(at));
  };
  const outlined = () => {
    context.lineTo(0, y(start ?? series.total.values[0] ?? 0));
    for (const { at, value } of outline(series.total)) context.lineTo(placeOf(at), y(value));
  };

  // Peaks within an interval are above all layers, which show the points.
  context.beginPath();
  context.moveTo(0, bottom);
  outlined();
  context.lineTo(xs.at(-1) ?? 0, bottom);
  context.closePath();
  context.fillStyle = plot.other;
  context.globalAlpha = 0.55;
  context.fill();
  context.globalAlpha = 1;

  for (let layer = tops.length - 1; layer >= 0; layer--) {
    const group = series.groups[layer];
    const isDimmed = plot.hovered !== null && plot.hovered.layer >= 0 && plot.hovered.layer !== layer;
    context.beginPath();
    context.moveTo(0, bottom);
    line(tops[layer] as Float64Array);
    context.lineTo(xs.at(-1) ?? 0, bottom);
    context.closePath();
    // Fill down to the bottom: lower layers paint over it. Dimmed layers must hide what is behind them, too.
    if (isDimmed) {
      context.fillStyle = inks.ground;
      context.fill();
    }
    context.fillStyle = group?.is_other ? plot.other : (plot.colours[layer] ?? plot.other);
    context.globalAlpha = isDimmed ? 0.45 : 1;
    context.fill();
    context.globalAlpha = 1;
    if (layer < tops.length - 1) {
      context.strokeStyle = inks.ground;
      context.lineWidth = 0.7;
      context.beginPath();
      line(tops[layer] as Float64Array);
      context.stroke();
    }
  }

  if (plot.whole) {
    context.strokeStyle = inks.muted;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    const wholeXs = plot.whole.times.map((t) => xOf(plot, t));
    plot.whole.total.high.forEach((value, i) => context.lineTo(wholeXs[i] as number, y(value)));
    context.stroke();
    context.setLineDash([]);
  }

  if (plot.without) {
    const { times, total } = plot.without;
    const withoutXs = times.map((t) => xOf(plot, t));
    const trace = () => {
      context.beginPath();
      total.high.forEach((value, i) => context.lineTo(withoutXs[i] as number, y(value)));
      context.stroke();
    };
    // On a lighter line: layers may have any colour.
    context.lineJoin = "round";
    context.strokeStyle = inks.ground;
    context.lineWidth = 4;
    trace();
    context.strokeStyle = inks.accent;
    context.lineWidth = 2;
    context.setLineDash([6, 3]);
    trace();
    context.setLineDash([]);
  }

  const band = errorBand(series);
  if (band) drawErrors(context, plot, band, xs, y);

  context.strokeStyle = inks.text;
  context.globalAlpha = 0.75;
  context.lineWidth = 1.2;
  context.lineJoin = "round";
  context.beginPath();
  outlined();
  context.stroke();
  context.globalAlpha = 1;

  drawGrid(context, plot, most, y, bottom);
  drawWindows(context, plot, bottom);
  drawMoment(context, plot, bottom, y);
}

/** Error bars of the total: a band would look like one more layer. */
function drawErrors(
  context: Pen,
  plot: Plot,
  band: readonly { low: number; high: number }[],
  xs: readonly number[],
  y: (value: number) => number,
): void {
  context.strokeStyle = plot.inks.text;
  context.globalAlpha = 0.6;
  context.lineWidth = 1;
  context.beginPath();
  let next = ERROR_STEP / 2;
  band.forEach(({ low, high }, i) => {
    const x = Math.round(xs[i] as number) + 0.5;
    const [top, bottom] = [y(high), y(low)];
    if (x < next || bottom - top < 3) return;
    next = x + ERROR_STEP;
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    for (const end of [top, bottom]) {
      context.moveTo(x - 2.5, end);
      context.lineTo(x + 2.5, end);
    }
  });
  context.stroke();
  context.globalAlpha = 1;
}

function drawGrid(context: Pen, plot: Plot, most: number, y: (value: number) => number, bottom: number): void {
  const { inks, width } = plot;
  context.textBaseline = "bottom";
  context.textAlign = "left";
  for (const tick of valueTicks(plot.measure, most, 4)) {
    if (tick === 0) continue;
    const at = Math.round(y(tick)) + 0.5;
    context.strokeStyle = inks.text;
    context.globalAlpha = 0.11;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, at);
    context.lineTo(width, at);
    context.stroke();
    context.globalAlpha = 1;
    const text = measured(plot.measure, tick);
    context.lineWidth = 3;
    context.strokeStyle = inks.ground;
    context.globalAlpha = 0.75;
    context.strokeText(text, 6, at - 1);
    context.globalAlpha = 1;
    context.fillStyle = inks.muted;
    context.fillText(text, 6, at - 1);
  }
  context.strokeStyle = inks.line;
  context.beginPath();
  context.moveTo(0, bottom + 0.5);
  context.lineTo(width, bottom + 0.5);
  context.stroke();
  context.textBaseline = "top";
  context.fillStyle = inks.muted;
  for (const tick of plot.ticks) {
    const x = Math.round(xOf(plot, tick.at));
    context.fillRect(x, bottom, 1, 4);
    const half = context.measureText(tick.text).width / 2;
    context.textAlign = x < half ? "left" : x > width - half ? "right" : "center";
    context.fillText(tick.text, context.textAlign === "center" ? x : Math.min(width, Math.max(0, x)), bottom + 6);
  }
  context.textAlign = "left";
}

/** Dims the area outside of the windows, and draws their edges. */
function drawWindows(context: Pen, plot: Plot, bottom: number): void {
  if (plot.windows.length === 0) return;
  const edges = plot.windows.map(({ span, text }) => ({ from: xOf(plot, span.from), to: xOf(plot, span.to), text }));
  context.fillStyle = plot.inks.ground;
  context.globalAlpha = 0.66;
  let x = 0;
  for (const { from, to } of [...edges].sort((a, b) => a.from - b.from)) {
    if (from > x) context.fillRect(x, 0, from - x, bottom);
    x = Math.max(x, to);
  }
  if (x < plot.width) context.fillRect(x, 0, plot.width - x, bottom);
  context.globalAlpha = 1;
  for (const { from, to, text } of edges) {
    context.fillStyle = plot.inks.accent;
    for (const x of [from, to]) {
      context.fillRect(Math.round(x) - 1, TOP - 6, 2, bottom - TOP + 6);
      context.beginPath();
      context.roundRect(Math.round(x) - 3, (TOP + bottom) / 2 - 11, 6, 22, 3);
      context.fill();
    }
    if (text === "") continue;
    context.textBaseline = "top";
    context.textAlign = "left";
    const left = Math.max(0, from) + 5;
    const width = context.measureText(text).width + 8;
    context.fillRect(left, bottom - 19, width, 16);
    context.fillStyle = plot.inks.ground;
    context.fillText(text, left + 4, bottom - 17);
  }
}

function drawMoment(context: Pen, plot: Plot, bottom: number, y: (value: number) => number): void {
  if (plot.moment !== null) {
    const x = Math.round(xOf(plot, plot.moment));
    context.fillStyle = plot.inks.accent;
    context.fillRect(Math.min(plot.width - 2, Math.max(0, x - 1)), TOP - 4, 2, bottom - TOP + 4);
  }
  if (plot.hovered) {
    const t = plot.series.times[plot.hovered.index] ?? 0;
    const x = Math.round(xOf(plot, t)) + 0.5;
    context.strokeStyle = plot.inks.text;
    context.globalAlpha = 0.5;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, TOP - 6);
    context.lineTo(x, bottom);
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = plot.inks.text;
    context.beginPath();
    context.arc(x, y(plot.series.total.values[plot.hovered.index] ?? 0), 3, 0, 2 * Math.PI);
    context.fill();
  }
}
