// Derives requests from the state. The only code that knows both the state and the options of commands.

import { type Choice, type Question, question } from "../api/question";
import { queryTime } from "../format";
import type { Span } from "./codec";
import { inQuery, withClause } from "./patterns";
import { momentOf, type State } from "./state";

/** A window in the syntax of the query language. */
export function windowClause(window: Span, of: State["windowOf"]): string {
  return `${of} in ${queryTime(window.from)}..${queryTime(window.to)}`;
}

/** The filter as typed. */
function typed(state: State): string[] {
  const text = state.where.trim();
  return text === "" ? [] : [text];
}

/** The layer of the timeline that is on its own, in the syntax of the query language: functions that call each other. */
export function layerClause(state: State): string | null {
  if (state.callers.length === 0) return null;
  const { split } = state;
  const part = split === "module" || split === "file" || split === "crate" ? split : "function";
  const names = state.callers.map(inQuery).join(" called by ");
  const hidden = state.hide.map((pattern) => ` hiding ${inQuery(pattern)}`).join("");
  const isOwn = isOfOwnLayers(state);
  const mine = isOwn ? state.mine.map((pattern) => ` mine ${inQuery(pattern)}`).join("") : "";
  return `${isOwn ? "own " : ""}${part} = ${names}${mine}${hidden}`;
}

/** The filter of the state, without the point in time. */
function blocks(state: State) {
  const where = typed(state);
  const layer = layerClause(state);
  if (layer !== null) where.push(layer);
  if (state.window) where.push(windowClause(state.window, state.windowOf));
  return { where, estimator: state.estimator };
}

/** The filter of the state. */
export function scope(state: State) {
  const { where, estimator } = blocks(state);
  const live = momentOf(state);
  if (live !== "all") where.push(`live at ${typeof live === "number" ? queryTime(live) : live}`);
  return { where, estimator };
}

/** The display of functions. */
function look(state: State) {
  return { hide: state.hide, "own-code": state.ownCode, mine: state.ownCode ? state.mine : [] };
}

/** True if the layers of the timeline are attributed to own code. */
function isOfOwnLayers({ ownCode, lists, split }: State): boolean {
  return ownCode || (lists === "own" && ["branches", "function", "site"].includes(split));
}

/** The display of functions in lists, which attribute memory to own code by default. */
function lookOfLists(state: State) {
  const isOfAll = !state.ownCode && state.lists === "all";
  return { ...look(state), mine: isOfAll ? [] : state.mine, "all-code": isOfAll };
}

/** The default display of functions: the only one that report files have. */
export const PLAIN_LOOK = { hide: [], ownCode: false, mine: [], lists: "own" } as const satisfies Partial<State>;

export const infoQuestion = question("info");

/** The totals do not need the findings of a summary, which take most of its time. */
const NO_FINDINGS = { findings: 0 } as const;

/** The totals of the whole trace. */
export function wholeQuestion(state: State): Question {
  return question("summary", { estimator: state.estimator, ...NO_FINDINGS });
}

/** The totals of the selection. Windows that are compared do not restrict it. */
export function summaryQuestion(state: State, trace: TraceFacts): Question {
  const chosen = blocks(comparesWindows(state, trace) ? { ...state, window: null } : state);
  return question("summary", { ...chosen, ...NO_FINDINGS });
}

/** The peak of the filtered blocks within the window, and the one without some of them. */
export function peakQuestion(state: State): Question {
  return question("peak", {
    ...blocks({ ...state, window: null }),
    without: state.without,
    window: state.window ? `${queryTime(state.window.from)}..${queryTime(state.window.to)}` : null,
    rows: 0,
  });
}

/** Findings and ranked lists. Each list has a point in time of its own, so the chosen one does not filter them. */
export function overviewQuestion(state: State): Question {
  return question("summary", { ...blocks(state), by: "function", ...lookOfLists(state) });
}

/** The totals of the selection from a server, which the overview has too. */
export function totalsQuestion(state: State, trace: TraceFacts): Question {
  return state.view === "overview" ? overviewQuestion(state) : summaryQuestion(state, trace);
}

/** Points of a timeline: the number for which report files have answers. */
export const POINTS = 400;

