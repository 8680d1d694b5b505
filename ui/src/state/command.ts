// The command line that is equivalent to the current view.

import { commandLine, type Question } from "../api/question";
import { copy } from "../widgets/controls";
import { viewQuestion } from "./questions";
import { status, traceFacts } from "./session";
import { state } from "./state";

/** The command that prints the answer to a request on this trace. */
export function command(question: Question): string {
  return commandLine(question, status.value?.path ?? "TRACE", status.value?.against_path ?? null);
}

/** The command for the current view. */
export function viewCommand(): string {
  return command(viewQuestion(state.value, traceFacts()));
}

export function copyCommand(question: Question): Promise<void> {
  return copy(command(question), "the command");
}
