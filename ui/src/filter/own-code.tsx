import type { JSX } from "preact";
import type { OwnCode } from "../api/types";
import { printable } from "../format";
import { useAnswer } from "../state/answers";
import { isOwnCode, viewQuestion } from "../state/questions";
import { traceFacts } from "../state/session";
import { type State, state, update } from "../state/state";
import { tipOn } from "../widgets/tip";

/** The parts of reports that say which code is the program's own. */
interface Attributed {
  subject?: { own_code?: OwnCode };
  /** The second of what is compared. */
  after?: { own_code?: OwnCode };
}

/** Attributes the memory of libraries to the program's own code, or shows functions as they are. */
export function OwnCodeButton(): JSX.Element {
  const now = state.value;
  const { data } = useAnswer<Attributed>(viewQuestion(now, traceFacts()));
  const isOn = isOwnCode(now);
  const libraries = (data?.subject ?? data?.after)?.own_code?.libraries ?? [];
  return (
    <button
      type="button"
      class="button"
      aria-pressed={isOn}
      onClick={toggleOwnCode}
      {...tipOn(
        <div class="tip-text">
          Attribute the memory of libraries to your own code: the innermost function outside of them. <kbd>y</kbd>
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

/** The change that attributes memory to own code or to all functions. The lists of the overview have their own choice. */
export function chooseOwnCode({ view }: State, isOn: boolean): Partial<State> {
  if (view !== "overview") return { ownCode: isOn, node: "" };
  return isOn ? { lists: "own" } : { lists: "all", ownCode: false, node: "" };
}

export function toggleOwnCode(): void {
  update(chooseOwnCode(state.value, !isOwnCode(state.value)));
}
