// The table: a sortable flat list of allocating functions.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Hotspot, Hotspots, Label } from "../api/types";
import { bytes, count, percent, printable } from "../format";
import { ACTIONS, act, functionMenu, tableActions } from "../flame/actions";
import { matcher } from "../flame/search";
import { useKeys } from "../keys";
import { currentSource, isFatal, offered, useAnswer } from "../state/answers";
import { GROUP_NAMES, groupOptions } from "../state/describe";
import { useEverywhere } from "../state/everywhere";
import { growthQuestion, PLAIN_LOOK, tableQuestion } from "../state/questions";
import { GROUPS, type State, state, update } from "../state/state";
import { copy, Empty, Select } from "../widgets/controls";
import { Icon } from "../widgets/icons";
import { openMenu, openMenuBelow } from "../widgets/menu";
import { NameDot } from "../widgets/name-dot";
import { SplitName } from "../widgets/split-name";
import { FoundElsewhere } from "../widgets/found-elsewhere";
import { Problem } from "../widgets/problem";
import { RowFilter } from "../widgets/row-filter";
import { useSize } from "../widgets/size";
import { Spark } from "../widgets/spark";
import { tipOn } from "../widgets/tip";
import { VirtualRows } from "../widgets/virtual";
import { type Column, columns, exported, sorted } from "./columns";
import { AttributedTo } from "../filter/attributed-to";
import { WholeNote } from "./whole-note";

