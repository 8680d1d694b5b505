import type { JSX } from "preact";
import type { OwnCode } from "../api/types";
import { printable } from "../format";
import { useAnswer } from "../state/answers";
import { viewQuestion } from "../state/questions";
import { traceFacts } from "../state/session";
import { state, update } from "../state/state";
import { tipOn } from "../widgets/tip";

/** The parts of reports that say which code is the program's own. */
interface Attributed {
  subject?: { own_code?: OwnCode };
  /** The second of what is compared. */
  after?: { own_code?: OwnCode };
}

/** Attributes the memory of libraries to the program's own code in all views, or shows functions as they are. */
export function OwnCodeButton(): JSX.Element {
  const now = state.value;
  const { data } = useAnswer<Attributed>(viewQuestion(now, traceFacts()));
  const isOn = now.ownCode;
  const libraries = (data?.subject ?? data?.after)?.own_code?.libraries ?? [];
  return (
    <button
      type="button"
      class="button"
      aria-pressed={isOn}
      onClick={toggleOwnCode}
      {...tipOn(
        <div class="tip-text">
          Attribute the memory of libraries to your own code in all views: the innermost function outside of them.{" "}
          <kbd>y</kbd>
          {isOn && libraries.length > 0 && (
            <p class="muted">Libraries in this trace: {libraries.map(printable).join(", ")}.</p>
          )}
        </div>,
      )}
    >
      Own code
    </button>
  );
}

/** The patterns of own code, to correct what counts as a library. */
export function OwnCodePatterns(): JSX.Element | null {
  const now = state.value;
  if (!now.ownCode) return null;
  return (
    <input
      class="own-patterns"
      type="text"
      spellcheck={false}
      autocomplete="off"
      aria-label="Patterns of own code"
      placeholder="all but libraries"
      size={Math.max(16, now.mine.join(", ").length)}
      value={now.mine.join(", ")}
      onChange={(event) => update({ mine: patternsIn(event.currentTarget.value), node: "" })}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
        event.stopPropagation();
      }}
      {...tipOn(
        <div class="tip-text">
          Functions and crates that are your own, separated by commas, if not all outside of the known libraries:{" "}
          <code>Parser.*, my_crate, /^Cc/</code>.
        </div>,
      )}
    />
  );
}

/** The patterns in a list. A regular expression may have commas. */
export function patternsIn(text: string): string[] {
  const found = text.match(/\s*\/(?:\\.|[^/\\])*\/i?\s*(?=,|$)|[^,]+/g) ?? [];
  return found.map((pattern) => pattern.trim()).filter((pattern) => pattern !== "");
}

export function toggleOwnCode(): void {
  update({ ownCode: !state.value.ownCode, node: "" });
}
