// Completion of the filter. The engine knows the query language; the page sends the text and shows the answer.

import { useEffect, useState } from "preact/hooks";
import { question } from "../api/question";
import type { Completion } from "../api/types";
import { currentSource, generation } from "../state/answers";

/** The continuations of a text. */
export interface Choices extends Completion {
  text: string;
}

/** The text with an item in place of what it replaces, and the cursor after it. */
export function insert({ text, replace: [from, to] }: Choices, item: string): { text: string; cursor: number } {
  const before = `${text.slice(0, from)}${item} `;
  return { text: before + text.slice(to).trimStart(), cursor: before.length };
}

/** The names in the filter that the trace does not have, most likely misspelt. */
export function useUnmatched(where: string): readonly string[] {
  const [found, setFound] = useState<{ where: string; names: readonly string[] } | null>(null);
  useEffect(() => {
    if (where.trim() === "") return;
    const abort = new AbortController();
    currentSource()
      .ask<Completion>(question("complete", { text: where, cursor: 0, rows: 1, check: true }), abort.signal)
      .then(
        ({ report }) => setFound({ where, names: report.unmatched }),
        // The views say what is wrong with a filter.
        () => {},
      );
    return () => abort.abort();
  }, [where, generation.value]);
  return found?.where === where ? found.names : [];
}

/** Completes the newest text only: answers about an earlier one are dropped. */
export class Completer {
  private request: AbortController | null = null;

  /** True until the answer about the newest text is there. */
  get isWaiting(): boolean {
    return this.request !== null;
  }

  /** Asks what fits at the cursor. `show` gets null if that is nothing. */
  async complete(text: string, cursor: number, show: (choices: Choices | null) => void): Promise<void> {
    this.cancel();
    const mine = new AbortController();
    this.request = mine;
    // Not from the cache of answers: each text is asked about once, and would evict a report.
    const asked = currentSource().ask<Completion>(question("complete", { text, cursor }), mine.signal);
    const found = await asked.then(
      ({ report }) => (report.items.length > 0 ? { ...report, text } : null),
      () => null,
    );
    if (this.request !== mine) return;
    this.request = null;
    show(found);
  }

  /** Drops the answer that is awaited. */
  cancel(): void {
    this.request?.abort();
    this.request = null;
  }
}
