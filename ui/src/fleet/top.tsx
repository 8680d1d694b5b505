// The groups that cost most, on average over runs.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { useKeys } from "../keys";
import { RUN_PROPERTIES, SITE_PROPERTIES, state, update } from "../state/state";
import { Empty, Select } from "../widgets/controls";
import { RowFilter } from "../widgets/row-filter";
import { VirtualRows } from "../widgets/virtual";
import { GroupName } from "./group-name";
import { found, meanText } from "./rows";
import type { Top, TopRow } from "./types";

export function TopView({ data, isStale }: { data: Top | null; isStale: boolean }): JSX.Element {
  const now = state.value;
  const filter = useRef<HTMLInputElement>(null);
  const [selected, setSelected] = useState(-1);
  const rows = useMemo(() => found(data?.rows ?? [], now.rows), [data, now.rows]);
  useEffect(() => setSelected(-1), [rows]);
  const move = (to: number) => setSelected(Math.max(0, Math.min(rows.length - 1, to)));
  useKeys("Top", [
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
  const largest = Math.max(...rows.map((row) => row.percent), 1e-9);
  return (
    <div class="view">
      <div class="toolbar">
        <Select
          label="Runs by"
          value={now.runsBy}
          options={[...RUN_PROPERTIES, "none" as const].map((value) => ({ value, text: value }))}
          onChange={(runsBy) => update({ runsBy })}
        />
        <Select
          label="Sites by"
          value={now.sitesBy}
          options={[...SITE_PROPERTIES, "none" as const].map((value) => ({
            value,
            text: value === "space" ? "heap" : value,
          }))}
          onChange={(sitesBy) => update({ sitesBy })}
        />
        {data && (
          <span class="muted">
            mean of {count(data.runs)} {data.runs === 1 ? "run" : "runs"}; ± is the 95 % interval of the mean
          </span>
        )}
        <span class="spring" />
        <RowFilter box={filter} />
      </div>
      {data && rows.length === 0 ? (
        <Empty title="Nothing here">Nothing was allocated, or nothing matches.</Empty>
      ) : (
        <div class={`table-box fleet-top ${isStale ? "stale" : ""}`}>
          {data ? (
            <VirtualRows
              count={rows.length}
              selected={selected}
              role="table"
              label="Groups that cost most"
              head={
                <>
                  <span role="columnheader" class="number">
                    Mean per run
                  </span>
                  <span role="columnheader" class="number">
                    %
                  </span>
                  <span role="columnheader">
                    <span class="spoken">Bar</span>
                  </span>
                  <span role="columnheader" class="number">
                    Runs
                  </span>
                  <span role="columnheader" class="head-name">
                    {Object.keys(data.rows[0]?.group ?? {}).join(", ")}
                  </span>
                </>
              }
              row={(index) => {
                const row = rows[index] as TopRow;
                return (
                  <div
                    key={index}
                    class={`row ${row.error >= row.mean ? "is-chance" : ""} ${index === selected ? "is-selected" : ""}`}
                    role="row"
                    aria-rowindex={index + 1}
                    aria-selected={index === selected}
                    onClick={() => setSelected(index)}
                  >
                    <span role="cell" class="number">
                      {meanText(data.unit, row)}
                    </span>
                    <span role="cell" class="number muted">
                      {row.percent.toFixed(1)}
                    </span>
                    <span role="cell" class="fleet-share">
                      <i style={{ width: `${(100 * row.percent) / largest}%` }} />
                    </span>
                    <span role="cell" class="number muted">
                      {count(row.runs)}
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
