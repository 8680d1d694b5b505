// Retained sizes: groups, or what is below a path of names.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { HeapAmount, HeapKind, Retained, RetainedRow } from "../api/types";
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
import { tipOn } from "../widgets/tip";
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

/** The memory that a row is ranked by: what it reaches, of groupings that have it, because most memory may be shared. */
function held(row: RetainedRow): HeapAmount {
  return row.reached ?? row.retained;
}

const SORT_KEYS: Record<Exclude<State["retainedSort"], "name">, (row: RetainedRow) => number> = {
  reached: (row) => held(row).bytes,
  retained: (row) => row.retained.bytes,
  own: (row) => row.own.bytes,
  blocks: (row) => held(row).blocks,
  values: (row) => row.values,
};

/** Sorts rows: amounts with the largest first. */
export function sortedRows(rows: readonly RetainedRow[], sort: State["retainedSort"]): RetainedRow[] {
  if (sort === "name") return [...rows].sort((a, b) => a.name.localeCompare(b.name));
  const key = SORT_KEYS[sort];
  return [...rows].sort((a, b) => key(b) - key(a));
}

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
    const all = sortedRows(data?.rows ?? [], now.retainedSort);
    return matches ? all.filter(({ name, place }) => matches({ name, place: place ?? "" })) : all;
  }, [data, now.rows, now.retainedSort]);
  useEffect(() => setSelected(-1), [answer.of, now.rows, now.retainedSort]);

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
    else if (row.is_mostly_shared) showWhy({ through: patternOf(row.name) });
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

  const hasReached = data?.hidden_reached !== undefined;
  const shared = rows.filter((row) => row.is_shared);
  const sharedBytes = shared.reduce((sum, row) => sum + row.retained.bytes, 0);
  const sort = now.retainedSort === "reached" && !hasReached ? "retained" : now.retainedSort;
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
                  {hasReached && (
                    <Head
                      sort="reached"
                      chosen={sort}
                      title="Reached"
                      help="Memory whose shortest path from a root goes through the row, also if others reach it too."
                    />
                  )}
                  <Head
                    sort="retained"
                    chosen={sort}
                    title="Retained"
                    help="Memory that only the row reaches: it would be freed with it."
                  />
                  {!hasReached && <Head sort="own" chosen={sort} title="Own" help="The values themselves." />}
                  <Head
                    sort="blocks"
                    chosen={sort}
                    title="Blocks"
                    help={`The blocks that the row ${hasReached ? "reaches" : "retains"}.`}
                  />
                  <Head sort="values" chosen={sort} title="Values" help="The number of values that are this row." />
                  <Head
                    sort="name"
                    chosen={sort}
                    title={at.length > 0 ? "Value" : GROUP_NAMES[data.by]}
                    help="The name."
                  />
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
                        <i class="bar" style={{ width: `${(100 * held(row).bytes) / (total || 1)}%` }} />
                        <span>{amountText(held(row))}</span>
                        <span class="muted">{percent(held(row).bytes, total)}</span>
                      </span>
                    </span>
                    <span role="cell" class="number">
                      {amountText(hasReached ? row.retained : row.own)}
                    </span>
                    <span role="cell" class="number muted">
                      {countShort(held(row).blocks)}
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
      {data && (data.hidden_rows > 0 || shared.length > 0) && (
        <p class="view-note muted">
          {data.hidden_rows > 0 &&
            `${count(data.hidden_rows)} more rows ${data.hidden_reached ? `reach ${bytes(data.hidden_reached.bytes)}` : `retain ${bytes(data.hidden.bytes)}`}. `}
          {shared.length > 0 &&
            `${bytes(sharedBytes)} would be freed with none of the rows alone, because several reach it: the rows (several ...).`}
        </p>
      )}
    </div>
  );
}

function amountText(amount: HeapAmount): string {
  return amount.blocks > 0 ? bytes(amount.bytes) : "";
}

function Head(props: {
  sort: State["retainedSort"];
  chosen: State["retainedSort"];
  title: string;
  help: string;
}): JSX.Element {
  const isSorted = props.chosen === props.sort;
  const isName = props.sort === "name";
  return (
    <span
      role="columnheader"
      class={isName ? "head-name" : "number"}
      aria-sort={isSorted ? (isName ? "ascending" : "descending") : "none"}
    >
      <button
        type="button"
        onClick={() => update({ retainedSort: props.sort })}
        {...tipOn(<div class="tip-text">{props.help} Sorts by it.</div>)}
      >
        {isSorted && <span class="sort-arrow">{isName ? "↑" : "↓"}</span>} {props.title}
      </button>
    </span>
  );
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
