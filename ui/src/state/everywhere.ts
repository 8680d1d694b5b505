// Searches beyond what is shown: the engine knows every name in the trace, a view only its rows or boxes.

import { useEffect, useState } from "preact/hooks";
import { address, type Question, question } from "../api/question";
import type { Figures, Hotspots } from "../api/types";
import { matcher } from "../flame/search";
import { currentSource, generation } from "./answers";
import { inQuery, quoted, searchPattern } from "./patterns";
import { scope, TABLE_ROWS } from "./questions";
import type { State } from "./state";

/** The groups whose names occur in stacks, in the syntax of the query language. */
const IN_STACKS: Partial<Record<State["by"], string>> = {
  function: "inside",
  site: "inside",
  file: "inside file",
  module: "inside module",
  crate: "inside crate",
};

/** Milliseconds without a key before the engine is asked. */
const PAUSE = 200;

/** The matches of a search in the whole trace. */
export interface Everywhere {
  /** The memory of all stacks with a match. */
  total: Figures;
  /** The names that match, those with most memory first. */
  names: string[];
  /** True if the selection has no match: this is about the whole run without the filter. */
  isOutside: boolean;
  /** The condition that selects what was found. */
  clause: string;
}

/** The condition for stacks with a name that matches a search text; null if there is none for rows of this kind. */
export function searchClause(by: State["by"], text: string): string | null {
  const field = IN_STACKS[by];
  return field === undefined || text.trim() === "" ? null : `${field} ${inQuery(searchPattern(text))}`;
}

/** The question for the memory in stacks that match a search, and for its names. */
export function everywhereQuestion(now: State, by: State["by"], clause: string, isOutside: boolean): Question {
  const selected = isOutside ? { ...now, where: "", callers: [], window: null, live: "all" as const } : now;
  const { where, estimator } = scope(selected);
  const names = by === "site" ? "function" : by;
  return question("hotspots", {
    where: [...where, clause],
    estimator,
    by: names,
    sort: "inclusive",
    "all-code": true,
    rows: TABLE_ROWS,
  });
}

/** The matches of a search in the whole trace, once they are known; null without a server. */
export function useEverywhere(now: State, by: State["by"], text: string): Everywhere | null {
  const clause = currentSource().hasServer ? searchClause(by, text) : null;
  const of = clause && `${generation.value} ${address(everywhereQuestion(now, by, clause, false))}`;
  const [found, setFound] = useState<{ of: string; everywhere: Everywhere } | null>(null);
  useEffect(() => {
    if (of === null || clause === null) return;
    const abort = new AbortController();
    // Not from the cache of answers: each text is asked about once, and would evict a report.
    const ask = async (isOutside: boolean) => {
      const asked = everywhereQuestion(now, by, clause, isOutside);
      const { report } = await currentSource().ask<Hotspots>(asked, abort.signal);
      return { report, isOutside };
    };
    const timer = setTimeout(() => {
      ask(false)
        .then((inside) => (inside.report.total.allocated.samples > 0 ? inside : ask(true)))
        .then(
          ({ report, isOutside }) => setFound({ of, everywhere: summed(report, by, text, clause, isOutside) }),
          // A text that is no regular expression yet has no answer.
          () => {},
        );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [of]);
  return found !== null && found.of === of ? found.everywhere : null;
}

function summed(report: Hotspots, by: State["by"], text: string, clause: string, isOutside: boolean): Everywhere {
  const matches = matcher(text);
  const names = report.rows.map((row) => row.label.name).filter((name) => matches?.({ name }));
  const [only] = names;
  const isOne = names.length === 1 && only !== undefined;
  return {
    total: report.total.allocated,
    names,
    isOutside,
    clause: isOne ? `${IN_STACKS[by]} ${quoted(only)}` : clause,
  };
}
