// The significance of a change in words.

import type { JSX } from "preact";
import { Explain } from "../widgets/controls";
import { tipOn } from "../widgets/tip";
import { isExact } from "../state/session";

/** The verdict on a change, and the probability that chance gives as much. */
export function chanceText(isReal: boolean, p: number): string {
  if (isExact()) return isReal ? "The figures are exact." : "The figures are exact: it did not change.";
  const chance = p < 0.001 ? "less than one in a thousand" : p.toFixed(3);
  const verdict = isReal ? "This change is significant." : "This change is within the sampling error.";
  return `${verdict} Probability that chance gives as much: ${chance}.`;
}

export function Verdict({ isReal, p }: { isReal: boolean; p: number }): JSX.Element {
  return (
    <span class={`verdict ${isReal ? "is-real" : ""}`} {...tipOn(<div class="tip-text">{chanceText(isReal, p)}</div>)}>
      {isReal ? "● real" : isExact() ? "○ same" : "○ chance"}
    </span>
  );
}

/** Explains the correction for many tests. */
export function ExplainReal({ of }: { of: "rows" | "boxes" }): JSX.Element {
  return (
    <Explain>
      {isExact() && "These figures are exact. Of sampled ones: "}Among many {of}, some change by chance by more than
      their ±. Real are those that pass the Benjamini-Hochberg procedure for many tests, at a false discovery rate of 5
      %: of all that are called real, one in twenty is not, on average. Differences between runs other than sampling are
      not taken into account.
    </Explain>
  );
}
