// Memory that grows and is never freed.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Leak, Leaks, TrendState } from "../api/types";
import { bytes, count, estimatedBytes, estimatedChange, percent, printable, seconds } from "../format";
import { AttributedTo } from "../filter/attributed-to";
import { act, functionMenu, tableActions } from "../flame/actions";
import { useKeys } from "../keys";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { patternOf } from "../state/patterns";
import { groupOptions, endText } from "../state/describe";
import { leaksQuestion, PLAIN_LOOK } from "../state/questions";
import { state, update } from "../state/state";
import { Empty, Select } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { Problem } from "../widgets/problem";
import { Spark } from "../widgets/spark";
import { tipOn } from "../widgets/tip";
import { spanText } from "../timeline/scale";
import { Name } from "./table";
import { WholeNote } from "./whole-note";
import { isRecording } from "../state/live";
import { isExact } from "../state/session";

const TRENDS: Record<TrendState, { text: string; help: string }> = {
  growing: { text: "growing", help: "It grows at the end of the run." },
  flat: { text: "flat", help: "It grew, and does not grow any more: a full cache, or a loaded table." },
  shrinking: { text: "shrinking", help: "It grew, and shrinks at the end of the run." },
  uneven: { text: "up and down", help: "There is more at the end, but meanwhile it falls by more than half of that." },
};

