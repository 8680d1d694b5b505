// Significant changes between two traces, or between two time windows of one: as a table or as a flame graph.

import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import type { NamedDiff, NamedDiffTree, Normalise } from "../api/types";
import { count, estimatedBytes, estimatedChange, printable } from "../format";
import { canCompareWithFile, chooseFile } from "../drop";
import { currentSource, isFatal, offered, useAnswer } from "../state/answers";
import { groupOptions, scopeText } from "../state/describe";
import type { Span } from "../state/codec";
import { diffQuestion, diffTreeQuestion, diffWindows, PLAIN_LOOK } from "../state/questions";
import { status, traceFacts, isExact } from "../state/session";
import { FRAMES, type State, state, update } from "../state/state";
import { spanText } from "../timeline/scale";
import { Check, Empty, Explain, Segmented, Select } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { RowFilter } from "../widgets/row-filter";
import { tipOn } from "../widgets/tip";
import { DiffFlame } from "./diff-flame";
import { changePercent, shortNames } from "./diff-rows";
import { DiffTable } from "./diff-table";
import { ExplainReal, Verdict } from "./significance";
import { WholeNote } from "./whole-note";

const NO_WINDOWS = { before: null, after: null };

const SHAPES = ["table", "flame"] as const;
const SHAPE_NAMES = { table: "Table", flame: "Flame graph" } as const;

const NORMALISE: readonly { value: State["per"]; text: string }[] = [
  { value: "auto", text: "automatically" },
  { value: "none", text: "not at all" },
  { value: "time", text: "to the same time" },
  { value: "allocated", text: "to the same allocation" },
];

export function CompareView(): JSX.Element {
  const { hasServer } = currentSource();
  // A report file has one pair of windows, with all functions.
  const now: State = hasServer
    ? state.value
    : { ...state.value, ...PLAIN_LOOK, window: null, ...NO_WINDOWS, per: "auto" };
  const isFlame = now.diffShape === "flame";
  const against = status.value?.against ?? null;
  const facts = traceFacts();
  const windows = diffWindows(now, facts);
  const questionOf = (shape: State["diffShape"]) =>
    // A report file has flame graphs of functions.
    shape === "flame"
      ? diffTreeQuestion(hasServer ? now : { ...now, diffBy: "function" }, facts)
      : diffQuestion(now, facts);
  const question = questionOf(now.diffShape);
  const answer = useAnswer<NamedDiff | NamedDiffTree>(question);
  const { data, error, isStale } = answer;
  const filter = useRef<HTMLInputElement>(null);

  return (
    <div class={`view ${isFlame ? "flame-view" : ""}`}>
      <div class="toolbar">
        <Segmented
          label="Shown as"
          value={now.diffShape}
          options={offered(SHAPES, questionOf).map((value) => ({ value, text: SHAPE_NAMES[value] }))}
          onChange={(diffShape) => update({ diffShape, node: "", range: null })}
        />
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
            { value: "end" as const, text: windows ? "Live at the end of each window" : scopeText("end") },
          ]}
          onChange={(of) => update({ of })}
        />
        {(hasServer || !isFlame) && (
          <Select
            label={isFlame ? "A box is a" : "A row is a"}
            value={now.diffBy}
            options={groupOptions(offered(FRAMES, (diffBy) => diffQuestion({ ...now, diffBy }, facts)))}
            onChange={(diffBy) => update({ diffBy, node: "" })}
          />
        )}
        {hasServer && (
          <>
            <Select label="Scale" value={now.per} options={NORMALISE} onChange={(per) => update({ per })} />
            <Explain>
              Amounts after can be scaled to the duration of before, or to its total allocation, so that a longer window
              or run does not look like growth. Automatically: to the same time if allocations in windows of different
              lengths are compared, otherwise not at all.
            </Explain>
          </>
        )}
        {hasServer && !isFlame && (
          <Check
            text="Only significant changes"
            help={isExact() ? "Hide what did not change" : "Hide changes within the sampling error"}
            value={now.realOnly}
            onChange={(realOnly) => update({ realOnly })}
          />
        )}
        <WholeNote what="comparison" ignoresWindow={windows === null} />
        {canCompareWithFile() && (
          <button
            type="button"
            class="button"
            onClick={chooseFile}
            {...tipOn("Compare with another trace, which is before. Or drop its file onto the page")}
          >
            Other file…
          </button>
        )}
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
              their edges. In other views, drag with Ctrl to compare with the window there. Halves compares the first
              half of the run with the second. To compare with another trace, drop its file onto the page, or{" "}
              <code>heapline view NEW --against OLD</code>
            </Explain>
          </>
        )}
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : question === null ? (
        <Empty title="No time passed in this trace" />
      ) : (
        data && (
          <div class={`compare ${isStale ? "stale" : ""}`}>
            <Total data={data} windows={windows}>
              {!isFlame && (
                <>
                  <span class="spring" />
                  <RowFilter box={filter} />
                </>
              )}
            </Total>
            {"labels" in data ? (
              <DiffFlame data={data} of={answer.of} hasServer={hasServer} box={filter} />
            ) : (
              <DiffTable data={data} by={now.diffBy} hasServer={hasServer} filter={filter} />
            )}
          </div>
        )
      )}
    </div>
  );
}

const SCALED_TO: Record<Normalise, string> = {
  none: "",
  time: " to the same time",
  allocated: " to the same total allocation",
};

/** The change of everything together, and controls of what is below. */
function Total(props: {
  data: NamedDiff | NamedDiffTree;
  windows: { before: Span; after: Span } | null;
  children: ComponentChildren;
}): JSX.Element {
  const { data, windows } = props;
  const { total } = data;
  const isTree = "labels" in data;
  const all = isTree ? data.nodes.parent.length : data.rows.length + data.hidden_rows;
  const one = isTree ? "box" : "row";
  const names = shortNames(data.before_name, data.after_name);
  const side = (name: "before" | "after") => (
    <span>
      <span class="muted" {...(windows ? {} : tipOn(printable(data[`${name}_name`])))}>
        {name} ({windows ? spanText(windows[name].from, windows[name].to) : names[name]})
      </span>{" "}
      {estimatedBytes(total[name].bytes)}
    </span>
  );
  return (
    <div class="compare-total">
      {side("before")}
      {side("after")}
      {Math.abs(data.scale - 1) > 1e-9 && (
        <span class="scaled">
          after × {data.scale.toPrecision(3)}
          {SCALED_TO[data.per]}
        </span>
      )}
      <span>
        <span class="muted">change</span> <b>{estimatedChange(total.bytes)}</b>
        {total.percent !== null && ` (${changePercent(total.percent)} %)`}
      </span>
      <Verdict isReal={total.is_real} p={total.p_value} />
      <span class="muted">
        {count(all)} {all === 1 ? one : isTree ? "boxes" : "rows"}, {count(data.real_changes)} called real{" "}
        {isTree && <ExplainReal of="boxes" />}
      </span>
      {props.children}
    </div>
  );
}
