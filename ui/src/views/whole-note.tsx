import type { JSX } from "preact";
import { currentSource } from "../state/answers";
import { state } from "../state/state";

/** Says what of the choices a view of a report file does not follow. A server has answers to all of them. */
export function WholeNote(props: { what: string; ignoresWindow?: boolean }): JSX.Element | null {
  const { hide, window } = state.value;
  if (currentSource().hasServer) return null;
  const ignored = [
    ...(hide.length > 0 ? ["hidden functions are included"] : []),
    ...(props.ignoresWindow && window ? ["the chosen window does not restrict it"] : []),
  ];
  if (ignored.length === 0) return null;
  return (
    <span class="whole-note" role="note">
      This report file has the {props.what} only as a whole: {ignored.join(", and ")}.
    </span>
  );
}
