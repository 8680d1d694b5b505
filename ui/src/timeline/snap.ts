import type { Span } from "../state/codec";

/** A window that ended with the trace ends with it when that has grown; others stay. */
export function extended<T extends Span | null>(window: T, before: number, now: number): T {
  return window && now > before && window.to >= before - 1e-6 ? { ...window, to: Number(now.toFixed(6)) } : window;
}

/** Snaps a window to the available bounds, at least one slice wide; to the microsecond if there are none. */
export function snapped(window: Span, slices: readonly number[] | null): Span {
  if (!slices || slices.length < 2) {
    const from = Number(window.from.toFixed(6));
    return { from, to: Math.max(Number(window.to.toFixed(6)), Number((from + 1e-6).toFixed(6))) };
  }
  const nearest = (t: number) =>
    slices.reduce((best, bound, i) => (Math.abs(bound - t) < Math.abs((slices[best] as number) - t) ? i : best), 0);
  let from = nearest(window.from);
  let to = nearest(window.to);
  if (from === to) {
    if (to < slices.length - 1 && (window.to > (slices[to] as number) || to === 0)) to += 1;
    else from -= 1;
  }
  return { from: slices[from] as number, to: slices[to] as number };
}
