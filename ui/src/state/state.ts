// The state of the page, in one place and in the URL: reloading and sharing keep it, and the back button undoes changes.

import { computed, signal } from "@preact/signals";
import type { Choice } from "../api/question";
import { REQUESTS } from "../api/requests";
import { type Codec, choice, clampSpan, flag, list, type Moment, moment, option, span, text } from "./codec";

export const VIEWS = [
  "overview",
  "flame",
  "table",
  "tree",
  "lifetimes",
  "leaks",
  "compare",
  "blocks",
  "source",
  "collector",
  "snapshots",
] as const;
export const HEAP_VIEWS = ["retained", "icicle", "tree", "why", "compare", "findings"] as const;
export const RETAINED_SORTS = ["reached", "retained", "own", "blocks", "values", "name"] as const;
export const FLEET_VIEWS = ["regressions", "compare", "top", "trend"] as const;
export const AMOUNTS = ["allocated", "live-at-peak", "live-at-end", "promoted", "blocks"] as const;
export const RUN_PROPERTIES = ["service", "version", "day", "host", "program"] as const;
export const SITE_PROPERTIES = ["function", "site", "file", "module", "space"] as const;
export const MEASURES = [
  "live-bytes",
  "live-blocks",
  "live-words",
  "allocated-bytes",
  "allocated-words",
  "allocation-rate",
  "promoted-bytes",
  "promotion-rate",
] as const satisfies Choice<"series", "measure">[];
export const GROUPS = [
  "function",
  "site",
  "file",
  "module",
  "crate",
  "domain",
  "size",
  "age",
] as const satisfies Choice<"hotspots", "by">[];
export const FRAMES = REQUESTS.flame.by.values;
export const COLOURS = ["module", "heap", "lifetime", "growth"] as const;
export const SORTS = ["own", "inclusive", "peak", "end", "blocks", "size", "life", "promoted", "name"] as const;

export const DIFF_SORTS = ["change", "percent", "before", "after", "blocks", "name"] as const;

const CODECS = {
  view: choice(VIEWS, "overview"),
  // The selection.
  live: moment,
  where: text(),
  window: span,
  windowOf: choice(["allocated", "live", "collected"], "allocated"),
  /** The pause of the garbage collector that the window is: when it began. */
  pause: text(),
  /** Queries for blocks that a peak is shown without. */
  without: list,
  estimator: option(REQUESTS.summary.estimator),
  unit: choice(["bytes", "blocks"], "bytes"),
  // The timeline.
  measure: choice(MEASURES, REQUESTS.series.measure.default),
  split: choice(["branches", ...GROUPS, "none"], "branches"),
  callers: list,
  zoom: span,
  clock: choice(["elapsed", "utc", "local"], "elapsed"),
  folded: flag,
  // The flame graph and the tree.
  direction: choice(["down", "up"], "down"),
  shape: choice(["icicle", "flame"], "icicle"),
  frames: option(REQUESTS.flame.by),
  focus: list,
  hide: list,
  ownCode: flag,
  /** The patterns of own functions and crates, in place of all outside of known libraries. */
  mine: list,
  recursion: flag,
  lines: flag,
  unfolded: flag,
  colour: choice(COLOURS, "module"),
  order: choice(["size", "name"], "size"),
  node: text(),
  /** The visible part of the width, if it was zoomed without a box: in shares. */
  range: span,
  search: text(),
  treeDirection: choice(["up", "down"], "up"),
  open: text(),
  // The table and the lists.
  /** The functions that lists and the timeline attribute memory to, unless all views are of own code. */
  lists: choice(["own", "all"], "own"),
  by: choice(GROUPS, REQUESTS.hotspots.by.default),
  sort: choice(SORTS, "own"),
  ascending: flag,
  rows: text(),
  blockSort: option(REQUESTS.blocks.sort),
  logHeights: flag,
  leaksBy: choice(["site", "function", "module"], REQUESTS.leaks.by.default),
  // The source: a function, a file, or a line of a file; empty for the list of files.
  source: text(),
  // Comparing.
  before: span,
  after: span,
  of: option(REQUESTS.diff.of),
  diffBy: choice(FRAMES, REQUESTS.diff.by.default),
  realOnly: flag,
  diffSort: choice(DIFF_SORTS, "change"),
  diffShape: choice(["table", "flame"], "table"),
  /** The side that the width of boxes shows. */
  diffWidth: choice(["after", "before"], "after"),
  per: choice(["auto", ...REQUESTS.diff.per.values], "auto"),
  // Heap snapshots.
  heap: choice(HEAP_VIEWS, "retained"),
  retainedBy: option(REQUESTS.retained.by),
  retainedSort: choice(RETAINED_SORTS, "reached"),
  at: text(),
  kind: text(),
  heldBy: text(),
  through: text(),
  site: text(),
  address: text(),
  depth: text(REQUESTS.why.depth.default),
  // Datasets of many runs.
  fleet: choice(FLEET_VIEWS, "regressions"),
  amount: choice(AMOUNTS, "allocated"),
  /** The service whose runs are shown; empty for all. */
  service: text(),
  /** A condition on runs, in SQL. */
  runs: text(),
  /** The parts of programs whose changes are listed. */
  sitesOf: choice(SITE_PROPERTIES, "function"),
  /** The versions to compare; empty for the last two. */
  from: text(),
  to: text(),
  runsBy: choice([...RUN_PROPERTIES, "none"], "service"),
  sitesBy: choice([...SITE_PROPERTIES, "none"], "function"),
  over: choice(RUN_PROPERTIES, "version"),
  seriesBy: choice([...RUN_PROPERTIES, "none"], "service"),
} satisfies Record<string, Codec<never> | Codec<unknown>>;

