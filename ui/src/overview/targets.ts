// The states of the page that show the findings and the rows of the overview.

import type { Ranking, Summary, TraceFinding } from "../api/types";
import { patternOf, withClause } from "../state/patterns";
import type { State } from "../state/state";

/** Where a finding is shown: in a view, or in the details of the recording. */
export type Target = Partial<State> | "details";

/** The choices of a view that a finding must not inherit. */
const FRESH = { node: "", range: null, focus: [], search: "", rows: "" } as const satisfies Partial<State>;

const BY_OWN = { by: "function", sort: "own", ascending: false } as const satisfies Partial<State>;

/**
 * The view that shows a finding, with the same figure. Report files have no filters and no attribution to own code:
 * there it is the closest view that they have.
 */
export function targetOf(finding: TraceFinding, now: State, hasServer: boolean): Target {
  const parameters = new Map(finding.parameters);
  const ownCode = parameters.has("own-code") && hasServer;
  const name = finding.sentence.find((phrase) => "name" in phrase)?.name ?? null;
  const inFlame = (live: State["live"]): Partial<State> => ({
    ...FRESH,
    view: "flame",
    live,
    ownCode,
    focus: name === null ? [] : [patternOf(name)],
  });
  switch (finding.kind) {
    case "damage":
    case "resolution":
      return "details";
    case "peak":
      return hasServer
        ? { ...FRESH, ...BY_OWN, view: "table", live: "peak", lists: "own" }
        : { ...FRESH, view: "flame", live: "peak" };
    case "collector":
      return { ...FRESH, view: "collector" };
    case "total_growth":
    case "growth":
      return { ...FRESH, view: "leaks", leaksBy: "function", lists: "own" };
    case "peak_holder":
      return hasServer ? { ...FRESH, ...BY_OWN, view: "table", live: "peak", lists: "own" } : inFlame("peak");
    case "peak_call":
      return inFlame("peak");
    case "large_block":
      return { ...FRESH, view: "blocks", live: "peak", blockSort: "size" };
    case "size_class":
      return hasServer
        ? { ...FRESH, ...BY_OWN, view: "table", live: "peak", by: "size" }
        : { ...FRESH, view: "lifetimes", live: "peak" };
    case "promoted_garbage":
    case "total_garbage":
    case "garbage": {
      const within = `collected and lifetime <= ${parameters.get("within")}`;
      const clause = finding.kind === "promoted_garbage" ? `promoted and ${within}` : within;
      if (!hasServer) return name === null ? { ...FRESH, view: "lifetimes", live: "all" } : inFlame("all");
      return { ...FRESH, ...BY_OWN, view: "table", live: "all", lists: "own", where: withClause(now.where, clause) };
    }
  }
}

const SCOPES: Record<Ranking["kind"], State["live"]> = {
  live_at_peak: "peak",
  live_at_end: "end",
  allocated: "all",
  blocks: "all",
  short_lived: "all",
};

/** The memory that a list is about. */
function scopeOfList(
  kind: Ranking["kind"],
  { short, subject }: Pick<Summary, "short" | "subject">,
  now: State,
  hasServer: boolean,
): Partial<State> {
  // Lifetimes are microseconds, and those of the list are below this number.
  const limit = `${Math.ceil(short * 1e6 - 1e-3) / 1e6}s`;
  return {
    ...FRESH,
    live: SCOPES[kind],
    unit: kind === "blocks" ? "blocks" : "bytes",
    ownCode: hasServer && subject.own_code !== undefined,
    ...(kind === "short_lived" && hasServer
      ? { where: withClause(now.where, `collected and lifetime < ${limit}`) }
      : {}),
  };
}

/** The flame graph of a row of a list: the callers of a function, for the memory that the list is about. */
export function targetOfRow(
  kind: Ranking["kind"],
  name: string,
  summary: Pick<Summary, "short" | "subject">,
  now: State,
  hasServer: boolean,
): Partial<State> {
  return { ...scopeOfList(kind, summary, now, hasServer), view: "flame", focus: [patternOf(name)] };
}

/** The table with all rows of a list. */
export function targetOfList(
  kind: Ranking["kind"],
  summary: Pick<Summary, "short" | "subject">,
  now: State,
): Partial<State> {
  const sort = kind === "blocks" ? "blocks" : BY_OWN.sort;
  return { ...scopeOfList(kind, summary, now, true), ...BY_OWN, sort, view: "table" };
}
