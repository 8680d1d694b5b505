// Derives requests from the state. The only code that knows both the state and the options of commands.

import { type Choice, type Question, question } from "../api/question";
import { queryTime } from "../format";
import type { Span } from "./codec";
import type { State } from "./state";

/** A window in the syntax of the query language. */
export function windowClause(window: Span, of: State["windowOf"]): string {
  return `${of} in ${queryTime(window.from)}..${queryTime(window.to)}`;
}

/** The filter as typed. */
function typed(state: State): string[] {
  const text = state.where.trim();
  return text === "" ? [] : [text];
}

/** The filter of the state, without the point in time. */
function blocks(state: State) {
  const where = typed(state);
  if (state.window) where.push(windowClause(state.window, state.windowOf));
  return { where, estimator: state.estimator };
}

/** The filter of the state. */
function scope(state: State) {
  const { where, estimator } = blocks(state);
  if (state.live !== "all")
    where.push(`live at ${typeof state.live === "number" ? queryTime(state.live) : state.live}`);
  return { where, estimator };
}

/** The display of functions. */
function look(state: State) {
  return { hide: state.hide, "own-code": state.ownCode };
}

/** Functions as they are: the only display that the tables of report files have. */
export const PLAIN_LOOK = { hide: [], ownCode: false } as const satisfies Partial<State>;

export const infoQuestion = question("info");

/** The page does not show the findings of a summary, which take most of its time. */
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

/** Points of a timeline: the number for which report files have answers. */
export const POINTS = 400;

/** Memory over time. The timeline marks the window and the point in time, so these do not filter it. */
export function seriesQuestion(state: State, points: number): Question {
  const isDrilled = state.callers.length > 0;
  // The callers of a line are functions.
  const by =
    state.split === "none" || (isDrilled && (state.split === "site" || state.split === "function"))
      ? null
      : state.split;
  return question("series", {
    where: typed(state),
    estimator: state.estimator,
    measure: state.measure,
    by,
    points,
    "callers-of": state.callers,
    ...look(state),
    from: state.zoom ? queryTime(state.zoom.from) : null,
    to: state.zoom ? queryTime(state.zoom.to) : null,
  });
}

/** The total of all blocks, to compare a filtered timeline with. */
export function wholeSeriesQuestion(state: State, points: number): Question {
  return seriesQuestion({ ...state, where: "", callers: [], ...PLAIN_LOOK, split: "none" }, points);
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
    ...look(state),
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

export function heatmapQuestion(state: State): Question {
  return question("heatmap", scope(state));
}

export function leaksQuestion(state: State): Question {
  return question("leaks", {
    ...blocks(state),
    by: state.leaksBy,
    ...look(state),
    rows: 100,
  });
}

/** The properties of a trace that requests depend on. */
export interface TraceFacts {
  duration: number;
  /** The only available bounds of windows, in report files. */
  slices: readonly number[] | null;
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
  const { slices, duration } = trace;
  const middle = slices?.[Math.floor(slices.length / 2)] ?? Number((duration / 2).toFixed(6));
  return {
    before: state.before ?? { from: slices?.[0] ?? 0, to: middle },
    after: state.after ?? { from: middle, to: slices?.at(-1) ?? duration },
  };
}

/** Null if there are no windows, because no time passed. */
export function diffQuestion(state: State, trace: TraceFacts): Question | null {
  const windows = diffWindows(state, trace);
  if (windows && trace.duration === 0) return null;
  const text = (window: Span) => `${queryTime(window.from)}..${queryTime(window.to)}`;
  return question("diff", {
    window: windows ? [text(windows.before), text(windows.after)] : [],
    ...blocks(windows ? { ...state, window: null } : state),
    of: state.of,
    by: state.diffBy,
    ...look(state),
    rows: DIFF_ROWS,
    "only-real": state.realOnly,
  });
}

/** The question of the view on the screen: "copy as command" is about it. */
export function viewQuestion(state: State, trace: TraceFacts): Question | null {
  switch (state.view) {
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
      return diffQuestion(state, trace);
    case "snapshots":
      return null;
  }
}

/** The initial requests of the page, of a trace whose length is not known yet. */
export function firstQuestions(state: State, trace: TraceFacts): Question[] {
  const first = [seriesQuestion(state, POINTS), summaryQuestion(state, trace)];
  // What is compared by default depends on how long the run was.
  const view = state.view === "compare" ? null : viewQuestion(state, trace);
  return view ? [...first, view] : first;
}
