// The part of the memory that a view shows. Most follow the choice above the timeline; leaks are always about the end, and
// comparisons have a choice of their own.

import type { Moment } from "./codec";
import { comparesWindows, type TraceFacts } from "./questions";
import { momentOf, type State } from "./state";
import { endText } from "./describe";

/** The choices above the timeline. */
export type Tile = "all" | "peak" | "end";

const COMPARED: Record<Tile, State["of"]> = { all: "allocated", peak: "peak", end: "end" };

/** The scope of the view on the screen. The overview is about all of them, and the collector about none: they have none. */
export function shownScope(state: State): Moment | null {
  if (state.view === "overview" || state.view === "collector") return null;
  if (state.view === "leaks") return "end";
  if (state.view === "compare") return state.of === "allocated" ? "all" : state.of;
  return momentOf(state);
}

/** The change that chooses a scope, or the reason why the view has no other. */
export function chooseScope(state: State, tile: Tile, trace: TraceFacts): Partial<State> | string {
  if (state.view === "leaks") {
    return tile === "end" ? {} : `Leaks are about memory that is live ${endText()}.`;
  }
  if (state.view !== "compare") return chooseMoment(state, tile);
  if (tile === "peak" && comparesWindows(state, trace)) {
    return "A window has no peak: compare what was allocated in it, or what is live at its end.";
  }
  return { of: COMPARED[tile] };
}

/** The change that selects memory live at a time. The overview and the collector have no such choice: the flame graph shows it. */
export function chooseMoment(state: State, live: Moment): Partial<State> {
  return state.view === "overview" || state.view === "collector" ? { live, view: "flame" } : { live };
}
