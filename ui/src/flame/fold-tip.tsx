import type { JSX } from "preact";
import { printable } from "../format";

/** Names that are listed; the rest is counted. */
const LISTED = 20;

/** The tooltip of the frames that nearly all stacks share. */
export function FoldTip({ names }: { names: readonly string[] }): JSX.Element {
  return (
    <div class="frame-tip">
      <div class="frame-tip-name">{names.length} frames that nearly all of this memory has in common</div>
      {names.slice(0, LISTED).map((name, place) => (
        <div key={place}>{printable(name)}</div>
      ))}
      {names.length > LISTED && <div>and {names.length - LISTED} more</div>}
      <div class="muted">Click, or press m, to unfold them.</div>
    </div>
  );
}
