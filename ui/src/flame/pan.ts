// Free zooming and panning of the flame graph, in shares of its width.

import type { Span } from "../state/codec";

/** The narrowest range: at most a million times the width of the window. */
const NARROWEST = 1e-6;

/** Zooms around a place that stays where it is; a factor below 1 zooms in. Null if everything is visible. */
export function zoomedAround({ from, to }: Span, place: number, factor: number): Span | null {
  const width = Math.min(1, Math.max(NARROWEST, (to - from) * factor));
  const share = (place - from) / (to - from);
  return within(place - share * width, width);
}

/** Moves a range by a share of the whole width, but not out of it. */
export function moved({ from, to }: Span, by: number): Span | null {
  return within(from + by, to - from);
}

function within(from: number, width: number): Span | null {
  if (width >= 1) return null;
  const start = Math.min(1 - width, Math.max(0, from));
  // Short in the URL.
  return { from: Number(start.toFixed(9)), to: Number((start + width).toFixed(9)) };
}
