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

/** A file to be saved. */
export interface SavedFile {
  name: string;
  content: Blob;
}

/** Files of the trace, by their address below the API's, about the state of an epoch. */
export interface Files {
  get(path: string, epoch: number): Promise<SavedFile>;
  /** The command that writes a file. */
  command(path: string, epoch: number): Promise<string | null>;
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
  /** Files of the trace that can be saved; null if the source has none. */
  files: Files | null;
  /** The state to begin with, as in the address; empty if that is the default. */
  state: string;
  /** Compares the trace with a file that was dropped onto the page. Null if there is nobody to read it. */
  compareWith: ((file: File) => Promise<void>) | null;
  /** True if there is an answer to a question that is well-formed. */
  holds(question: Question): boolean;
  /** The only bounds of time windows that there are answers for, none or several; null if all are. */
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