export function LeaksView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  const answer = useAnswer<Leaks>(leaksQuestion(hasServer ? now : { ...now, ...PLAIN_LOOK, window: null }));
  const { data, error, isStale } = answer;
  const [selected, setSelected] = useState(-1);
  const list = useRef<HTMLDivElement>(null);
  const isFrames = now.leaksBy !== "module";

  const rows = data?.rows ?? [];
  const show = (row: Leak | undefined) =>
    row &&
    isFrames &&
    update({
      view: "flame",
      live: "end",
      focus: [patternOf(row.label.name)],
      ownCode: hasServer && data?.subject.own_code !== undefined,
      node: "",
    });
  const move = (to: number) => {
    const row = Math.max(0, Math.min(rows.length - 1, to));
    setSelected(row);
    list.current?.children[row + 1]?.scrollIntoView({ block: "nearest" });
  };
  useKeys("Leaks", [
    { key: "ArrowDown", does: "down a row", run: () => move(selected + 1) },
    { key: "ArrowUp", does: "up a row", run: () => move(selected - 1) },
    { key: "Enter", does: "show the callers of the selected function", run: () => show(rows[selected]) },
    ...tableActions(hasServer).map((action) => ({
      key: action.key,
      does: action.text.toLowerCase(),
      run: () => {
        const row = rows[selected];
        if (row && isFrames) act(action, row.label.name, row.label.place);
      },
    })),
  ]);

  if (error && isFatal(answer)) return <Problem error={error} />;
  if (!data) return <div class="view" />;
  return (
    <div class={`view ${isStale ? "stale" : ""}`}>
      <div class="toolbar">
        <Select
          label="A row is a"
          value={now.leaksBy}
          options={groupOptions(["site", "function", "module"])}
          onChange={(leaksBy) => update({ leaksBy })}
        />
        {isFrames && <AttributedTo ownCode={data.subject.own_code} />}
        <p class="leak-text">
          {hasServer && now.window && (
            <>
              Of what was {now.windowOf === "live" ? "alive" : now.windowOf} in{" "}
              {spanText(now.window.from, now.window.to)}:{" "}
            </>
          )}
          <b>{estimatedBytes(data.retained.bytes)}</b> {endText()} is older than {seconds(data.min_age)}; since half-way
          that changed by <b>{estimatedChange(data.growth)}</b>.{" "}
          <span class="muted">
            A leak here: more memory older than {seconds(data.min_age)} ({(100 * data.tail).toFixed(0)} % of the run){" "}
            {endText()} than half-way{isExact() ? "." : ", by more than the error of the difference."}
          </span>
        </p>
        <WholeNote what="list" ignoresWindow />
      </div>
      {rows.length === 0 ? (
        <Empty title="Nothing grows">
          {data.steady_groups > 0
            ? `${count(data.steady_groups)} ${data.steady_groups === 1 ? "place keeps" : "places keep"} ${bytes(data.steady.bytes.value)} of old memory, but show no significant growth.`
            : "No old memory is kept."}
        </Empty>
      ) : (
        <div class={`leaks ${data.snapshot ? "has-holders" : ""}`} ref={list} role="table" aria-label="Leaks">
          <div class="leak leak-head" role="row">
            <span role="columnheader" class="number">
              Growth
            </span>
            <span role="columnheader" class="number" {...tipOn("How fast it grows, or grew last.")}>
              Rate
            </span>
            <span role="columnheader" class="number">
              {isRecording() ? "Kept now" : "Kept at end"}
            </span>
            <span role="columnheader">Live over time</span>
            <span role="columnheader">Trend</span>
            <span role="columnheader">{now.leaksBy === "site" ? "Line of source" : now.leaksBy}</span>
            {data.snapshot && (
              <span
                role="columnheader"
                {...tipOn(`Keeps most of its memory alive, by the heap snapshot ${data.snapshot}.`)}
              >
                Held by
              </span>
            )}
          </div>
          {rows.map((row, k) => (
            <div
              key={k}
              class={`leak ${k === selected ? "is-selected" : ""}`}
              role="row"
              aria-selected={k === selected}
              onClick={() => setSelected(k)}
              onDblClick={() => show(row)}
              onContextMenu={(event) => {
                if (!isFrames) return;
                event.preventDefault();
                setSelected(k);
                openMenu(
                  event.clientX,
                  event.clientY,
                  [
                    { text: `Show its callers, for memory live ${endText()}`, hint: "Enter", run: () => show(row) },
                    "line",
                    ...functionMenu({ label: row.label, kind: "call" }, tableActions(hasServer)),
                  ],
                  row.label.name,
                );
              }}
            >
              <span role="cell" class="number">
                {estimatedChange(row.growth)}
              </span>
              <span role="cell" class="number muted">
                {row.trend.rate && `${estimatedBytes(row.trend.rate)}/s`}
              </span>
              <span role="cell" class="number">
                {bytes(row.retained.bytes.value)}
              </span>
              <span role="cell">
                <Spark values={row.live} width={190} height={30} />
              </span>
              <span role="cell" class="trend">
                <span class={`badge trend-${row.trend.state}`} {...tipOn(TRENDS[row.trend.state].help)}>
                  {TRENDS[row.trend.state].text}
                </span>
                {row.trend.since && (
                  <span class="muted">
                    {" "}
                    since {seconds(row.trend.since.time)} ± {seconds(row.trend.since.error)}
                  </span>
                )}
              </span>
              <Name label={row.label} kind={now.leaksBy} />
              {data.snapshot && <HeldBy row={row} />}
            </div>
          ))}
          {(data.hidden_rows > 0 || data.steady_groups > 0) && (
            <p class="leak-rest muted">
              {data.hidden_rows > 0 && `${count(data.hidden_rows)} more rows with less growth. `}
              {data.steady_groups > 0 &&
                `${count(data.steady_groups)} more hold ${bytes(data.steady.bytes.value)} of old memory, but show no significant growth.`}
            </p>
          )}
        </div>
      )}
    </div>
  );
}

/** The largest holder, with its share if there are others. */
function HeldBy({ row }: { row: Leak }): JSX.Element {
  const [first] = row.held_by;
  if (!first) {
    return (
      <span role="cell" class="muted" {...tipOn("The snapshot has none of its sampled blocks.")}>
        ?
      </span>
    );
  }
  const share = first.bytes.value / row.retained.bytes.value;
  const all = row.held_by.map((holder) => (
    <div>
      {printable(holder.name)}: {estimatedBytes(holder.bytes)}
    </div>
  ));
  return (
    <span role="cell" class="held-by" {...tipOn(all)}>
      {printable(first.name)}
      {share <= 0.995 && <span class="muted"> ({percent(first.bytes.value, row.retained.bytes.value)})</span>}
    </span>
  );
}
