// Derives requests about a dataset from the state.

import type { FleetReport, Question } from "../api/question";
import type { State } from "../state/state";
import type { VersionRuns } from "./types";

const ROWS = "1000";

export const runsQuestion: Question = { report: "runs", options: [] };

/** The question of the view on the screen; null if there is nothing to compare. */
export function fleetQuestion(state: State, runs: readonly VersionRuns[]): Question | null {
  switch (state.fleet) {
    case "regressions":
      return question(state, "regressions", { by: state.sitesOf, rows: ROWS });
    case "compare": {
      const pair = comparedVersions(state, runs);
      return pair && question(state, "diff", { ...pair, by: `version,service,${state.sitesOf}`, rows: ROWS });
    }
    case "top":
      return question(state, "top", { by: topBy(state), rows: ROWS });
    case "trend":
      return question(state, "trend", { by: trendBy(state) });
  }
}

/** The versions to compare: those chosen, or the last two. Null if there is one only. */
export function comparedVersions(
  { service, from, to }: Pick<State, "service" | "from" | "to">,
  runs: readonly VersionRuns[],
): { before: string; after: string } | null {
  const versions = versionsOf(service, runs);
  const known = (version: string) => (versions.includes(version) ? version : undefined);
  const after = known(to) ?? versions.at(-1);
  const earlier = versions.filter((version) => version !== after);
  const before =
    known(from) ??
    earlier.filter((version) => versions.indexOf(version) < versions.indexOf(after ?? "")).at(-1) ??
    earlier.at(-1);
  return after === undefined || before === undefined ? null : { before, after };
}

/** The versions of a service, or of all, in the order of their first runs. */
export function versionsOf(service: string, runs: readonly VersionRuns[]): string[] {
  const ofService = runs.filter((one) => service === "" || one.service === service);
  return [...new Set(ofService.map((one) => one.version))].filter((version) => version !== "");
}

/** Without either, all runs are one group. */
function topBy({ runsBy, sitesBy }: State): string {
  const by = [runsBy, sitesBy].filter((one) => one !== "none");
  return by.length === 0 ? "service" : by.join(",");
}

function trendBy({ over, seriesBy }: State): string {
  return seriesBy === "none" || seriesBy === over ? over : `${over},${seriesBy}`;
}

function question(state: State, report: FleetReport, options: Record<string, string>): Question {
  const all: Record<string, string> = {
    ...options,
    measure: state.amount,
    service: state.service,
    where: state.where.trim(),
    runs: state.runs.trim(),
  };
  return { report, options: Object.entries(all).filter(([, value]) => value !== "") };
}
