// Significant changes between two traces, or between two time windows of one.

import type { JSX } from "preact";
import type { NamedDiff, Series } from "../api/types";
import { bytes, count, estimatedBytes, estimatedChange, signedCount } from "../format";
import { functionMenu } from "../flame/actions";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { groupOptions } from "../state/describe";
import { diffQuestion, diffWindows, POINTS, wholeSeriesQuestion } from "../state/questions";
import { status, traceFacts } from "../state/session";
import { FRAMES, state, update } from "../state/state";
import { Check, Empty, Segmented, Select } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { Problem } from "../widgets/problem";
import { tipOn } from "../widgets/tip";
import { Name } from "./table";
import { WindowPicker } from "./window-picker";

const NO_WINDOWS = { before: null, after: null };

export function CompareView(): JSX.Element {
  const now = state.value;
  const { hasServer, slices } = currentSource();
  const against = status.value?.against ?? null;
  const facts = traceFacts();
  const windows = diffWindows(now, facts);
  const question = diffQuestion(now, facts);
  const answer = useAnswer<NamedDiff>(question);
  const { data, error, isStale } = answer;
  const series = useAnswer<Series>(
    windows ? wholeSeriesQuestion({ ...now, measure: "live-bytes", zoom: null }, POINTS) : null,
  ).data;
  const largest = Math.max(...(data?.rows.map((row) => Math.abs(row.bytes.value)) ?? []), 1);

  return (
    <div class="view">
      <div class="toolbar">
        {against !== null && (
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
            { value: "allocated", text: "Allocated" },
            { value: "peak", text: "Live at the peak" },
            { value: "end", text: "Live at the end" },
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
        <span class="spring" />
        {windows && (
          <button
            type="button"
            class="button"
            onClick={() => update(diffWindows({ ...now, ...NO_WINDOWS }, { ...facts, hasOther: false }) ?? {})}
          >
            First half against second half
          </button>
        )}
      </div>
      {windows && (
        <div class="pickers">
          <WindowPicker
            name="Before"
            series={series}
            duration={facts.duration}
            window={windows.before}
            slices={slices}
            onPick={(before) => update({ before })}
          />
          <WindowPicker
            name="After"
            series={series}
            duration={facts.duration}
            window={windows.after}
            slices={slices}
            onPick={(after) => update({ after })}
          />
        </div>
      )}
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : question === null ? (
        <Empty title="No time passed in this trace" />
      ) : (
        data && (
          <div class={`compare ${isStale ? "stale" : ""}`}>
            <div class="compare-total">
              <span>
                <span class="muted">before</span> {estimatedBytes(data.total.before.bytes)}
              </span>
              <span>
                <span class="muted">after</span> {estimatedBytes(data.total.after.bytes)}
              </span>
              <span>
                <span class="muted">change</span> <b>{estimatedChange(data.total.bytes)}</b>
                {data.total.percent !== null &&
                  ` (${data.total.percent > 0 ? "+" : ""}${data.total.percent.toFixed(1)} %)`}
              </span>
              <Verdict isReal={data.total.is_real} p={data.total.p_value} />
              <span class="muted">
                {count(data.real_changes)} {data.real_changes === 1 ? "change" : "changes"} called real; on average one
                in twenty is not.
              </span>
            </div>
            <div class="diff-list" role="table" aria-label="Changes">
              <div class="diff diff-head" role="row">
                <span role="columnheader" class="number">
                  Change
                </span>
                <span role="columnheader" class="number">
                  %
                </span>
                <span role="columnheader">
                  <span class="spoken">Bar</span>
                </span>
                <span role="columnheader" class="number">
                  Before
                </span>
                <span role="columnheader" class="number">
                  After
                </span>
                <span role="columnheader" class="number">
                  Blocks
                </span>
                <span role="columnheader">
                  <span class="spoken">Real or chance</span>
                </span>
                <span role="columnheader">{now.diffBy === "site" ? "Line of source" : now.diffBy}</span>
              </div>
              {data.rows.map((row, k) => {
                const share = (50 * Math.abs(row.bytes.value)) / largest;
                const isUp = row.bytes.value > 0;
                return (
                  <div
                    key={k}
                    class={`diff ${row.is_real ? "" : "is-chance"}`}
                    role="row"
                    onContextMenu={(event) => {
                      if (now.diffBy !== "function" && now.diffBy !== "site") return;
                      event.preventDefault();
                      openMenu(
                        event.clientX,
                        event.clientY,
                        functionMenu({ label: row.label, kind: "call" }, hasServer),
                        row.label.name,
                      );
                    }}
                  >
                    <span role="cell" class="number">
                      {estimatedChange(row.bytes)}
                    </span>
                    <span role="cell" class="number muted">
                      {row.percent === null ? "new" : `${row.percent > 0 ? "+" : ""}${row.percent.toFixed(1)}`}
                    </span>
                    <span role="cell" class="diff-bar">
                      <i
                        class={isUp ? "is-up" : "is-down"}
                        style={isUp ? { left: "50%", width: `${share}%` } : { right: "50%", width: `${share}%` }}
                      />
                    </span>
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
                    <Name label={row.label} />
                  </div>
                );
              })}
              {data.hidden_rows > 0 && <p class="leak-rest muted">{count(data.hidden_rows)} more rows.</p>}
              {against === null && hasServer && (
                <p class="leak-rest muted">
                  To compare with another trace: <code>heapline view NEW --against OLD</code>
                </p>
              )}
            </div>
          </div>
        )
      )}
    </div>
  );
}

function Verdict({ isReal, p }: { isReal: boolean; p: number }): JSX.Element {
  const chance = p < 0.001 ? "less than one in a thousand" : p.toFixed(3);
  return (
    <span
      class={`verdict ${isReal ? "is-real" : ""}`}
      {...tipOn(
        <div class="tip-text">
          {isReal ? "This change is significant." : "This change is within the sampling error."} Probability that chance
          gives as much: {chance}.
        </div>,
      )}
    >
      {isReal ? "● real" : "○ chance"}
    </span>
  );
}
