import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { currentSource, isUnreachable, reconnect } from "./state/answers";
import { isRecording } from "./state/live";
import { status } from "./state/session";
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

/** True once another file has been written in the place of one that the server has loaded. */
const isOverwritten = signal(false);

const CHECK_MS = 10_000;

/** Looks now and then, while the page is visible, whether the files are still those that are shown. */
export function watchFiles(): void {
  const check = () => {
    // A file that is recorded to changes.
    if (document.visibilityState !== "visible" || isRecording() || isUnreachable.value) return;
    currentSource()
      .status()
      .then(
        (now) => (isOverwritten.value = now.overwritten === true),
        // The next question says that the server does not answer.
        () => {},
      );
  };
  setInterval(check, CHECK_MS);
  document.addEventListener("visibilitychange", check);
}

/** Says that the page is about a file that is not there any more, and what shows the new one. */
export function Overwritten(): JSX.Element | null {
  if (!isOverwritten.value) return null;
  return (
    <div class="connection" role="alert">
      <Icon name="warn" />
      <span>
        {status.value?.against == null ? `${status.value?.trace ?? "The file"} has` : "One of the files has"} been
        overwritten since it was loaded: this page is about the former one. To see the new one, stop this server and
        start <code>{status.value?.command}</code> again.
      </span>
    </div>
  );
}
