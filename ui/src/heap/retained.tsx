// Retained sizes: groups, or what is below a path of names.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { HeapKind, Retained, RetainedRow } from "../api/types";
import { REQUESTS } from "../api/requests";
import { matcher } from "../flame/search";
import { bytes, count, countShort, percent } from "../format";
import { useKeys } from "../keys";
import { isFatal, useAnswer } from "../state/answers";
import { patternOf } from "../state/patterns";
import { type State, state, update } from "../state/state";
import { Empty, Select } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { Problem } from "../widgets/problem";
import { RowFilter } from "../widgets/row-filter";
import { VirtualRows } from "../widgets/virtual";
import { Name } from "../views/table";
import { showWhy, valueMenu } from "./actions";
import { retainedQuestion } from "./questions";

const GROUP_NAMES: Record<State["retainedBy"], string> = {
  root: "kind of root",
  module: "module",
  definition: "definition",
  closure: "function of closures",
  kind: "kind of value",
};

/** The name of the row about the end of a path itself. */
const ITSELF = "(itself)";

export function RetainedView(): JSX.Element {
  const now = state.value;
  const answer = useAnswer<Retained>(retainedQuestion(now));
  const { data, error, isStale } = answer;
  const [selected, setSelected] = useState(-1);
  const filter = useRef<HTMLInputElement>(null);
  const rows = useMemo(() => {
    const matches = matcher(now.rows);
    const all = data?.rows ?? [];
    return matches ? all.filter(({ name, place }) => matches({ name, place: place ?? "" })) : all;
  }, [data, now.rows]);
  useEffect(() => setSelected(-1), [answer.of, now.rows]);

  const at = data?.at ?? [];
  const names = at.map((step) => step.name);
  const isOverlapping = at.length === 0 && (data?.by === "closure" || data?.by === "kind");
  // Kinds of roots are no nodes of the tree.
  const isByRoot = at.length === 0 && data?.by === "root";
  const canOpen = (row: RetainedRow) => !row.is_shared && row.name !== ITSELF;
  const open = (row: RetainedRow | undefined) => {
    if (!row || !canOpen(row)) return;
    if (isOverlapping) showWhy({ kind: patternOf(row.name) });
    else if (isByRoot) update({ retainedBy: "module" });
    else update({ at: [...names, row.name].join(" > ") });
  };
  const up = () => update({ at: names.slice(0, -1).join(" > ") });
  const move = (to: number) => setSelected(Math.max(0, Math.min(rows.length - 1, to)));
  useKeys("Retained", [
    { key: "ArrowDown", does: "down a row", run: () => move(selected + 1) },
    { key: "ArrowUp", does: "up a row", run: () => move(selected - 1) },
    { key: "j", does: "down a row", run: () => move(selected + 1) },
    { key: "k", does: "up a row", run: () => move(selected - 1) },
    { key: "Enter", does: "show what the row retains", run: () => open(rows[selected]) },
    { key: "Backspace", does: "up a level", run: up },
    { key: "/", does: "filter the rows", run: () => filter.current?.focus() },
    {
      key: "Escape",
      does: "show all rows, or go up a level",
      run: () => {
        filter.current?.blur();
        if (now.rows !== "") update({ rows: "" });
        else if (at.length > 0) up();
      },
    },
  ]);

  const total = data?.subject.total.bytes ?? 0;
  return (
    <div class="view">
      <div class="toolbar">
        {now.at === "" ? (
          <Select
            label="A row is a"
            value={now.retainedBy}
            options={REQUESTS.retained.by.values.map((value) => ({ value, text: GROUP_NAMES[value] }))}
            onChange={(retainedBy) => update({ retainedBy })}
          />
        ) : (
          <nav class="steps" aria-label="Path">
            <button type="button" onClick={() => update({ at: "" })}>
              all
            </button>
            {names.map((name, k) => (
              <button
                key={k}
                type="button"
                disabled={k === names.length - 1}
                onClick={() => update({ at: names.slice(0, k + 1).join(" > ") })}
              >
                {name}
              </button>
            ))}
          </nav>
        )}
        {data && (
          <span class="muted">
            {bytes(data.retained.bytes)}, {count(data.retained.blocks)} blocks
            {isOverlapping && "; rows overlap"}
          </span>
        )}
        <span class="spring" />
        <RowFilter box={filter} />
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : data && rows.length === 0 ? (
        <Empty title="Nothing here" />
      ) : (
        <div class={`table-box retained-box ${isStale ? "stale" : ""}`}>
          {data && (
            <VirtualRows
              count={rows.length}
              selected={selected}
              role="table"
              label="Retained memory"
              head={
                <>
                  <span role="columnheader" class="number">
                    Retained
                  </span>
                  <span role="columnheader" class="number">
                    Blocks
                  </span>
                  <span
                    role="columnheader"
                    class="number"
                    title={
                      data.hidden_reached
                        ? "Memory whose shortest path from a root goes through the row, also if others reach it too"
                        : "The values themselves"
                    }
                  >
                    {data.hidden_reached ? "Reached" : "Own"}
                  </span>
                  <span role="columnheader" class="number">
                    Values
                  </span>
                  <span role="columnheader">{at.length > 0 ? "Value" : GROUP_NAMES[data.by]}</span>
                </>
              }
              row={(index) => {
                const row = rows[index] as RetainedRow;
                return (
                  <div
                    key={index}
                    class={`row ${index === selected ? "is-selected" : ""} ${row.is_shared ? "is-rest" : ""} ${canOpen(row) ? "can-open" : ""}`}
                    role="row"
                    aria-selected={index === selected}
                    onClick={() => {
                      setSelected(index);
                      open(row);
                    }}
                    onContextMenu={(event) => {
                      event.preventDefault();
                      setSelected(index);
                      if (!canOpen(row)) return;
                      const path = isOverlapping || isByRoot ? {} : { path: [...names, row.name].join(" > ") };
                      const menu = valueMenu({ name: row.name, kind: kindOf(data, row), place: row.place, ...path });
                      openMenu(event.clientX, event.clientY, menu, row.name);
                    }}
                  >
                    <span role="cell" class="number">
                      <span class="amount">
                        <i class="bar" style={{ width: `${(100 * row.retained.bytes) / (total || 1)}%` }} />
                        <span>{bytes(row.retained.bytes)}</span>
                        <span class="muted">{percent(row.retained.bytes, total)}</span>
                      </span>
                    </span>
                    <span role="cell" class="number muted">
                      {countShort(row.retained.blocks)}
                    </span>
                    <span role="cell" class="number">
                      {ownOrReached(row)}
                    </span>
                    <span role="cell" class="number muted">
                      {row.values > 1 ? countShort(row.values) : ""}
                    </span>
                    <Name label={{ name: row.name, ...(row.place ? { place: row.place } : {}) }} />
                  </div>
                );
              }}
            />
          )}
        </div>
      )}
      {data && (data.hidden_rows > 0 || rows.some((row) => row.is_shared)) && (
        <p class="view-note muted">
          {data.hidden_rows > 0 && `${count(data.hidden_rows)} more rows retain ${bytes(data.hidden.bytes)}. `}
          {rows.some((row) => row.is_shared) &&
            "(several ...): several of them reach it, so that it is freed with none of them alone."}
        </p>
      )}
    </div>
  );
}

/** What shortest paths reach through a row, of groupings that have it, and the values themselves of others. */
function ownOrReached(row: RetainedRow): string {
  const amount = row.reached ?? row.own;
  return amount.blocks > 0 ? bytes(amount.bytes) : "";
}

/** The kind of a row's values, as far as the menu needs it. */
function kindOf(report: Retained, row: RetainedRow): HeapKind {
  if (report.at.length === 0 && report.by === "root") return "root";
  if (report.at.length === 0 && report.by !== "kind") return report.by === "closure" ? "closure" : "definition";
  const [word] = row.name.split(" ");
  return word === "array" || word === "list" || word === "string"
    ? word
    : row.name.startsWith("float array")
      ? "float_array"
      : "record";
}