export function TableView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  // A report file has the rows in one order, with nothing hidden.
  const asked: State = hasServer ? now : { ...now, ...PLAIN_LOOK, sort: "own", ascending: false };
  const answer = useAnswer<Hotspots>(tableQuestion(asked));
  const { data, error, isStale } = answer;
  // With a point in time, the curve would only show a peak there; growth needs all times.
  const growth = useAnswer<Hotspots>(growthQuestion(asked)).data;
  const growthOf = useMemo(() => new Map(growth?.rows.map((row) => [nameOf(row.label), row.growth])), [growth]);
  // By name: rows move when the trace grows.
  const [selectedName, setSelectedName] = useState<string | null>(null);
  const filter = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box);

  const all = useMemo(() => (data ? columns(now, data) : []), [data, now.live]);
  const rows = useMemo(() => {
    if (!data) return [];
    const matches = matcher(now.rows);
    const chosen = matches ? data.rows.filter((row) => matches(row.label)) : data.rows;
    return hasServer ? chosen : sorted(chosen, all, now.sort, now.ascending);
  }, [data, all, now.rows, now.sort, now.ascending]);
  // Rows beyond the first, and functions that only call others, are known to the engine.
  const isMissing = data !== null && data.rows.length > 0 && rows.length === 0;
  const everywhere = useEverywhere(now, now.by, isMissing ? now.rows : "");
  useEffect(() => setSelectedName(null), [answer.of, now.sort, now.ascending, now.rows]);
  const selected = selectedName === null ? -1 : rows.findIndex((row) => nameOf(row.label) === selectedName);
  const setSelected = (index: number) => {
    const row = rows[index];
    setSelectedName(row ? nameOf(row.label) : null);
  };

  const isFrames = now.by === "function" || now.by === "site";
  const chosen = rows[selected];
  useKeys("Table", [
    { key: "ArrowDown", does: "down a row", run: () => setSelected(Math.min(rows.length - 1, selected + 1)) },
    { key: "ArrowUp", does: "up a row", run: () => setSelected(Math.max(0, selected - 1)) },
    { key: "j", does: "down a row", run: () => setSelected(Math.min(rows.length - 1, selected + 1)) },
    { key: "k", does: "up a row", run: () => setSelected(Math.max(0, selected - 1)) },
    {
      key: "Enter",
      does: "show the selected function in the flame graph",
      run: () => chosen && isFrames && focus(chosen),
    },
    ...tableActions(hasServer).map((action) => ({
      key: action.key,
      does: action.text.toLowerCase(),
      run: () => {
        if (chosen && isFrames) act(action, chosen.label.name, chosen.label.place);
      },
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

  // Drop the least important columns first, so that the name has enough space.
  const hasSpark = width > 900;
  const shown = all.filter((column) => column.rank <= (width > 1050 ? 4 : width > 860 ? 3 : width > 640 ? 2 : 1));
  const template = [
    ...shown.map((column) => column.width),
    ...(hasSpark ? ["112px"] : []),
    "minmax(180px, 2.2fr)",
  ].join(" ");
  const allRows = data ? data.rows.length + data.hidden_rows : 0;
  const rest = data && data.hidden_rows > 0 && now.rows === "" ? data : null;

  const sortBy = (name: State["sort"]) =>
    update(now.sort === name ? { ascending: !now.ascending } : { sort: name, ascending: false });

  return (
    <div class="view">
      <div class="toolbar">
        <Select
          label="A row is a"
          value={now.by}
          options={groupOptions(offered(GROUPS, (by) => tableQuestion({ ...asked, by })))}
          onChange={(by) => update({ by })}
        />
        <span class="muted">
          {data &&
            `${rows.length < allRows ? `${count(rows.length)} of ` : ""}${count(allRows)} row${allRows === 1 ? "" : "s"}`}
          {data && data.hidden_rows > 0 && now.rows !== "" && `, from the first ${count(data.rows.length)}`}
          {data && data.hidden_rows > 0 && !hasServer && !(now.sort === "own" && !now.ascending) && (
            <>: those with most of their own, sorted</>
          )}
        </span>
        {data && isFrames && <AttributedTo ownCode={data.subject.own_code} />}
        <WholeNote what="table" />
        <span class="spring" />
        <RowFilter box={filter} />
        <button
          type="button"
          class="button"
          onClick={(event) =>
            openMenuBelow(event, [
              { text: "As text", run: () => void copy(exported(rows, shown, "text"), "the table") },
              { text: "As CSV", run: () => void copy(exported(rows, all, "csv"), "the table as CSV") },
              { text: "As JSON", run: () => void copy(exported(rows, all, "json"), "the table as JSON") },
            ])
          }
        >
          <Icon name="copy" /> Copy
        </button>
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : (
        <div class={`table-box ${isStale ? "stale" : ""}`} ref={box} style={{ "--columns": template }}>
          {data && (
            <VirtualRows
              count={rows.length + (rest ? 1 : 0)}
              selected={selected}
              role="table"
              label="Hotspots"
              head={
                <>
                  {shown.map((column) => (
                    <Head key={column.name} column={column} sort={now.sort} ascending={now.ascending} onSort={sortBy} />
                  ))}
                  {hasSpark && (
                    <span
                      role="columnheader"
                      class="head-spark"
                      {...tipOn(
                        <div class="tip-text">
                          Its live memory from the start of the trace to the end, each curve on its own scale.
                        </div>,
                      )}
                    >
                      Live over time
                    </span>
                  )}
                  <span
                    role="columnheader"
                    class="head-name"
                    aria-sort={now.sort === "name" ? (now.ascending ? "ascending" : "descending") : "none"}
                  >
                    <button type="button" onClick={() => sortBy("name")}>
                      {GROUP_NAMES[now.by][0]?.toUpperCase()}
                      {GROUP_NAMES[now.by].slice(1)} {now.sort === "name" && <Arrow ascending={now.ascending} />}
                    </button>
                  </span>
                </>
              }
              row={(index) => {
                const row = rows[index];
                if (!row) return <Rest key="rest" data={data} columns={shown} hasSpark={hasSpark} />;
                return (
                  <div
                    key={index}
                    class={`row ${index === selected ? "is-selected" : ""}`}
                    role="row"
                    aria-rowindex={index + 1}
                    aria-selected={index === selected}
                    onClick={() => setSelected(index)}
                    onDblClick={() => isFrames && focus(row)}
                    onContextMenu={(event) => {
                      event.preventDefault();
                      setSelected(index);
                      if (isFrames)
                        openMenu(
                          event.clientX,
                          event.clientY,
                          functionMenu({ label: row.label, kind: "call" }, tableActions(hasServer)),
                          row.label.name,
                        );
                    }}
                  >
                    {shown.map((column) => (
                      <span key={column.name} class="number" role="cell">
                        {column.cell(row, data)}
                      </span>
                    ))}
                    {hasSpark && (
                      <span role="cell" class="cell-spark">
                        <Curve values={growthOf.get(nameOf(row.label)) ?? row.growth} row={row} />
                      </span>
                    )}
                    <Name label={row.label} isNoise={row.is_noise} kind={now.by} />
                  </div>
                );
              }}
            />
          )}
          {data && data.rows.length === 0 && <Empty title="Nothing here">No sampled block is in this selection.</Empty>}
          {isMissing && (
            <Empty title="None of these rows matches">
              {everywhere && (
                <FoundElsewhere
                  found={everywhere}
                  missing={data.hidden_rows > 0 ? `not in the first ${count(data.rows.length)} rows` : "hidden here"}
                />
              )}
            </Empty>
          )}
        </div>
      )}
    </div>
  );
}

/** The curve of live memory of a row. It has a value for some points of time only, and misses what is live between them. */
function Curve({ values, row }: { values: readonly number[]; row: Hotspot }): JSX.Element {
  if (row.live_at_peak.bytes.value > 0 && values.every((value) => value === 0))
    return (
      <span class="muted" {...tipOn("It was live between two points of the curve, as at the peak.")}>
        briefly
      </span>
    );
  return <Spark values={values} />;
}

function focus(row: Hotspot): void {
  const action = ACTIONS[0];
  if (action) act(action, row.label.name);
}

function nameOf(label: Label): string {
  return `${label.name}\0${label.place ?? ""}`;
}

function Head(props: {
  column: Column;
  sort: State["sort"];
  ascending: boolean;
  onSort: (name: State["sort"]) => void;
}): JSX.Element {
  const { column } = props;
  const isSorted = props.sort === column.name;
  return (
    <span
      role="columnheader"
      class="number"
      aria-sort={isSorted ? (props.ascending ? "ascending" : "descending") : "none"}
    >
      <button
        type="button"
        onClick={() => props.onSort(column.name)}
        {...tipOn(<div class="tip-text">{column.help}</div>)}
      >
        {isSorted && <Arrow ascending={props.ascending} />} {column.title}
      </button>
    </span>
  );
}

function Arrow({ ascending }: { ascending: boolean }): JSX.Element {
  return <span class="sort-arrow">{ascending ? "↑" : "↓"}</span>;
}

/** The cell with the name of a row, and a dot of its colour if the rows are of a kind that has colours. */
export function Name(props: { label: Label; isNoise?: boolean; kind?: string }): JSX.Element {
  const { label, isNoise = false, kind = "" } = props;
  return (
    <span role="cell" class={`name has-place ${isNoise ? "is-noise" : ""}`}>
      <NameDot label={label} kind={kind} />
      <NameText label={label} />
    </span>
  );
}

/** A name and its place, for an element of class `name has-place`. */
export function NameText({ label }: { label: Label }): JSX.Element {
  return (
    <>
      <span class="name-text">
        <SplitName name={printable(label.name)} />
      </span>
      {label.place && <PlaceText place={printable(label.place)} />}
      {label.via && <span class="place">in {printable(label.via)}</span>}
    </>
  );
}

/** A place in the source. If there is too little room, the folders are cut off, not the line. */
function PlaceText({ place }: { place: string }): JSX.Element {
  const file = place.lastIndexOf("/") + 1;
  return (
    <>
      {file > 0 && <span class="place place-folder">{place.slice(0, file)}</span>}
      <span class="place place-file">{place.slice(file)}</span>
    </>
  );
}

/** The sum of the rows that are not listed. */
function Rest(props: { data: Hotspots; columns: readonly Column[]; hasSpark: boolean }): JSX.Element {
  const { hidden, hidden_rows, total } = props.data;
  const amounts: Partial<Record<State["sort"], string>> = {
    peak: bytes(hidden.live_at_peak.bytes.value),
    end: bytes(hidden.live_at_end.bytes.value),
  };
  return (
    <div class="row is-rest" role="row">
      {props.columns.map((column) => (
        <span key={column.name} class="number" role="cell">
          {column.name === "own"
            ? `${bytes(hidden.allocated.bytes.value)}  ${percent(hidden.allocated.bytes.value, total.allocated.bytes.value)}`
            : (amounts[column.name] ?? "")}
        </span>
      ))}
      {props.hasSpark && <span role="cell" />}
      <span role="cell" class="name">
        other ({count(hidden_rows)})
      </span>
    </div>
  );
}
