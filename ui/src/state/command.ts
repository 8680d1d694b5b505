// The command to type for what is on the screen. The engine sends it with each answer.

import type { Answer } from "./answers";
import { status } from "./session";

/**
 * The command that prints an answer, once it is there. What a report file has no answer to needs the trace: then this is
 * the command that opens it.
 */
export function commandOf({ command, error }: Answer<unknown>): string | null {
  return command ?? (error?.body.code === "not_in_report" ? viewerCommand() : null);
}

export function viewerCommand(): string | null {
  return status.value?.command ?? null;
}