/** Memory over time. The timeline marks the window and the point in time, so these do not filter it. */
export function seriesQuestion(state: State, points: number): Question {
  const isDrilled = state.callers.length > 0;
  const { split } = state;
  // The callers of a line are functions.
  const hasNoGroups =
    split === "none" || split === "branches" || (isDrilled && (split === "site" || split === "function"));
  return question("series", {
    where: typed(state),
    estimator: state.estimator,
    measure: state.measure,
    by: hasNoGroups ? null : split,
    branches: split === "branches" && !isDrilled,
    points,
    "callers-of": state.callers,
    ...lookOfLists(state),
    // Callers of a function are those of the function as it is, unless told.
    ...(isDrilled ? { "own-code": isOfOwnLayers(state) } : {}),
    from: state.zoom ? queryTime(state.zoom.from) : null,
    to: state.zoom ? queryTime(state.zoom.to) : null,
  });
}

/** The total of all blocks, to compare a filtered timeline with. */
export function wholeSeriesQuestion(state: State, points: number): Question {
  return seriesQuestion({ ...state, where: "", callers: [], ...PLAIN_LOOK, split: "none" }, points);
}

/** The total without the blocks of the what-if, to compare a timeline with; null if there are none. */
export function withoutSeriesQuestion(state: State, points: number): Question | null {
  if (state.without.length === 0) return null;
  const where = state.without.reduce((where, query) => withClause(where, `not (${query})`), state.where);
  return seriesQuestion({ ...state, where, callers: [], split: "none" }, points);
}

function stacks(state: State, isUp: boolean) {
  return {
    by: state.frames,
    "bottom-up": isUp,
    ...look(state),
    "keep-recursion": state.recursion,
    sites: state.lines && !isUp,
    min: "0.1%",
  };
}

export function flameQuestion(state: State): Question {
  const isUp = state.direction === "up" && state.focus.length === 0;
  return question("flame", { ...scope(state), ...stacks(state, isUp), focus: state.focus });
}

export function treeQuestion(state: State): Question {
  return question("flame", { ...scope(state), ...stacks(state, state.treeDirection === "up") });
}

export const TABLE_ROWS = 1000;

/** The columns of the table as the command names them. */
const SORTS: Record<State["sort"], Choice<"hotspots", "sort">> = {
  own: "allocated",
  inclusive: "inclusive",
  peak: "peak",
  end: "end",
  blocks: "blocks",
  size: "size",
  life: "lifetime",
  promoted: "promoted",
  name: "name",
};

export function tableQuestion(state: State): Question {
  return question("hotspots", {
    ...scope(state),
    by: state.by,
    sort: SORTS[state.sort],
    reverse: state.ascending,
    ...lookOfLists(state),
    rows: TABLE_ROWS,
  });
}

/** The table of all times, for the growth of memory that is live at a point in time. */
export function growthQuestion(state: State): Question {
  return tableQuestion({ ...state, live: "all", window: null });
}

export function statsQuestion(state: State): Question {
  return question("stats", scope(state));
}

/** Rows of a list of blocks. Each has a stack, so these are fewer than those of a table. */
const BLOCK_ROWS = 500;

export function blocksQuestion(state: State): Question {
  return question("blocks", { ...scope(state), sort: state.blockSort, rows: BLOCK_ROWS, hide: state.hide });
}

export function heatmapQuestion(state: State): Question {
  return question("heatmap", scope(state));
}

/** The longest pauses that are shown. */
export const PAUSES = 20;

/** The garbage collector in a part of the run. Blocks are selected for what single sites promoted only. */
function gcQuestion(state: State, window: Span | null): Question {
  return question("gc", {
    ...blocks({ ...state, window: null }),
    window: window ? `${queryTime(window.from)}..${queryTime(window.to)}` : null,
    rows: PAUSES,
    points: POINTS,
    ...lookOfLists(state),
  });
}

/** The garbage collector as the band below the timeline shows it. */
export function bandQuestion(state: State): Question {
  return gcQuestion(state, state.zoom);
}

/** True if the window is a pause of the garbage collector that was chosen. */
export function isOfPause({ window, pause }: Pick<State, "window" | "pause">): boolean {
  return window !== null && pause === String(window.from);
}

/** The garbage collector in the window. If that is one of the pauses, it would be the only one. */
export function collectorQuestion(state: State): Question {
  return gcQuestion(state, isOfPause(state) ? null : state.window);
}

export function leaksQuestion(state: State): Question {
  return question("leaks", {
    ...blocks(state),
    by: state.leaksBy,
    ...lookOfLists(state),
    rows: 100,
  });
}

