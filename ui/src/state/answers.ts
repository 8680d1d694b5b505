// Fetches answers on demand: deduplicates requests, caches answers, aborts requests that are no longer needed.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, type Question } from "../api/question";
import { ApiError, type Reply, type Source } from "../api/source";

export interface Answer<T> {
  /** The last answer that arrived, possibly to the previous request. */
  data: T | null;
  error: ApiError | null;
  /** The command that prints the answer to the present question, once it is there. */
  command: string | null;
  /** True if `data` is not the answer to the present question. An earlier state of a trace that grows is one. */
  isStale: boolean;
  /** The question that `data` is the answer to. */
  of: string | null;
}

const KEPT = 60;
const kept = new Map<string, Reply<unknown>>();

let source: Source | null = null;

/** Which state of which traces the page shows, from the first answer on. */
let subject: { identity: string; epoch: number } | null = null;

/** Counts how often the trace has grown or the server has come back: then everything is asked again. */
export const generation = signal(0);

/** True once the server has answered about another trace, or about another run of the same one. */
export const isReplaced = signal(false);

/** True while the server does not answer. It is asked again and again until it does. */
export const isUnreachable = signal(false);

const RETRY_MS = 2000;
let retry: ReturnType<typeof setTimeout> | undefined;

export function useSource(chosen: Source): void {
  source = chosen;
  subject = null;
  kept.clear();
  pending.clear();
}

/** The epoch that the page shows; -1 before the first answer. */
export function shownEpoch(): number {
  return subject?.epoch ?? -1;
}

/** True while answers are on their way. */
export function isWaiting(): boolean {
  return pending.size > 0;
}

/** Shows a later state of the trace. */
export function advanceTo(epoch: number): void {
  if (!subject || epoch <= subject.epoch) return;
  subject = { ...subject, epoch };
  kept.clear();
  generation.value += 1;
}

export function currentSource(): Source {
  if (!source) throw new Error("no source of data was opened");
  return source;
}

/** The choices that there are answers for: all with a server. If the present state has none, neither is any left out. */
export function offered<T>(choices: readonly T[], questionOf: (choice: T) => Question | null): readonly T[] {
  const held = choices.filter((choice) => {
    const question = questionOf(choice);
    return question !== null && currentSource().holds(question);
  });
  return held.length > 0 ? held : choices;
}

/** A pending request, and the number of its waiters. */
interface Pending {
  answer: Promise<Reply<unknown>>;
  abort: AbortController;
  askers: number;
}

const pending = new Map<string, Pending>();

/** Asks, unless the answer is kept or already on its way. An asker that aborts leaves the others theirs. */
export async function ask<T>(question: Question, signal?: AbortSignal): Promise<Reply<T>> {
  const name = address(question);
  const known = kept.get(name) as Reply<T> | undefined;
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
  return asked.answer as Promise<Reply<T>>;
}

function start(name: string, question: Question): Pending {
  const abort = new AbortController();
  const answer = fetchAnswer(question, abort.signal)
    .then((reply) => {
      kept.set(name, reply);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
      return reply;
    })
    .finally(() => {
      if (pending.get(name)?.abort === abort) pending.delete(name);
    });
  const started = { answer, abort, askers: 0 };
  pending.set(name, started);
  return started;
}

/**
 * Asks the source. Answers of an older epoch than the newest do not go with it: what is kept is dropped, and what arrives
 * late is asked again. Answers about other traces are errors.
 */
async function fetchAnswer(question: Question, signal: AbortSignal): Promise<Reply<unknown>> {
  const before = subject?.epoch ?? -1;
  const reply = await currentSource().ask<unknown>(question, signal, subject?.epoch);
  const { identity, epoch } = reply;
  if (subject && epoch > subject.epoch && identity === subject.identity) {
    subject = { identity, epoch };
    kept.clear();
    generation.value += 1;
  }
  subject ??= { identity, epoch };
  if (identity === subject.identity && epoch === subject.epoch) return reply;
  if (identity === subject.identity && before < subject.epoch) return fetchAnswer(question, signal);
  isReplaced.value = true;
  throw new ApiError({ code: "other_trace", message: "The server shows another trace now." });
}

/** Asks the server if it is back; if so, asks all questions again. */
export async function reconnect(): Promise<void> {
  clearTimeout(retry);
  try {
    await currentSource().status();
  } catch {
    retry = setTimeout(() => void reconnect(), RETRY_MS);
    return;
  }
  isUnreachable.value = false;
  generation.value += 1;
}

function onUnreachable(): void {
  if (isUnreachable.value) return;
  isUnreachable.value = true;
  retry = setTimeout(() => void reconnect(), RETRY_MS);
}

/**
 * True if an error stands in for the answer. A filter that is still being typed and a server that is gone for a moment do
 * not: what was there before stays, as stale, and the error is shown on top of the page.
 */
export function isFatal({ error, data }: Answer<unknown>): boolean {
  if (error === null) return false;
  return data === null || (error.body.parameter !== "where" && error.body.code !== "unreachable");
}

/** True if there is no answer yet, or only the one to the question before. */
export function isAwaited({ isStale, error }: Answer<unknown>): boolean {
  return isStale && error === null;
}

/** The answer to a request, and while it is pending the previous one. */
export function useAnswer<T>(question: Question | null): Answer<T> {
  // Another one when the trace has grown.
  const of = question ? address(question) : null;
  const name = question ? `${generation.value} ${of}` : null;
  const [arrived, setArrived] = useState<Arrived<T>>({ name: null, of: null, reply: null, error: null });
  const asked = useRef(question);
  asked.current = question;

  useEffect(() => {
    const question = asked.current;
    if (name === null || !question) return;
    const abort = new AbortController();
    ask<T>(question, abort.signal).then(
      (reply) => !abort.signal.aborted && setArrived({ name, of, reply, error: null }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError({ code: "failed", message: String(error) });
        if (shown.body.code === "unreachable") onUnreachable();
        setArrived(({ reply, of }) => ({ name, of, reply, error: shown }));
      },
    );
    return () => abort.abort();
  }, [name]);

  const ready = question ? (kept.get(address(question)) as Reply<T> | undefined) : undefined;
  const { reply, error, ...last }: Arrived<T> = ready ? { name, of, reply: ready, error: null } : arrived;
  const isCurrent = ready !== undefined || arrived.name === name;
  return {
    data: reply?.report ?? null,
    error: isCurrent ? error : null,
    command: isCurrent && error === null ? (reply?.command ?? null) : null,
    isStale: isCurrent ? error !== null && reply !== null : last.of !== of,
    of: last.of,
  };
}

/** The last answer and its question. With an error, the reply is the one before. */
interface Arrived<T> {
  name: string | null;
  /** The question of the reply. */
  of: string | null;
  reply: Reply<T> | null;
  error: ApiError | null;
}
