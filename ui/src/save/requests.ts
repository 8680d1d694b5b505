// The addresses of files that the server writes.

import { REQUESTS } from "../api/requests";
import { comparesWindows, scope, type TraceFacts } from "../state/questions";
import { shownScope } from "../state/scope";
import { parseState, printState, type State } from "../state/state";

/** The formats of other tools, as `heapline export --format` names them. */
export const FORMATS = [
  { format: "pprof", text: "pprof" },
  { format: "speedscope", text: "speedscope" },
  { format: "firefox", text: "Firefox Profiler" },
  { format: "perfetto", text: "Perfetto" },
  { format: "collapsed", text: "collapsed stacks" },
] as const;

export type Format = (typeof FORMATS)[number]["format"];

/** The selection that the views show: windows that are compared do not restrict it. */
export function shownSelection(state: State, trace: TraceFacts): string[] {
  const window = comparesWindows(state, trace) ? null : state.window;
  return scope({ ...state, live: shownScope(state) ?? "all", window }).where;
}

/** The selection and the display of functions in words. */
export function selectionText(state: State, queries: readonly string[]): string {
  return [
    ...queries,
    ...state.hide.map((name) => `${name} hidden`),
    ...(state.ownCode
      ? [`libraries attributed to own code${state.mine.length > 0 ? `: ${state.mine.join(", ")}` : ""}`]
      : []),
  ].join("; ");
}

/** The address of the stacks of what the page shows in the format of another tool. */
export function exportAddress(state: State, trace: TraceFacts, format: Format): string {
  const live = shownScope(state) ?? "all";
  const pairs: [string, string][] = [
    ["format", format],
    ...shownSelection(state, trace).map((query): [string, string] => ["where", query]),
  ];
  if (state.estimator !== REQUESTS.summary.estimator.default) pairs.push(["estimator", state.estimator]);
  // It has no stacks.
  if (format === "perfetto") return `export?${new URLSearchParams(pairs)}`;
  pairs.push(...state.hide.map((pattern): [string, string] => ["hide", pattern]));
  if (state.recursion) pairs.push(["keep-recursion", "true"]);
  if (state.ownCode)
    pairs.push(["own-code", "true"], ...state.mine.map((pattern): [string, string] => ["mine", pattern]));
  if (state.lines && format !== "pprof") pairs.push(["sites", "true"]);
  // pprof opens with what is live at this time, which is the end if none is given.
  if (format === "pprof" && live !== "all") pairs.push(["at", typeof live === "number" ? `${live}s` : live]);
  return `export?${new URLSearchParams(pairs)}`;
}

/** The parts of the state that report files have no answers for. */
const DEFAULTS = parseState("");
const NOT_IN_REPORTS = [
  "where",
  "callers",
  "ownCode",
  "mine",
  "estimator",
  "zoom",
  "window",
  "windowOf",
  "pause",
  "recursion",
  "lines",
  "frames",
  "before",
  "after",
  "realOnly",
] as const satisfies (keyof State)[];

/** The state for a report file, and true if it lacks a part of what the page shows. */
export function reportState(state: State): { hash: string; isLess: boolean } {
  const kept: State = {
    ...state,
    ...Object.fromEntries(NOT_IN_REPORTS.map((name) => [name, DEFAULTS[name]])),
    live: typeof state.live === "number" ? null : state.live,
  };
  return { hash: printState(kept), isLess: printState(kept) !== printState(state) };
}

export function reportAddress(state: State): string {
  const { hash } = reportState(state);
  return hash === "" ? "report" : `report?${new URLSearchParams({ state: hash })}`;
}
