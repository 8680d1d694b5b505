// Changes between versions: significant growth, or all changes between two versions.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { useKeys } from "../keys";
import { SITE_PROPERTIES, type State, state, update } from "../state/state";
import { Empty, Explain, Select } from "../widgets/controls";
import { DiffBar } from "../widgets/diff-bar";
import { RowFilter } from "../widgets/row-filter";
import { tipOn } from "../widgets/tip";
import { VirtualRows } from "../widgets/virtual";
import { changePercent } from "../views/diff-rows";
import { GroupName } from "./group-name";
import { comparedVersions, versionsOf } from "./questions";
import { amountText, changeText, meanText, shownChanges, shownValue, verdictText } from "./rows";
import type { ChangeRow, FleetDiff, Regressions, VersionRuns } from "./types";

const HEADS: readonly { sort: State["diffSort"]; title: string }[] = [
  { sort: "change", title: "Change" },
  { sort: "percent", title: "%" },
  { sort: "before", title: "Before" },
  { sort: "after", title: "After" },
];

export function ChangesView(props: {
  data: Regressions | FleetDiff | null;
  isStale: boolean;
  runs: readonly VersionRuns[];
}): JSX.Element {
  const now = state.value;
  const { data } = props;
  const filter = useRef<HTMLInputElement>(null);
  const [selected, setSelected] = useState(-1);
  const rows = useMemo(() => shownChanges(data?.rows ?? [], now.diffSort, now.rows), [data, now.diffSort, now.rows]);
  useEffect(() => setSelected(-1), [rows]);
  const move = (to: number) => setSelected(Math.max(0, Math.min(rows.length - 1, to)));
  useKeys("Changes", [
    { key: "ArrowDown", does: "down a row", run: () => move(selected + 1) },
    { key: "ArrowUp", does: "up a row", run: () => move(selected - 1) },
    { key: "j", does: "down a row", run: () => move(selected + 1) },
    { key: "k", does: "up a row", run: () => move(selected - 1) },
    { key: "/", does: "filter the rows", run: () => filter.current?.focus() },
    {
      key: "Escape",
      does: "show all rows",
      run: () => {
        filter.current?.blur();
        update({ rows: "" });
      },
    },
  ]);
  const head = (sort: State["diffSort"], title: string, kind: string) => (
    <span
      key={sort}
      role="columnheader"
      class={kind}
      aria-sort={now.diffSort !== sort ? "none" : sort === "name" ? "ascending" : "descending"}
    >
      <button type="button" onClick={() => update({ diffSort: sort })}>
        {now.diffSort === sort && <span class="sort-arrow">{sort === "name" ? "↑" : "↓"}</span>} {title}
      </button>
    </span>
  );
  const [change, percent, ...sides] = HEADS.map(({ sort, title }) => head(sort, title, "number"));
  const largest = Math.max(...(data?.rows ?? []).map((row) => Math.abs(row.change)), 1);
  return (
    <div class="view">
      <div class="toolbar">
        {now.fleet === "compare" && <Versions runs={props.runs} />}
        <Select
          label="A row is a"
          value={now.sitesOf}
          options={SITE_PROPERTIES.map((value) => ({ value, text: value === "space" ? "heap" : value }))}
          onChange={(sitesOf) => update({ sitesOf })}
        />
        {data && <Verdicts data={data} />}
        <span class="spring" />
        <RowFilter box={filter} />
      </div>
      {data && rows.length === 0 ? (
        <Nothing data={data} />
      ) : (
        <div class={`table-box fleet-changes ${props.isStale ? "stale" : ""}`}>
          {data ? (
            <VirtualRows
              count={rows.length}
              selected={selected}
              role="table"
              label="Changes"
              head={
                <>
                  {change}
                  {percent}
                  <span role="columnheader">
                    <span class="spoken">Bar</span>
                  </span>
                  {sides}
                  <span role="columnheader">
                    Real? <ExplainVerdict />
                  </span>
                  {head("name", "Service and place", "head-name")}
                </>
              }
              row={(index) => {
                const row = rows[index] as ChangeRow;
                return (
                  <div
                    key={index}
                    class={`row ${row.is_significant ? "" : "is-chance"} ${index === selected ? "is-selected" : ""}`}
                    role="row"
                    aria-rowindex={index + 1}
                    aria-selected={index === selected}
                    onClick={() => setSelected(index)}
                  >
                    <span role="cell" class="number">
                      {changeText(data.unit, row)}
                    </span>
                    <span role="cell" class="number muted">
                      {changePercent(row.percent)}
                    </span>
                    <DiffBar change={row.change} largest={largest} />
                    <Side unit={data.unit} row={row} side="before" />
                    <Side unit={data.unit} row={row} side="after" />
                    <span role="cell">
                      <span
                        class={`verdict ${row.is_significant ? "is-real" : ""}`}
                        {...tipOn(<div class="tip-text">{verdictText(row)}</div>)}
                      >
                        {row.p === null ? "○ not tested" : row.is_significant ? "● real" : "○ chance"}
                      </span>
                    </span>
                    <GroupName group={row.group} />
                  </div>
                );
              }}
            />
          ) : (
            <p class="view-note muted" role="status">
              Asking all runs …
            </p>
          )}
        </div>
      )}
      {data && data.hidden_rows > 0 && <p class="view-note muted">{count(data.hidden_rows)} more rows.</p>}
    </div>
  );
}

