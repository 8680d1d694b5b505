import type { JSX } from "preact";
import { isUnreachable, reconnect } from "./state/answers";
import { Icon } from "./widgets/icons";

/** Says that the server does not answer, as long as that is so. What is on the screen stays. */
export function Connection(): JSX.Element | null {
  if (!isUnreachable.value) return null;
  return (
    <div class="connection" role="alert">
      <Icon name="warn" />
      <span>
        The server does not answer. Has <code>heapline view</code> been stopped? Trying again every two seconds.
      </span>
      <button type="button" class="button" onClick={() => void reconnect()}>
        Try now
      </button>
    </div>
  );
}
