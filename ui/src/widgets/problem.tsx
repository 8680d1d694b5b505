import type { JSX } from "preact";
import type { ApiError } from "../api/source";
import { viewerCommand } from "../state/command";
import { heap } from "../state/session";
import { state } from "../state/state";
import { copy } from "./controls";
import { Message } from "./message";

/** Shows why a request failed, and what to do. */
export function Problem({ error }: { error: ApiError }): JSX.Element {
  if (error.body.code === "not_in_report") {
    const command = viewerCommand() ?? "";
    return (
      <div class="empty">
        <p class="empty-title">
          A report file has the usual questions with their answers, and this is not one of them.
        </p>
        <p>With the file at hand, this opens it in the viewer, which answers all questions:</p>
        <button type="button" class="command" onClick={() => void copy(command, "the command")}>
          {command}
        </button>
      </div>
    );
  }
  // The filter bar says what is wrong with the filter. Heap snapshots have none.
  const isOfFilter = error.body.parameter === "where" && error.body.value?.trim() === state.value.where.trim();
  if (isOfFilter && heap.value === null) {
    return (
      <div class="empty">
        <p class="empty-title">The filter has an error.</p>
      </div>
    );
  }
  return (
    <div class="empty" role="alert">
      {error.message.includes("\n") ? (
        <pre class="problem-text">{error.message}</pre>
      ) : (
        <p class="empty-title">
          <Message text={error.message} />
        </p>
      )}
      {error.body.expected && (
        <p>
          <Message text={error.body.expected} />
        </p>
      )}
    </div>
  );
}
