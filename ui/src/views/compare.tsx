// Significant changes between two traces, or between two time windows of one.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { NamedDiff } from "../api/types";
import { count, estimatedBytes, estimatedChange } from "../format";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { groupOptions } from "../state/describe";
import type { Span } from "../state/codec";
import { diffQuestion, diffWindows, PLAIN_LOOK } from "../state/questions";
import { status, traceFacts } from "../state/session";
import { FRAMES, type State, state, update } from "../state/state";
import { spanText } from "../timeline/scale";
import { Check, Empty, Explain, Segmented, Select } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { SearchBox } from "../widgets/search-box";
import { changePercent } from "./diff-rows";
import { DiffTable, Verdict } from "./diff-table";
import { WholeNote } from "./whole-note";

const NO_WINDOWS = { before: null, after: null };

export function CompareView(): JSX.Element {
  const { hasServer } = currentSource();
  // A report file has one pair of windows, with all functions.
  const now: State = hasServer ? state.value : { ...state.value, ...PLAIN_LOOK, window: null, ...NO_WINDOWS };
  const against = status.value?.against ?? null;
  const facts = traceFacts();
  const windows = diffWindows(now, facts);
  const question = diffQuestion(now, facts);
  const answer = useAnswer<NamedDiff>(question);
  const { data, error, isStale } = answer;
  const filter = useRef<HTMLInputElement>(null);

  return (
    <div class="view">
      <div class="toolbar">
        {against !== null && hasServer && (
          <Segmented
            label="Compare"
            value={windows ? "windows" : "traces"}
            options={[
              { value: "traces", text: `With ${against}` },
              { value: "windows", text: "Two windows" },
            ]}
            onChange={(what) =>
              update(what === "traces" ? NO_WINDOWS : (diffWindows(now, { ...facts, hasOther: false }) ?? {}))
            }
          />
        )}
        <Segmented
          label="Of what"
          value={now.of}
          options={[
            { value: "allocated" as const, text: "Allocated" },
            // A window has no peak.
            ...(windows ? [] : [{ value: "peak" as const, text: "Live at the peak" }]),
            { value: "end" as const, text: "Live at the end" },
          ]}
          onChange={(of) => update({ of })}
        />
        <Select
          label="A row is a"
          value={now.diffBy}
          options={groupOptions(FRAMES)}
          onChange={(diffBy) => update({ diffBy })}
        />
        {hasServer && (
          <Check
            text="Only significant changes"
            help="Hide changes within the sampling error"
            value={now.realOnly}
            onChange={(realOnly) => update({ realOnly })}
          />
        )}
        <WholeNote what="comparison" ignoresWindow={windows === null} />
        {windows && hasServer && (
          <>
            <button
              type="button"
              class="button"
              onClick={() => update(diffWindows({ ...now, ...NO_WINDOWS }, { ...facts, hasOther: false }) ?? {})}
            >
              Halves
            </button>
            <Explain>
              The timeline shows both windows. Drag in it to choose the one after, with Shift the one before, or move
              their edges. Halves compares the first half of the run with the second. To compare with another trace:{" "}
              <code>heapline view NEW --against OLD</code>
            </Explain>
          </>
        )}
        <span class="spring" />
        <SearchBox
          box={filter}
          placeholder="Filter rows"
          label="Filter the rows"
          value={now.rows}
          onInput={(rows) => update({ rows }, "rows")}
        />
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : question === null ? (
        <Empty title="No time passed in this trace" />
      ) : (
        data && (
          <div class={`compare ${isStale ? "stale" : ""}`}>
            <Total data={data} windows={windows} />
            <DiffTable data={data} by={now.diffBy} hasServer={hasServer} filter={filter} />
          </div>
        )
      )}
    </div>
  );
}

/** The change of everything together. */
function Total(props: { data: NamedDiff; windows: { before: Span; after: Span } | null }): JSX.Element {
  const { data, windows } = props;
  const { total } = data;
  const all = data.rows.length + data.hidden_rows;
  return (
    <div class="compare-total">
      <span>
        <span class="muted">before{windows && ` (${spanText(windows.before.from, windows.before.to)})`}</span>{" "}
        {estimatedBytes(total.before.bytes)}
      </span>
      <span>
        <span class="muted">after{windows && ` (${spanText(windows.after.from, windows.after.to)})`}</span>{" "}
        {estimatedBytes(total.after.bytes)}
      </span>
      <span>
        <span class="muted">change</span> <b>{estimatedChange(total.bytes)}</b>
        {total.percent !== null && ` (${changePercent(total.percent)} %)`}
      </span>
      <Verdict isReal={total.is_real} p={total.p_value} />
      <span class="muted">
        {count(all)} {all === 1 ? "row" : "rows"}, {count(data.real_changes)} called real; on average one in twenty of
        those is not.
      </span>
    </div>
  );
}