/** The lines of a function or a file. */
export function sourceQuestion(state: State): Question {
  return question("source", { ...scope(state), name: state.source, all: true, ...look(state) });
}

/** The files, to choose one. */
export function sourceFilesQuestion(state: State): Question {
  return question("hotspots", { ...scope(state), by: "file", sort: "inclusive", ...look(state), rows: TABLE_ROWS });
}

/** The properties of a trace that requests depend on. */
export interface TraceFacts {
  duration: number;
  /** True if there is another trace to compare with. */
  hasOther: boolean;
}

/** Rows of a comparison: so many that few programs have more. */
export const DIFF_ROWS = 5000;

/** True if the view compares two windows of the run, which the timeline then shows in place of the brushed one. */
export function comparesWindows(state: State, trace: TraceFacts): boolean {
  return state.view === "compare" && diffWindows(state, trace) !== null;
}

/** The compared windows: by default the halves of the run; null if two traces are compared. */
export function diffWindows(state: State, trace: TraceFacts): { before: Span; after: Span } | null {
  if (trace.hasOther && !state.before && !state.after) return null;
  // In whole microseconds, as report files have it.
  const middle = Math.floor(Math.round(trace.duration * 1e6) / 2) / 1e6;
  return {
    before: state.before ?? { from: 0, to: middle },
    after: state.after ?? { from: middle, to: trace.duration },
  };
}

/**
 * The change that compares a window: with the brushed one, with the one before if two are compared already, otherwise with the
 * time before it.
 */
export function comparedWith(state: State, after: Span, duration: number): Partial<State> {
  // A window has no peak.
  const of = state.of === "peak" ? "allocated" : state.of;
  if (state.view === "compare" && (state.before || !state.window)) return { after, of };
  const rest = after.from > 0 ? { from: 0, to: after.from } : { from: after.to, to: duration };
  const before = state.window ?? (rest.from < rest.to ? rest : null);
  return { view: "compare", diffShape: "flame", before, after, of, node: "", range: null };
}

/** The options that comparisons as a table and as a flame graph share; null if there are no windows, because no time passed. */
function compared(state: State, trace: TraceFacts) {
  const windows = diffWindows(state, trace);
  if (windows && trace.duration === 0) return null;
  const text = (window: Span) => `${queryTime(window.from)}..${queryTime(window.to)}`;
  return {
    window: windows ? [text(windows.before), text(windows.after)] : [],
    ...blocks(windows ? { ...state, window: null } : state),
    of: state.of,
    by: state.diffBy,
    per: state.per === "auto" ? null : state.per,
  };
}

export function diffQuestion(state: State, trace: TraceFacts): Question | null {
  const options = compared(state, trace);
  return (
    options && question("diff", { ...options, ...lookOfLists(state), rows: DIFF_ROWS, "only-real": state.realOnly })
  );
}

export function diffTreeQuestion(state: State, trace: TraceFacts): Question | null {
  const options = compared(state, trace);
  return options && question("diff-tree", { ...options, ...look(state), min: "0.1%" });
}

/** The question of the view on the screen: "copy as command" is about it. */
export function viewQuestion(state: State, trace: TraceFacts): Question | null {
  switch (state.view) {
    case "overview":
      return overviewQuestion(state);
    case "flame":
      return flameQuestion(state);
    case "table":
      return tableQuestion(state);
    case "tree":
      return treeQuestion(state);
    case "lifetimes":
      return statsQuestion(state);
    case "leaks":
      return leaksQuestion(state);
    case "compare":
      return state.diffShape === "flame" ? diffTreeQuestion(state, trace) : diffQuestion(state, trace);
    case "blocks":
      return blocksQuestion(state);
    case "source":
      return state.source === "" ? sourceFilesQuestion(state) : sourceQuestion(state);
    case "collector":
      return collectorQuestion(state);
    case "snapshots":
      return null;
  }
}

/** The initial requests of the page, of a trace whose length is not known yet. */
export function firstQuestions(state: State, trace: TraceFacts): Question[] {
  const first = [seriesQuestion(state, POINTS), totalsQuestion(state, trace)];
  // What is compared by default depends on how long the run was. The overview is asked for with the totals.
  const view = state.view === "compare" || state.view === "overview" ? null : viewQuestion(state, trace);
  return view ? [...first, view] : first;
}
