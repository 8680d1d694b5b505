// Fetches answers on demand: deduplicates requests, caches answers, aborts requests that are no longer needed.

import { useEffect, useRef, useState } from "preact/hooks";
import { address, type Question } from "../api/question";
import { ApiError, type Source } from "../api/source";

export interface Answer<T> {
  /** The last answer that arrived, possibly to the previous request. */
  data: T | null;
  error: ApiError | null;
  /** True if `data` is not the answer to the current request. */
  isStale: boolean;
}

const KEPT = 60;
const kept = new Map<string, unknown>();

let source: Source | null = null;

export function useSource(chosen: Source): void {
  source = chosen;
}

export function currentSource(): Source {
  if (!source) throw new Error("no source of data was opened");
  return source;
}

/** A pending request, and the number of its waiters. */
interface Pending {
  answer: Promise<unknown>;
  abort: AbortController;
  askers: number;
}

const pending = new Map<string, Pending>();

/** Sends a request, unless the answer is cached or pending. Aborting one waiter does not affect the others. */
export async function ask<T>(question: Question, signal?: AbortSignal): Promise<T> {
  const name = address(question);
  const known = kept.get(name) as T | undefined;
  if (known !== undefined) {
    // Moves it to the end: the least recently used answer is evicted first.
    kept.delete(name);
    kept.set(name, known);
    return known;
  }
  const asked = pending.get(name) ?? start(name, question);
  asked.askers += 1;
  signal?.addEventListener("abort", () => {
    asked.askers -= 1;
    if (asked.askers > 0) return;
    // Nobody may join an aborted request.
    if (pending.get(name) === asked) pending.delete(name);
    asked.abort.abort();
  });
  return asked.answer as Promise<T>;
}

function start(name: string, question: Question): Pending {
  const abort = new AbortController();
  const answer = currentSource()
    .ask<unknown>(question, abort.signal)
    .then((answer) => {
      kept.set(name, answer);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
      return answer;
    })
    .finally(() => {
      if (pending.get(name)?.abort === abort) pending.delete(name);
    });
  const started = { answer, abort, askers: 0 };
  pending.set(name, started);
  return started;
}

/**
 * True if an error replaces the answer. An error in a filter that is being typed does not: the previous answer stays,
 * and the error is shown in the filter.
 */
export function isFatal({ error, data }: Answer<unknown>): boolean {
  return error !== null && (data === null || error.body.parameter !== "where");
}

/** The answer to a request, and while it is pending the previous one. */
export function useAnswer<T>(question: Question | null): Answer<T> {
  const name = question ? address(question) : null;
  const [answer, setAnswer] = useState<{ name: string | null; data: T | null; error: ApiError | null }>({
    name: null,
    data: null,
    error: null,
  });
  const asked = useRef(question);
  asked.current = question;
  const ready = name === null ? undefined : (kept.get(name) as T | undefined);

  useEffect(() => {
    const question = asked.current;
    if (name === null || !question) return;
    const abort = new AbortController();
    ask<T>(question, abort.signal).then(
      (data) => !abort.signal.aborted && setAnswer({ name, data, error: null }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError({ code: "failed", message: String(error) });
        setAnswer((before) => ({ name, data: before.data, error: shown }));
      },
    );
    return () => abort.abort();
  }, [name]);

  if (ready !== undefined) return { data: ready, error: null, isStale: false };
  const isCurrent = answer.name === name;
  return { data: answer.data, error: isCurrent ? answer.error : null, isStale: !isCurrent };
}
