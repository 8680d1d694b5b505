// Draws the share of the time that the garbage collector took, by kind of work, as a band on the axis of the timeline.

import type { Gc, WorstPause } from "../api/types";
import type { Pen } from "../save/pictures";
import type { Span } from "../state/codec";
import type { Inks } from "../theme";
import { xOf } from "../timeline/draw";
import { KINDS, kindColours } from "./kinds";

/** The height of the band. */
export const BAND = 34;

/** Space above the bars for the marks of pauses. */
export const MARKS = 11;

/** Tops of the scale, in percent. The lowest one keeps a collector that takes little time looking so. */
const TOPS = [5, 10, 20, 50, 100] as const;

type BandData = Pick<Gc, "from" | "series">;

/** The top of the scale, in percent. */
export function bandTop({ series }: BandData): number {
  const most = Math.max(0, ...series.collector_percent);
  return TOPS.find((top) => most <= top) ?? 100;
}

/** The beginning and the end of an interval. */
export function intervalOf({ from, series }: BandData, index: number): Span {
  return { from: index > 0 ? (series.times[index - 1] as number) : from, to: series.times[index] as number };
}

/** The parts of an interval's share, from below. They are not more than the share in all. */
export function partsOf({ series }: BandData, index: number): { kind: (typeof KINDS)[number]; percent: number }[] {
  const total = series.collector_percent[index] ?? 0;
  const parts = KINDS.flatMap((kind) => {
    const percent = series.kinds.find((one) => one.kind === kind)?.percent[index] ?? 0;
    return percent > 0 ? [{ kind, percent }] : [];
  });
  // Work with other work inside is spread over the time that it took.
  const sum = parts.reduce((sum, { percent }) => sum + percent, 0);
  const scale = sum > total && sum > 0 ? total / sum : 1;
  return parts.map(({ kind, percent }) => ({ kind, percent: percent * scale }));
}

/** Marks, and the distance in pixels between two of them. */
const MOST_MARKS = 10;
const MARK_WIDTH = 10;

/**
 * The pauses that are marked, in the order of time: the longest of each place, so that none covers another. The chosen one is
 * marked in any case.
 */
export function marked(
  worst: readonly WorstPause[],
  frame: { range: Span; width: number },
  isChosen: (pause: WorstPause) => boolean,
): WorstPause[] {
  const { range } = frame;
  const found: WorstPause[] = [];
  const inOrder = [...worst].sort((a, b) => Number(isChosen(b)) - Number(isChosen(a)));
  for (const pause of inOrder) {
    const isShown = pause.start + pause.length >= range.from && pause.start <= range.to;
    const x = xOf(frame, pause.start + pause.length / 2);
    const isFree = found.every((other) => Math.abs(xOf(frame, other.start + other.length / 2) - x) >= MARK_WIDTH);
    if (isShown && isFree && found.length < MOST_MARKS) found.push(pause);
  }
  return found.sort((a, b) => a.start - b.start);
}

export interface BandPlot {
  data: BandData;
  range: Span;
  width: number;
  /** Where the band begins. */
  top: number;
  inks: Inks;
  isDark: boolean;
  font: string;
  hovered: number | null;
}

export function drawBand(pen: Pen, plot: BandPlot): void {
  const { data, inks, width } = plot;
  const colours = kindColours(plot.isDark);
  const [top, bottom] = [plot.top + MARKS, plot.top + BAND - 1];
  const most = bandTop(data);
  const height = (percent: number) => (Math.min(percent, most) / most) * (bottom - top);
  pen.fillStyle = inks.text;
  pen.globalAlpha = 0.045;
  pen.fillRect(0, top, width, bottom - top);
  pen.globalAlpha = 1;
  data.series.times.forEach((_, index) => {
    const span = intervalOf(data, index);
    // On whole pixels: neighbours have no gaps between them.
    const left = Math.max(0, Math.round(xOf(plot, span.from)));
    const right = Math.min(width, Math.max(left + 1, Math.round(xOf(plot, span.to))));
    if (right <= left) return;
    let y = bottom;
    for (const { kind, percent } of partsOf(data, index)) {
      const part = height(percent);
      pen.fillStyle = colours[kind];
      pen.fillRect(left, y - part, right - left, part);
      y -= part;
    }
    if (plot.hovered === index) {
      pen.fillStyle = inks.text;
      pen.globalAlpha = 0.16;
      pen.fillRect(left, top, Math.max(2, right - left), bottom - top);
      pen.globalAlpha = 1;
    }
  });
  pen.fillStyle = inks.line;
  pen.fillRect(0, bottom, width, 1);
  pen.font = plot.font;
  pen.textAlign = "left";
  pen.textBaseline = "top";
  pen.lineWidth = 3;
  pen.strokeStyle = inks.ground;
  pen.globalAlpha = 0.75;
  pen.strokeText(`${most} %`, 6, top + 1);
  pen.globalAlpha = 1;
  pen.fillStyle = inks.muted;
  pen.fillText(`${most} %`, 6, top + 1);
}
