// The window of a pause.

import type { WorstPause } from "../api/types";
import type { Span } from "../state/codec";
import { isOfPause } from "../state/questions";
import type { State } from "../state/state";
import { snapped } from "../timeline/snap";

/** A pause in whole microseconds, as times of the trace are. */
export function pauseSpan({ start, length }: Pick<WorstPause, "start" | "length">): Span {
  const from = Math.floor(start * 1e6 + 1e-6) / 1e6;
  return { from, to: Math.max(from + 1e-6, Math.ceil((start + length) * 1e6 - 1e-6) / 1e6) };
}

/** True if the window is this pause. */
export function isChosen(state: Pick<State, "window" | "pause">, pause: Pick<WorstPause, "start" | "length">): boolean {
  return isOfPause(state) && pauseSpan(pause).from === state.window?.from;
}

/**
 * The change that selects a pause in the timeline, or deselects it. Nothing is allocated in a pause, so views show what was
 * alive then. A report file has some windows only; null if it has none.
 */
export function choosePause(
  state: Pick<State, "window" | "pause">,
  pause: Pick<WorstPause, "start" | "length">,
  slices: readonly number[] | null,
): Partial<State> | null {
  if (isChosen(state, pause)) return { window: null, windowOf: "allocated", pause: "" };
  if (!slices) {
    const window = pauseSpan(pause);
    return { window, windowOf: "live", pause: String(window.from) };
  }
  return slices.length > 0 ? { window: snapped(pauseSpan(pause), slices) } : null;
}
