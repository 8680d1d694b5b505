// The totals at the top; each selects the scope of the views.

import type { JSX } from "preact";
import type { Estimate, Figures, Summary } from "./api/types";
import { bytes, countShort, exact, estimatedBytes, estimatedCount, percent, seconds } from "./format";
import type { ApiError } from "./api/source";
import { scopeText } from "./state/describe";
import { chooseScope, shownScope, type Tile as Scope } from "./state/scope";
import { traceFacts } from "./state/session";
import { state } from "./state/state";
import { moveInRadioGroup } from "./widgets/controls";
import { tipOn } from "./widgets/tip";

interface Tile {
  live: Scope;
  figures: (summary: Summary) => Figures;
  note: (summary: Summary) => string;
  help: string;
}

const TILES: readonly Tile[] = [
  {
    live: "all",
    figures: (summary) => counted(summary.allocated, summary.counted?.allocated),
    note: (summary) => rate(summary, summary.allocation_rate, summary.counted?.allocated.value),
    help: "All memory allocated, dead or live. Click to show it in all views.",
  },
  {
    live: "peak",
    figures: (summary) => summary.live_at_peak,
    note: (summary) => `at ${seconds(summary.peak_time)}`,
    help: "Memory live when the program used most. Click to show it in all views.",
  },
  {
    live: "end",
    figures: (summary) => summary.live_at_end,
    note: (summary) => `at ${seconds(summary.subject.duration)}`,
    help: "Memory not collected by the end of the trace, including garbage that was not found yet.",
  },
];

/** Said of totals that are exact where the parts of them are not. */
const COUNTED =
  "OCaml's runtime counted these bytes, so they are exact. What single functions have of them is estimated.";

/** Figures with the bytes that the runtime counted, if it did. */
function counted(figures: Figures, bytes: Estimate | undefined): Figures {
  return bytes ? { ...figures, bytes } : figures;
}

/** Bytes per second: of those that the runtime counted, if it did. */
function rate({ subject }: Summary, sampled: Estimate | null, counted: number | undefined): string {
  if (!sampled) return "";
  return `${bytes(counted === undefined ? sampled.value : counted / subject.duration)}/s`;
}

export function Headline(props: {
  summary: Summary | null;
  whole: Summary | null;
  isStale: boolean;
  error: ApiError | null;
  onChoose: (tile: Scope) => void;
}): JSX.Element {
  const { summary, whole } = props;
  const promoted = summary?.counted && exact(summary.counted.promoted);
  const now = state.value;
  const shown = shownScope(now);
  const isOther = shown === null || typeof shown === "number";
  const isPart = summary !== null && whole !== null && summary.subject.sampled_blocks !== whole.subject.sampled_blocks;
  // The totals of the whole trace, for the shares, are still awaited.
  const isIncomplete = summary !== null && whole === null && props.error === null;
  return (
    <div
      class={`headline ${props.isStale || isIncomplete ? "stale" : ""}`}
      role="radiogroup"
      aria-label="What to look at"
      onKeyDown={moveInRadioGroup}
    >
      {TILES.map((tile) => {
        const figures = summary && tile.figures(summary);
        const all = whole && tile.figures(whole);
        const change = chooseScope(now, tile.live, traceFacts());
        const refusal = typeof change === "string" ? change : null;
        return (
          <button
            key={tile.live}
            type="button"
            role="radio"
            aria-checked={shown === tile.live}
            disabled={refusal !== null}
            tabIndex={shown === tile.live || (isOther && tile.live === "all") ? 0 : -1}
            class="tile"
            onClick={() => props.onChoose(tile.live)}
            {...tipOn(
              <div class="tip-text">
                {refusal ?? tile.help}
                {tile.live === "all" && summary?.counted && <p>{COUNTED}</p>}
                {figures && <p class="muted">{estimatedCount(figures.blocks)} blocks</p>}
              </div>,
            )}
          >
            <span class="tile-name">{scopeText(tile.live)}</span>
            <span class="tile-value">
              {figures ? <Amount estimate={figures.bytes} /> : props.error ? "not known" : "…"}
            </span>
            <span class="tile-notes">
              <span>
                {figures &&
                  summary &&
                  (isPart && all ? percent(figures.bytes.value, all.bytes.value) : tile.note(summary))}
              </span>
              {isPart && all && <span class="tile-whole">of {bytes(all.bytes.value)}</span>}
              <span>{figures && `${countShort(figures.blocks.value)} blocks`}</span>
            </span>
          </button>
        );
      })}
      {summary?.subject.tells.promotions && (
        <div
          class="tile tile-plain"
          {...tipOn(
            <div class="tip-text">
              Memory that was allocated on the minor heap and lived long enough to be moved to the major heap, where
              collecting it costs more.
              {summary.counted && <p>{COUNTED}</p>}
            </div>,
          )}
        >
          <span class="tile-name">Promoted</span>
          <span class="tile-value">
            <Amount estimate={counted(summary.promoted, promoted).bytes} />
          </span>
          <span class="tile-notes">
            <span>{rate(summary, summary.promotion_rate, promoted?.value)}</span>
            <span>{countShort(summary.promoted.blocks.value)} blocks</span>
          </span>
        </div>
      )}
    </div>
  );
}

/** An amount with a de-emphasised error. */
export function Amount({ estimate }: { estimate: Estimate }): JSX.Element {
  const [value, rest] = estimatedBytes(estimate).split(" ± ");
  if (rest === undefined) return <>{value}</>;
  const [error, unit] = rest.split(" ");
  return (
    <>
      {value} <span class="error">± {error}</span> {unit}
    </>
  );
}
