// The page of a dataset: what changed, and what costs most, over many runs.

import type { JSX } from "preact";
import { Connection } from "../connection";
import { count } from "../format";
import { HeaderBar } from "../header";
import { openHelp } from "../help";
import { useKeys } from "../keys";
import { isAwaited, isFatal, useAnswer } from "../state/answers";
import { status } from "../state/session";
import { FLEET_VIEWS, state, update } from "../state/state";
import { toggleTheme } from "../theme";
import { Empty } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { Tabs, viewKeys } from "../widgets/tabs";
import { ChangesView } from "./changes";
import { FleetFilter } from "./filter";
import { fleetQuestion } from "./questions";
import { TopView } from "./top";
import { TrendView } from "./trend";
import type { FleetDiff, Regressions, Top, Trend, VersionRuns } from "./types";

const VIEW_NAMES: Record<(typeof FLEET_VIEWS)[number], string> = {
  regressions: "Regressions",
  compare: "Compare versions",
  top: "Top",
  trend: "Trend",
};

export function FleetPage({ runs }: { runs: readonly VersionRuns[] }): JSX.Element {
  const now = state.value;
  const question = fleetQuestion(now, runs);
  const answer = useAnswer<unknown>(question);
  const choose = (fleet: (typeof FLEET_VIEWS)[number]) => update({ fleet, rows: "" });
  useKeys("Everywhere", [
    { key: "?", does: "this help", run: openHelp },
    ...viewKeys(FLEET_VIEWS, VIEW_NAMES, 1, choose),
    { key: "d", does: "light or dark", run: toggleTheme },
  ]);
  const total = runs.reduce((sum, one) => sum + one.runs, 0);
  const services = new Set(runs.map((one) => one.service)).size;
  const days = runs.flatMap((one) => [one.first_day, one.last_day]).sort();
  return (
    <div class="page">
      <HeaderBar program={status.value?.trace ?? ""} answer={answer}>
        <div class="facts heap-facts">
          <span>
            <b>{count(total)}</b> {total === 1 ? "run" : "runs"}
          </span>
          <span>
            {count(services)} {services === 1 ? "service" : "services"}
          </span>
          {days.length > 0 && <span>{days[0] === days.at(-1) ? days[0] : `${days[0]} to ${days.at(-1)}`}</span>}
        </div>
      </HeaderBar>
      <Connection />
      <main>
        <FleetFilter runs={runs} />
        <section class="panel views" aria-label="Views">
          <Tabs views={FLEET_VIEWS} names={VIEW_NAMES} firstKey={1} view={now.fleet} onChoose={choose} />
          <div id="view" role="tabpanel" tabIndex={-1} aria-label={VIEW_NAMES[now.fleet]} aria-busy={isAwaited(answer)}>
            {answer.error && isFatal(answer) ? (
              <Problem error={answer.error} />
            ) : question === null ? (
              <Empty title="There is only one version">
                Label runs with their version: heapline dataset add --label version=1.5.
              </Empty>
            ) : (
              <View
                key={now.fleet}
                data={isOf(answer.of, question.report) ? answer.data : null}
                isStale={answer.isStale}
                runs={runs}
              />
            )}
          </div>
        </section>
      </main>
    </div>
  );
}

/** True if an address is that of a report: the last answer may be to the question of another view. */
function isOf(address: string | null, report: string): boolean {
  return address !== null && address.split("?")[0] === report;
}

function View(props: { data: unknown; isStale: boolean; runs: readonly VersionRuns[] }): JSX.Element {
  const { data, isStale, runs } = props;
  switch (state.value.fleet) {
    case "regressions":
      return <ChangesView data={data as Regressions | null} isStale={isStale} runs={runs} />;
    case "compare":
      return <ChangesView data={data as FleetDiff | null} isStale={isStale} runs={runs} />;
    case "top":
      return <TopView data={data as Top | null} isStale={isStale} />;
    case "trend":
      return <TrendView data={data as Trend | null} isStale={isStale} />;
  }
}