type Codecs = typeof CODECS;
export type State = { readonly [Name in keyof Codecs]: ReturnType<Codecs[Name]["parse"]> };

/**
 * The chosen scope, or the default of the view: who looks for a block does not know that it was live at the peak, so
 * blocks are those of the whole run.
 */
export function momentOf({ live, view }: Pick<State, "live" | "view">): Moment {
  return live ?? (view === "blocks" ? "all" : "peak");
}

/** Parses the state from a URL fragment. Invalid parts get their defaults. */
export function parseState(hash: string): State {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  return Object.fromEntries(
    Object.entries(CODECS).map(([name, codec]) => [name, codec.parse(parameters.getAll(name))]),
  ) as State;
}

/** Encodes the state as a URL fragment. */
export function printState(state: State): string {
  const parameters = new URLSearchParams();
  for (const [name, codec] of Object.entries(CODECS)) {
    const print = codec.print as (value: unknown) => string[];
    for (const value of print(state[name as keyof State])) parameters.append(name, value);
  }
  return parameters.toString();
}

const current = signal<State>(parseState(typeof location === "undefined" ? "" : location.hash));

/** The state of the page. */
export const state = computed(() => current.value);

/** The length of the run, once it is known. */
let duration = Number.POSITIVE_INFINITY;

/** Times after the end of the run are clamped to it: addresses are edited, and shared between traces. */
export function clamped(state: State, duration: number): State {
  const live = typeof state.live === "number" && state.live > duration ? "end" : state.live;
  const [window, zoom, before, after] = [state.window, state.zoom, state.before, state.after].map((one) =>
    clampSpan(one, duration),
  ) as [State["window"], State["zoom"], State["before"], State["after"]];
  return { ...state, live, window, zoom, before, after };
}

/** True if a state is about times of the run. */
export function hasTimes(state: State): boolean {
  return printState(clamped(state, 0)) !== printState(state);
}

/** Tells how long the run is. */
export function setDuration(seconds: number): void {
  duration = seconds;
  const next = clamped(current.value, duration);
  if (printState(next) !== printState(current.value)) amend(next);
}

let rule = (change: Partial<State>): Partial<State> => change;

/** Adjusts other parts of the state that depend on a change. */
export function setRule(next: typeof rule): void {
  rule = next;
}

/**
 * Changes the state. Each change can be undone with the back button. Consecutive changes with the same name, such as
 * typing, are undone together.
 */
export function update(change: Partial<State>, name: string | null = null): void {
  const next = { ...current.value, ...rule(change) };
  const after = printState(next);
  if (printState(current.value) === after) return;
  current.value = next;
  const goesOn = name !== null && entry().name === name;
  const depth = goesOn ? entry().depth : entry().depth + 1;
  history[goesOn ? "replaceState" : "pushState"]({ depth, name }, "", `#${after}`);
}

/** Changes the state without anything to undo, because the trace has grown. */
export function amend(change: Partial<State>): void {
  current.value = { ...current.value, ...change };
  history.replaceState(history.state, "", `#${printState(current.value)}`);
}

/** True if the back button would stay in this page. */
export function canUndo(): boolean {
  return entry().depth > 0;
}

export function undo(): void {
  if (canUndo()) history.back();
}

/** Follows the back and forward buttons and edits of the URL. */
export function followHistory(): void {
  window.addEventListener("popstate", () => {
    current.value = parseState(location.hash);
    setDuration(duration);
  });
}

/** The history entry of the current state. */
function entry(): { depth: number; name: string | null } {
  return (history.state as { depth: number; name: string | null } | null) ?? { depth: 0, name: null };
}
