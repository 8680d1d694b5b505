// The source of answers: a server, or the report file that contains the page. No other code knows which.

import { httpSource } from "./http";
import { type Question, question } from "./question";
import { reportSource } from "./report";
import type { ApiErrorBody, Status } from "./server";

export interface Source {
  /** The answer, as `heapline COMMAND --json` prints it. Fails with an {@link ApiError}, or when aborted. */
  ask<T>(question: Question, signal?: AbortSignal): Promise<T>;
  /** The only bounds of time windows that can be requested; null if all can. */
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

export function askStatus(source: Source, signal?: AbortSignal): Promise<Status> {
  return source.ask<Status>(question("status"), signal);
}
