// The source of answers: a server, or the report file that contains the page. No other code knows which.

import type { News } from "./events";
import { httpSource } from "./http";
import type { Question } from "./question";
import { reportSource } from "./report";
import type { ApiErrorBody, Status } from "./server";

/** An answer of the engine. */
export interface Reply<T> {
  /** The report, as `heapline COMMAND --json` prints it. */
  report: T;
  /** The command that prints it; null if there is none. */
  command: string | null;
  /** Identifies the traces. */
  identity: string;
  /** Counts the states of a trace that grows. */
  epoch: number;
}

export interface Source {
  /** The state of loading, and the names of the files. */
  status(): Promise<Status>;
  /**
   * The answer to a question, about the state of an epoch if the source still has it. Fails with an {@link ApiError}, or
   * when aborted.
   */
  ask<T>(question: Question, signal?: AbortSignal, epoch?: number | null): Promise<Reply<T>>;
  /**
   * Tells of the newest state of a trace that is being recorded, and of each that follows, until that has ended. The
   * state of the epoch to hold can be asked about meanwhile. Null if the source never grows.
   */
  follow: ((hold: number | null, onNews: (news: News) => void, signal: AbortSignal) => Promise<void>) | null;
  /** The only bounds of time windows that there are answers for; null if all are. */
  slices: readonly number[] | null;
  /** True if any request is possible: custom queries, focus, hiding. */
  hasServer: boolean;
}

/** A failed request, and the reason. */
export class ApiError extends Error {
  readonly body: ApiErrorBody;

  constructor(body: Partial<ApiErrorBody> & { code: string; message: string }) {
    super(body.message);
    this.name = "ApiError";
    this.body = { parameter: null, value: null, span: null, expected: null, ...body };
  }
}

/** The source of this page. */
export async function openSource(): Promise<Source> {
  const embedded = document.getElementById("heapline-report");
  return embedded ? reportSource(embedded.textContent ?? "") : httpSource("api/v1/");
}
