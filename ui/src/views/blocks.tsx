// Single sampled blocks of the selection, each with its stack.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { BlockRow, Blocks } from "../api/types";
import { act, functionMenu, tableActions } from "../flame/actions";
import { bytes, count, estimatedBytes, seconds } from "../format";
import { useKeys } from "../keys";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { scopeText } from "../state/describe";
import { patternOf } from "../state/patterns";
import { blocksQuestion, PLAIN_LOOK } from "../state/questions";
import { tells } from "../state/session";
import { momentOf, type State, state, update } from "../state/state";
import { Empty } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { Problem } from "../widgets/problem";
import { tipOn } from "../widgets/tip";
import { VirtualRows } from "../widgets/virtual";
import { BlockDetails, heapText, lifetimeText } from "./block-details";
import { inOrder } from "./block-rows";
import { Name } from "./table";
import { WholeNote } from "./whole-note";

interface Column {
  title: string;
  help: string;
  /** The order that a click on the title chooses. */
  sort?: State["blockSort"];
  width: string;
  /** True for columns that narrow pages do not have. */
  isWide?: boolean;
  text: (row: BlockRow) => string;
}

/** The columns before the site. */
function columns(): Column[] {
  return [
    {
      title: "Size",
      help: "Bytes of the block, without its header. Sorts by it, largest first.",
      sort: "size",
      width: "84px",
      text: (row) => bytes(row.size),
    },
    {
      title: "Represents",
      help: "The bytes that were allocated for each such sample, on average. Sorts by it, largest first.",
      sort: "weight",
      width: "96px",
      text: (row) => bytes(row.bytes.value),
    },
    {
      title: "Allocated at",
      help: "Time from the start of the run. Sorts by it, earliest first.",
      sort: "birth",
      width: "96px",
      text: (row) => seconds(row.allocated),
    },
    {
      title: "Lifetime",
      help: "How long it lived. >: it was live at the end. Sorts by it, longest first.",
      sort: "age",
      width: "92px",
      text: lifetimeText,
    },
    ...(tells().promotions
      ? [{ title: "Heap", help: "Where it was allocated.", width: "104px", isWide: true, text: heapText }]
      : []),
    {
      title: "Domain",
      help: "The domain or thread that allocated it.",
      width: "58px",
      isWide: true,
      text: (row) => String(row.domain),
    },
  ];
}

