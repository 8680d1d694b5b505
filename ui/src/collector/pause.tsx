// A pause of the garbage collector in words.

import type { JSX } from "preact";
import type { WorstPause } from "../api/types";
import { count, estimatedBytes, label, seconds } from "../format";
import { Sentence } from "../overview/sentence";
import { piecesText, startText } from "./text";

/** Why a pause took long. */
export function Causes({ pause }: { pause: WorstPause }): JSX.Element {
  return (
    <>
      {pause.causes.map((cause) => (
        <p key={cause.kind} class="pause-cause">
          <Sentence phrases={cause.sentence} />
        </p>
      ))}
    </>
  );
}

/** The sites whose blocks were promoted in a pause. */
export function PromotedSites({ pause }: { pause: WorstPause }): JSX.Element | null {
  const rows = pause.promoted?.rows ?? [];
  if (rows.length === 0) return null;
  return (
    <table class="pause-sites">
      <tbody>
        {rows.map((row, k) => (
          <tr key={k}>
            <td class="number">{estimatedBytes(row.bytes)}</td>
            <td class="number muted">{row.percent.toFixed(1)} %</td>
            <td class="pause-site">{label(row.label)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The words promoted in a pause; empty if there are none, or if they are not known. */
export function promotedText({ promoted_words }: WorstPause): string {
  return promoted_words === null || promoted_words === 0 ? "" : `${count(promoted_words)} words promoted (exact)`;
}

/** The tooltip of a pause. */
export function PauseTip(props: { pause: WorstPause; hasSeveral: boolean; hint: string }): JSX.Element {
  const { pause } = props;
  return (
    <div class="pause-tip">
      <div>
        <strong>{seconds(pause.length)}</strong> at {startText(pause)}
        {props.hasSeveral && `, domain ${pause.domain}`}
      </div>
      <div class="muted">{piecesText(pause)}</div>
      <Causes pause={pause} />
      {promotedText(pause) !== "" && <div>{promotedText(pause)}</div>}
      <PromotedSites pause={pause} />
      {props.hint !== "" && <div class="muted">{props.hint}</div>}
    </div>
  );
}
