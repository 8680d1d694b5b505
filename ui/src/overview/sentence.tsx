// The sentences of findings, with the figures of crates/text/src/findings.rs.

import type { JSX } from "preact";
import type { Phrase } from "../api/types";
import { endText } from "../state/describe";
import { count, estimatedBytes, printable, samplingRate, seconds } from "../format";

/** The text of a part of a sentence. */
export function phraseText(phrase: Phrase): string {
  if ("text" in phrase) return phrase.text;
  if ("name" in phrase) return printable(phrase.name);
  if ("bytes" in phrase) return estimatedBytes(phrase.bytes);
  if ("bytes_per_second" in phrase) return `${estimatedBytes(phrase.bytes_per_second)}/s`;
  if ("percent" in phrase) return `${phrase.percent.toFixed(1)} %`;
  if ("seconds" in phrase) return seconds(phrase.seconds);
  if ("count" in phrase) return count(phrase.count);
  if ("rate" in phrase) return samplingRate(phrase.rate);
  return endText();
}

/** A sentence in which names and amounts stand out. */
export function Sentence({ phrases }: { phrases: readonly Phrase[] }): JSX.Element {
  return (
    <>
      {phrases.map((phrase, k) => {
        if ("name" in phrase) return <b key={k}>{phraseText(phrase)}</b>;
        if ("text" in phrase || "at_end" in phrase) return phraseText(phrase);
        return (
          <span key={k} class="figure">
            {phraseText(phrase)}
          </span>
        );
      })}
    </>
  );
}
