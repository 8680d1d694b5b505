// The rows of a comparison.

import type { JSX, RefObject } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { DiffRow, NamedDiff } from "../api/types";
import { bytes, count, estimatedChange, signedCount } from "../format";
import { ACTIONS, act, functionMenu, tableActions } from "../flame/actions";
import { useKeys } from "../keys";
import { GROUP_NAMES } from "../state/describe";
import { type State, state, update } from "../state/state";
import { Empty } from "../widgets/controls";
import { DiffBar } from "../widgets/diff-bar";
import { openMenu } from "../widgets/menu";
import { VirtualRows } from "../widgets/virtual";
import { changePercent, shownRows } from "./diff-rows";
import { ExplainReal, Verdict } from "./significance";
import { Name } from "./table";

const HEADS: readonly { sort: State["diffSort"]; title: string }[] = [
  { sort: "change", title: "Change" },
  { sort: "percent", title: "%" },
  { sort: "before", title: "Before" },
  { sort: "after", title: "After" },
  { sort: "blocks", title: "Blocks" },
];

export function DiffTable(props: {
  data: NamedDiff;
  by: State["diffBy"];
  hasServer: boolean;
  /** The text field that filters the rows. */
  filter: RefObject<HTMLInputElement | null>;
}): JSX.Element {
  const now = state.value;
  const { data, filter } = props;
  const [selected, setSelected] = useState(-1);
  const rows = useMemo(() => shownRows(data.rows, now.diffSort, now.rows), [data, now.diffSort, now.rows]);
  useEffect(() => setSelected(-1), [rows]);
  const largest = Math.max(...data.rows.map((row) => Math.abs(row.bytes.value)), 1);
  const isFrames = props.by === "function" || props.by === "site";
  const actions = tableActions(props.hasServer);
  const chosen = rows[selected];
  const run = (action: (typeof ACTIONS)[number] | undefined, row: DiffRow | undefined) => {
    if (action && row && isFrames) act(action, row.label.name, row.label.place);
  };

  useKeys("Compare", [
    { key: "ArrowDown", does: "down a row", run: () => setSelected(Math.min(rows.length - 1, selected + 1)) },
    { key: "ArrowUp", does: "up a row", run: () => setSelected(Math.max(0, selected - 1)) },
    { key: "j", does: "down a row", run: () => setSelected(Math.min(rows.length - 1, selected + 1)) },
    { key: "k", does: "up a row", run: () => setSelected(Math.max(0, selected - 1)) },
    { key: "Enter", does: "show the selected function in the flame graph", run: () => run(ACTIONS[0], chosen) },
    ...actions.map((action) => ({
      key: action.key,
      does: action.text.toLowerCase(),
      run: () => run(action, chosen),
    })),
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
  const [change, percent, ...others] = HEADS.map(({ sort, title }) => head(sort, title, "number"));
  const name = GROUP_NAMES[props.by];
  return (
    <div class="table-box diff-box">
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
            {others}
            <span role="columnheader">
              Real? <ExplainReal of="rows" />
            </span>
            {head("name", `${name[0]?.toUpperCase()}${name.slice(1)}`, "head-name")}
          </>
        }
        row={(index) => {
          const row = rows[index] as DiffRow;
          return (
            <div
              key={index}
              class={`row ${row.is_real ? "" : "is-chance"} ${index === selected ? "is-selected" : ""}`}
              role="row"
              aria-rowindex={index + 1}
              aria-selected={index === selected}
              onClick={() => setSelected(index)}
              onDblClick={() => run(ACTIONS[0], row)}
              onContextMenu={(event) => {
                event.preventDefault();
                setSelected(index);
                if (!isFrames) return;
                const menu = functionMenu({ label: row.label, kind: "call" }, actions);
                openMenu(event.clientX, event.clientY, menu, row.label.name);
              }}
            >
              <span role="cell" class="number">
                {estimatedChange(row.bytes)}
              </span>
              <span role="cell" class="number muted">
                {changePercent(row.percent)}
              </span>
              <DiffBar change={row.bytes.value} largest={largest} />
              <span role="cell" class="number muted">
                {bytes(row.before.bytes.value)}
              </span>
              <span role="cell" class="number muted">
                {bytes(row.after.bytes.value)}
              </span>
              <span role="cell" class="number muted">
                {signedCount(row.blocks.value)}
              </span>
              <span role="cell">
                <Verdict isReal={row.is_real} p={row.p_value} />
              </span>
              <Name label={row.label} kind={props.by} />
            </div>
          );
        }}
      />
      {data.rows.length > 0 && rows.length === 0 && <Empty title="No row matches" />}
      {data.hidden_rows > 0 && <p class="muted diff-rest">{count(data.hidden_rows)} more rows with less change.</p>}
    </div>
  );
}
