// The peak of the selection, and what it would be without some of the blocks.

import type { JSX } from "preact";
import type { PeakPoint, PeakReport } from "../api/types";
import { estimatedBytes, printable, seconds } from "../format";
import { currentSource, useAnswer } from "../state/answers";
import { withClause } from "../state/patterns";
import { comparesWindows, peakQuestion } from "../state/questions";
import { chooseMoment } from "../state/scope";
import { traceFacts } from "../state/session";
import { state, update } from "../state/state";
import { Chip, copy } from "../widgets/controls";
import { type MenuItem, openMenuBelow } from "../widgets/menu";
import { tipOn } from "../widgets/tip";

function pointText({ live, time }: PeakPoint): string {
  return `${estimatedBytes(live.bytes)} at ${seconds(time)}`;
}

function copyItem(command: string | null): MenuItem {
  return {
    text: "Copy as command",
    isDisabled: command === null,
    run: () => command !== null && void copy(command, "the command"),
  };
}

/** The highest live memory of the filtered blocks within the window. Without filter and window, a total says it. */
export function SelectionPeak(): JSX.Element | null {
  const now = state.value;
  const isFiltered = now.where.trim() !== "" || now.callers.length > 0;
  const isPart = now.window !== null || isFiltered;
  const isShown = currentSource().hasServer && isPart && !comparesWindows(now, traceFacts());
  const { data, command, isStale } = useAnswer<PeakReport>(isShown ? peakQuestion({ ...now, without: [] }) : null);
  if (!isShown || !data) return null;
  const { peak } = data;
  return (
    <button
      type="button"
      class={`selection-peak ${isStale ? "stale" : ""}`}
      onClick={(event) =>
        openMenuBelow(event, [
          { text: "Show what is live then", run: () => update(chooseMoment(state.value, peak.time)) },
          copyItem(command),
        ])
      }
      {...tipOn(
        <div class="tip-text">
          Most live memory{isFiltered && " of the blocks that are selected"}
          {now.window && ", at any time in the window"}.
        </div>,
      )}
    >
      <span>peak {now.window ? "in the window" : "of the selection"}</span> <b>{pointText(peak)}</b>
    </button>
  );
}

/** The peak without the blocks of the queries that were chosen, beside the filter. */
export function WithoutChip(): JSX.Element | null {
  const now = state.value;
  const isShown = currentSource().hasServer && now.without.length > 0;
  const { data, error, command, isStale } = useAnswer<PeakReport>(isShown ? peakQuestion(now) : null);
  if (!isShown) return null;
  const queries = printable(now.without.join(" or "));
  const rest = data?.without;
  const text = error
    ? `${queries}: ${error.message}`
    : rest && data
      ? `${queries} the peak is ${pointText(rest.peak)} (instead of ${pointText(data.peak)})`
      : `${queries} …`;
  return (
    <span class={`what-if ${isStale ? "stale" : ""}`} role="status">
      <Chip
        kind="without"
        text={text}
        help={
          <div class="tip-text">
            {rest && (
              <p>
                {estimatedBytes(rest.saved)} less, {rest.saved_percent.toFixed(1)} %. It holds{" "}
                {estimatedBytes(rest.held.bytes)} of the peak.
              </p>
            )}
            <p class="muted">If the rest of the program allocates and frees as before.</p>
          </div>
        }
        onRemove={() => update({ without: [] })}
        onClick={(event) =>
          openMenuBelow(event, [
            {
              text: "Filter: exclude it in all views",
              run: () =>
                update({
                  where: now.without.reduce((where, query) => withClause(where, `not (${query})`), now.where),
                  without: [],
                  node: "",
                }),
            },
            copyItem(command),
          ])
        }
      />
    </span>
  );
}
