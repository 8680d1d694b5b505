// The ranked lists of the summary.

import type { JSX } from "preact";
import type { Ranked, Ranking, Summary } from "../api/types";
import { bytes, count, estimatedCount, seconds } from "../format";
import { Amount } from "../headline";
import { AttributedTo } from "../filter/attributed-to";
import { currentSource } from "../state/answers";
import { GROUP_NAMES } from "../state/describe";
import { isRecording } from "../state/live";
import { state, update } from "../state/state";
import { NameText } from "../views/table";
import { targetOfList, targetOfRow } from "./targets";

/** In the words of crates/text/src/summary.rs. */
const TITLES: Record<Ranking["kind"], string> = {
  live_at_peak: "Live at peak",
  live_at_end: "Live at end",
  allocated: "Bytes allocated",
  blocks: "Blocks allocated",
  short_lived: "Short-lived",
};

/** True if the source tells what the list is about. */
function isTold({ subject, live_at_peak, live_at_end }: Summary, kind: Ranking["kind"]): boolean {
  // A number that the source does not tell is null.
  const isKnown = (value: number | null) => value !== null;
  switch (kind) {
    case "blocks":
      return subject.tells.sizes;
    case "short_lived":
      return subject.tells.lifetimes;
    case "live_at_peak":
      return isKnown(live_at_peak.bytes.value);
    case "live_at_end":
      return isKnown(live_at_end.bytes.value);
    case "allocated":
      return true;
  }
}

export function Lists({ summary }: { summary: Summary }): JSX.Element {
  const by = GROUP_NAMES[summary.by as keyof typeof GROUP_NAMES];
  return (
    <div class="rankings">
      <div class="rankings-head">
        <AttributedTo ownCode={summary.subject.own_code} />
      </div>
      {summary.lists
        .filter((list) => isTold(summary, list.kind))
        .map((list) => (
          <section key={list.kind} class="ranking">
            <h2>
              {list.kind === "live_at_end" && isRecording() ? "Live now" : TITLES[list.kind]}, by {by}
              {list.kind === "short_lived" && (
                <span class="muted">
                  {" "}
                  dead within {seconds(summary.short)}, 1 % of the run: {bytes(list.total.bytes.value)} in total
                </span>
              )}
            </h2>
            {list.rows.length === 0 && <p class="muted">None.</p>}
            {list.rows.map((row, k) => (
              <Row key={k} row={row} kind={list.kind} summary={summary} />
            ))}
            {list.hidden_rows > 0 && <Rest list={list} summary={summary} />}
          </section>
        ))}
    </div>
  );
}

/** The number of rows that are not shown, and the way to them. A report file has no table of the same rows. */
function Rest({ list, summary }: { list: Ranking; summary: Summary }): JSX.Element {
  const text = `${count(list.hidden_rows)} more`;
  if (!currentSource().hasServer) return <p class="ranking-rest">{text}</p>;
  const show = () => update(targetOfList(list.kind, summary, state.value));
  return (
    <button type="button" class="ranking-rest" onClick={show}>
      {text}
    </button>
  );
}

function Row(props: { row: Ranked; kind: Ranking["kind"]; summary: Summary }): JSX.Element {
  const { row, kind, summary } = props;
  const inBlocks = kind === "blocks";
  const amount = inBlocks ? row.figures.blocks : row.figures.bytes;
  const isNoise = !summary.subject.is_exact && amount.error >= amount.value;
  // The name of memory whose stacks have no own code is no function.
  const isFunction = !row.label.name.startsWith("(");
  const show = () => update(targetOfRow(kind, row.label.name, summary, state.value, currentSource().hasServer));
  return (
    <button type="button" class={`ranked ${isNoise ? "is-noise" : ""}`} disabled={!isFunction} onClick={show}>
      <span class="number">{inBlocks ? estimatedCount(amount) : <Amount estimate={amount} />}</span>
      <span class="number muted">{row.percent.toFixed(1)} %</span>
      <span class={`name has-place ${isNoise ? "is-noise" : ""}`}>
        <NameText label={row.label} />
      </span>
    </button>
  );
}
