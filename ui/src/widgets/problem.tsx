import type { JSX } from "preact";
import type { ApiError } from "../api/source";
import { viewerCommand } from "../state/command";
import { copy } from "./controls";

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
  // Errors in the query are shown in the filter bar.
  if (error.body.parameter === "where" && error.body.span) {
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
        <p class="empty-title">{error.message}</p>
      )}
      {error.body.expected && <p>{error.body.expected}</p>}
    </div>
  );
}
