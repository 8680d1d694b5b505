import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { OwnCode } from "../api/types";
import { printable } from "../format";
import { useAnswer } from "../state/answers";
import { viewQuestion } from "../state/questions";
import { traceFacts } from "../state/session";
import { type State, state, update } from "../state/state";
import { Select } from "../widgets/controls";
import { tipOn } from "../widgets/tip";

/** The parts of reports that say which code is the program's own. */
interface Attributed {
  subject?: { own_code?: OwnCode };
  /** The second of what is compared. */
  after?: { own_code?: OwnCode };
}

/** The views in which memory is attributed to own code. */
type Attribution = "lists" | "everywhere" | "nowhere";

const ATTRIBUTIONS = [
  { value: "lists", text: "in lists" },
  { value: "everywhere", text: "everywhere" },
  { value: "nowhere", text: "nowhere" },
] as const satisfies readonly { value: Attribution; text: string }[];

function attribution({ ownCode, lists }: State): Attribution {
  if (ownCode) return "everywhere";
  return lists === "own" ? "lists" : "nowhere";
}

/** Attributes the memory of libraries to the program's own code, or shows functions as they are. */
export function OwnCodeSelect(): JSX.Element {
  const now = state.value;
  const { data } = useAnswer<Attributed>(viewQuestion(now, traceFacts()));
  const libraries = (data?.subject ?? data?.after)?.own_code?.libraries ?? [];
  return (
    <span
      {...tipOn(
        <div class="tip-text">
          Attribute the memory of libraries to your own code: the innermost function outside of them, in lists of
          functions, or also in flame graphs, call trees and source. <kbd>y</kbd>
          {libraries.length > 0 && <p class="muted">Libraries in this trace: {libraries.map(printable).join(", ")}.</p>}
        </div>,
      )}
    >
      <Select
        label="Own code"
        value={attribution(now)}
        options={ATTRIBUTIONS}
        onChange={(chosen) =>
          update({ ownCode: chosen === "everywhere", lists: chosen === "nowhere" ? "all" : "own", node: "" })
        }
      />
    </span>
  );
}

/** True once the patterns of own code were asked for: until then they would take the space of the filter. */
const isEdited = signal(false);

/** Shows the patterns of own code. */
export function editOwnCode(): void {
  isEdited.value = true;
  requestAnimationFrame(() => document.querySelector<HTMLInputElement>(".own-patterns")?.focus());
}

/** The patterns of own code, to correct what counts as a library. */
export function OwnCodePatterns(): JSX.Element | null {
  const now = state.value;
  const isShown = now.ownCode || now.mine.length > 0 || isEdited.value;
  if (!isShown || attribution(now) === "nowhere") return null;
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
  update({ ownCode: !state.value.ownCode, lists: "own", node: "" });
}