/** The mean of a side, with its error and the number of runs on demand. */
function Side({
  unit,
  row,
  side,
}: {
  unit: Regressions["unit"];
  row: ChangeRow;
  side: "before" | "after";
}): JSX.Element {
  const mean = row[side];
  const name = side === "before" ? row.before_name : row.after_name;
  return (
    <span
      role="cell"
      class="number muted"
      {...tipOn(`${name}: ${meanText(unit, mean)}, mean of ${count(mean.runs)} ${mean.runs === 1 ? "run" : "runs"}`)}
    >
      {amountText(unit, mean.mean)}
    </span>
  );
}

/** Chooses the versions to compare. */
function Versions({ runs }: { runs: readonly VersionRuns[] }): JSX.Element | null {
  const now = state.value;
  const pair = comparedVersions(now, runs);
  if (!pair) return null;
  const options = versionsOf(now.service, runs).map((value) => ({ value, text: shownValue(value) }));
  return (
    <>
      <Select label="Before" value={pair.before} options={options} onChange={(from) => update({ from })} />
      <Select label="After" value={pair.after} options={options} onChange={(to) => update({ to })} />
    </>
  );
}

/** The number of tests, and the versions that were compared. */
function Verdicts({ data }: { data: Regressions | FleetDiff }): JSX.Element {
  const tested = `${count(data.tested)} ${data.tested === 1 ? "group" : "groups"} tested`;
  if ("significant" in data) {
    return (
      <span class="muted">
        {count(data.after_runs)} against {count(data.before_runs)} runs; {tested}, <b>{count(data.significant)}</b>{" "}
        changed significantly
      </span>
    );
  }
  const [first, ...others] = data.services;
  return (
    <span
      class="muted"
      {...tipOn(
        <div class="tip-text">
          {data.services.map((one) => (
            <div key={one.service}>
              {shownValue(one.service)}: {one.after} ({count(one.after_runs)} runs) against {one.before} (
              {count(one.before_runs)} runs)
            </div>
          ))}
          {data.not_compared.length > 0 && (
            <div>Without two versions: {data.not_compared.map(shownValue).join(", ")}</div>
          )}
        </div>,
      )}
    >
      {first
        ? `${shownValue(first.service)} ${first.after} against ${first.before}${others.length > 0 ? `, and ${count(others.length)} more ${others.length === 1 ? "service" : "services"}` : ""}; `
        : ""}
      {tested}
    </span>
  );
}

function Nothing({ data }: { data: Regressions | FleetDiff }): JSX.Element {
  if (data.rows.length > 0) return <Empty title="No row matches the filter" />;
  if ("significant" in data) return <Empty title="No site that matches has allocated anything in these versions" />;
  if (data.services.length === 0) {
    return (
      <Empty title="No service has two versions to compare">
        Label runs with their version: heapline dataset add --label version=1.5.
      </Empty>
    );
  }
  return (
    <Empty title="Nothing has grown significantly">
      {count(data.tested)} groups were tested, at a false discovery rate of 5 %. Compare versions to see all changes.
    </Empty>
  );
}

function ExplainVerdict(): JSX.Element {
  return (
    <Explain>
      Each group is tested with Welch's t-test on the values of its runs, so that run-to-run variation counts. Real are
      those that pass the Benjamini-Hochberg procedure for many tests, at a false discovery rate of 5 %: of all that are
      called real, one in twenty is not, on average. ± is the 95 % interval of the change of the mean.
    </Explain>
  );
}