export function BlocksView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  // A report file has blocks in one order, with all functions.
  const asked: State = hasServer ? now : { ...now, ...PLAIN_LOOK, window: null, blockSort: "size" };
  const answer = useAnswer<Blocks>(blocksQuestion(asked));
  const { data, error, isStale } = answer;
  const rows = useMemo(
    () => (data ? (hasServer ? data.rows : inOrder(data.rows, now.blockSort)) : []),
    [data, now.blockSort],
  );
  // By number: rows move when the order changes.
  const [selectedNumber, setSelectedNumber] = useState<number | null>(null);
  const selected = rows.findIndex((row) => row.number === selectedNumber);
  const chosen = rows[selected];
  const select = (index: number) => setSelectedNumber(rows[index]?.number ?? null);
  const move = (to: number) => select(Math.max(0, Math.min(rows.length - 1, to)));
  const actions = tableActions(hasServer);

  useKeys("Blocks", [
    { key: "ArrowDown", does: "down a row", run: () => move(selected + 1) },
    { key: "ArrowUp", does: "up a row", run: () => move(selected - 1) },
    { key: "j", does: "down a row", run: () => move(selected + 1) },
    { key: "k", does: "up a row", run: () => move(selected - 1) },
    {
      key: "Enter",
      does: "show the function that allocated it in the flame graph",
      run: () => chosen?.stack[0] && showFunction(chosen.stack[0].name),
    },
    ...actions.map((action) => ({
      key: action.key,
      does: action.text.toLowerCase(),
      run: () => {
        if (chosen?.stack[0]) act(action, chosen.stack[0].name, chosen.stack[0].place);
      },
    })),
    { key: "Escape", does: "close the stack", run: () => setSelectedNumber(null) },
  ]);

  const shown = columns();
  const template = (wide: boolean) =>
    [...shown.filter((one) => wide || !one.isWide).map((one) => one.width), "minmax(160px, 1fr)"].join(" ");
  const all = data ? data.rows.length + data.hidden_rows : 0;
  return (
    <div class="view">
      <div class="toolbar">
        {data && (
          <span class="muted">
            {data.hidden_rows > 0 && `The first ${count(data.rows.length)} of `}
            {count(all)} sampled block{all === 1 ? "" : "s"} {selectedText(now)}, which represent{" "}
            {estimatedBytes(data.total.bytes)}
            {!hasServer && data.hidden_rows > 0 && now.blockSort !== "size" && ": the largest, sorted"}
          </span>
        )}
        <WholeNote what="list" ignoresWindow />
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : data && rows.length === 0 ? (
        <Empty title="Nothing here">No sampled block is in this selection.</Empty>
      ) : (
        <div class={`blocks ${isStale ? "stale" : ""}`}>
          <div class="table-box block-box" style={{ "--wide": template(true), "--narrow": template(false) }}>
            {data && (
              <VirtualRows
                count={rows.length}
                selected={selected}
                role="table"
                label="Blocks"
                head={
                  <>
                    {shown.map((column) => (
                      <Head key={column.title} column={column} sort={now.blockSort} />
                    ))}
                    <span role="columnheader" class="head-name">
                      Allocated by
                    </span>
                  </>
                }
                row={(index) => {
                  const row = rows[index] as BlockRow;
                  return (
                    <div
                      key={row.number}
                      class={`row ${index === selected ? "is-selected" : ""}`}
                      role="row"
                      aria-rowindex={index + 1}
                      aria-selected={index === selected}
                      onClick={() => select(index)}
                      onContextMenu={(event) => {
                        event.preventDefault();
                        select(index);
                        const [site] = row.stack;
                        if (!site) return;
                        const items = functionMenu({ label: site, kind: "call" }, actions);
                        openMenu(event.clientX, event.clientY, items, site.name);
                      }}
                    >
                      {shown.map((column) => (
                        <span key={column.title} role="cell" class={`number ${column.isWide ? "wide-only" : ""}`}>
                          {column.text(row)}
                        </span>
                      ))}
                      <Name label={row.stack[0] ?? { name: "(unknown)" }} />
                    </div>
                  );
                }}
              />
            )}
          </div>
          {chosen && <BlockDetails block={chosen} onFunction={showFunction} onClose={() => setSelectedNumber(null)} />}
        </div>
      )}
    </div>
  );
}

/** The part of the run whose blocks are listed. */
function selectedText(now: State): string {
  const live = momentOf(now);
  if (live !== "all") return scopeText(live).toLowerCase();
  return now.window && currentSource().hasServer ? "of the chosen window" : "of the whole run";
}

/** Shows the callers and callees of a function. */
function showFunction(name: string): void {
  update({ view: "flame", focus: [patternOf(name)], node: "", range: null });
}

function Head({ column, sort }: { column: Column; sort: State["blockSort"] }): JSX.Element {
  const { title, help } = column;
  const order = column.sort;
  const kind = `number ${column.isWide ? "wide-only" : ""}`;
  const tip = tipOn(<div class="tip-text">{help}</div>);
  if (!order) {
    return (
      <span role="columnheader" class={kind} {...tip}>
        {title}
      </span>
    );
  }
  const isSorted = sort === order;
  const direction = order === "birth" ? "ascending" : "descending";
  return (
    <span role="columnheader" class={kind} aria-sort={isSorted ? direction : "none"}>
      <button type="button" onClick={() => update({ blockSort: order })} {...tip}>
        {isSorted && <span class="sort-arrow">{order === "birth" ? "↑" : "↓"}</span>} {title}
      </button>
    </span>
  );
}
