// Completion of queries. The grammar is in docs/query.md; names come from the trace.

import type { Capabilities } from "../api/types";

export interface Suggestion {
  text: string;
  detail: string;
}

export type NameKind = "function" | "file" | "module" | "crate";

export interface Suggestions {
  /** The part of the text that a suggestion replaces. */
  from: number;
  to: number;
  words: Suggestion[];
  /** The kind of names of the trace that also fit here, and what they must contain. */
  names: { kind: NameKind; part: string } | null;
}

interface Token {
  text: string;
  start: number;
  end: number;
}

const FIELDS: Suggestion[] = [
  { text: "live at", detail: "alive at a moment" },
  { text: "live in", detail: "live at some time in a window" },
  { text: "allocated in", detail: "allocated in a window" },
  { text: "collected", detail: "collected at all, or in a window" },
  { text: "promoted", detail: "moved to the major heap" },
  { text: "inside", detail: "a function anywhere in the stack" },
  { text: "inside module", detail: "a module anywhere in the stack" },
  { text: "inside file", detail: "a file anywhere in the stack" },
  { text: "inside crate", detail: "a crate anywhere in the stack" },
  { text: "size", detail: "without the header: 64KiB, 16w" },
  { text: "lifetime", detail: "in time, or in bytes allocated meanwhile" },
  { text: "heap", detail: "minor, major, external or native" },
  { text: "function", detail: "that allocates" },
  { text: "site", detail: "the function that allocates" },
  { text: "module", detail: "of the function that allocates" },
  { text: "crate", detail: "of the function that allocates" },
  { text: "file", detail: "of the allocation" },
  { text: "line", detail: "of the allocation" },
  { text: "domain", detail: "that allocated" },
  { text: "samples", detail: "number of samples in the block" },
  { text: "not", detail: "the opposite" },
];

/** The property of a source that a field needs. */
const NEEDS: Record<string, keyof Capabilities> = {
  "live in": "lifetimes",
  collected: "lifetimes",
  lifetime: "lifetimes",
  promoted: "promotions",
  heap: "promotions",
  size: "sizes",
  samples: "sizes",
  domain: "lanes",
};

function isTold(field: string, tells: Capabilities): boolean {
  const need = NEEDS[field];
  return need === undefined || tells[need];
}

const TIMES: Suggestion[] = [
  { text: "peak", detail: "when the program used most memory" },
  { text: "end", detail: "of the trace" },
  { text: "start", detail: "of the trace" },
  { text: "50%", detail: "of the run" },
];
const WINDOWS: Suggestion[] = [
  { text: "..50%", detail: "the first half" },
  { text: "50%..", detail: "the second half" },
  { text: "90%..", detail: "the last tenth" },
  { text: "start..peak", detail: "until the peak" },
  { text: "peak..end", detail: "after the peak" },
];
const JOINTS: Suggestion[] = [
  { text: "and", detail: "both" },
  { text: "or", detail: "one of them" },
];
const COMPARISONS: Suggestion[] = [
  { text: ">=", detail: "at least" },
  { text: "<=", detail: "at most" },
  { text: ">", detail: "more than" },
  { text: "<", detail: "less than" },
  { text: "=", detail: "exactly" },
  { text: "in", detail: "between two values: 1..2" },
];
const EQUALITIES: Suggestion[] = [
  { text: "=", detail: "is" },
  { text: "!=", detail: "is not" },
];
const VALUES: Record<string, Suggestion[]> = {
  size: [
    { text: "64KiB", detail: "bytes, in powers of 1024" },
    { text: "1KiB", detail: "bytes, in powers of 1024" },
    { text: "16w", detail: "words" },
  ],
  lifetime: [
    { text: "1s", detail: "time" },
    { text: "10ms", detail: "time" },
    { text: "1MiB", detail: "allocated meanwhile" },
  ],
  heap: [
    { text: "major", detail: "promoted blocks count from then on" },
    { text: "minor", detail: "until it is promoted or dies" },
    { text: "external", detail: "outside of OCaml's heaps" },
    { text: "native", detail: "of a Rust program" },
  ],
  domain: [{ text: "0", detail: "the number of a domain" }],
  samples: [{ text: "2", detail: "samples" }],
  line: [{ text: "1", detail: "of the source" }],
};

const OPERATORS = new Set(["=", "!=", "<", "<=", ">", ">="]);
const TEXT_FIELDS: Record<string, NameKind> = {
  site: "function",
  function: "function",
  file: "file",
  module: "module",
  crate: "crate",
};

function tokens(text: string): Token[] {
  return [...text.matchAll(/"(?:\\.|[^"\\])*"?|\/[^/]*\/?i?|[()]|[<>=!]+|[^\s()"<>=!]+/g)].map((match) => ({
    text: match[0],
    start: match.index,
    end: match.index + match[0].length,
  }));
}

/** Suggests what fits at a place of a query, and can be asked of a source that tells this. */
export function suggest(text: string, at: number, tells: Capabilities): Suggestions {
  const before = tokens(text.slice(0, at));
  const last = before.at(-1);
  // The token at the cursor is still being typed, unless it is a closed quote.
  const isTyped = last !== undefined && last.end === at && !/^(\(|\)|".*"|\/.+\/i?|[<>=!]+)$/.test(last.text);
  const done = isTyped ? before.slice(0, -1) : before;
  const typed = isTyped ? (last as Token).text : "";
  const expected = afterTokens(done.map((token) => token.text.toLowerCase()));
  const part = typed.replace(/^["/]/, "");
  const words = expected.words.filter(
    (word) => word.text.toLowerCase().startsWith(typed.toLowerCase()) && isTold(word.text, tells),
  );
  const from = isTyped ? (last as Token).start : at;
  const rest = isTyped ? (/^[^\s()"]*"?/.exec(text.slice(at))?.[0].length ?? 0) : 0;
  return { from, to: at + rest, words, names: expected.names ? { kind: expected.names, part } : null };
}

interface Expected {
  words: Suggestion[];
  names: NameKind | null;
}

/** The possible continuations of these words. */
function afterTokens(words: readonly string[]): Expected {
  const only = (list: Suggestion[]): Expected => ({ words: list, names: null });
  const name = (kind: NameKind, list: Suggestion[] = []): Expected => ({ words: list, names: kind });
  const [last, second, third] = [words.at(-1), words.at(-2), words.at(-3)];
  if (last === undefined || last === "(" || last === "and" || last === "or" || last === "not") return only(FIELDS);
  if (last === "live" || last === "alive") {
    return only([
      { text: "at", detail: "a moment" },
      { text: "in", detail: "a window" },
    ]);
  }
  if (last === "at") return only(TIMES);
  if (last === "in") return only(second === "size" || second === "lifetime" ? rangesOf(second) : WINDOWS);
  if (last === "inside") {
    return name("function", [
      { text: "module", detail: "a module anywhere in the stack" },
      { text: "file", detail: "a file anywhere in the stack" },
      { text: "crate", detail: "a crate anywhere in the stack" },
    ]);
  }
  if (second === "inside" && (last === "module" || last === "file" || last === "crate" || last === "function"))
    return name(last);
  if (OPERATORS.has(last)) {
    if (second && TEXT_FIELDS[second]) return name(TEXT_FIELDS[second]);
    return only(VALUES[second ?? ""] ?? TIMES);
  }
  const isValue =
    OPERATORS.has(second ?? "") || second === "in" || second === "at" || second === "inside" || third === "inside";
  if (!isValue) {
    if (last === "size" || last === "lifetime" || last === "domain" || last === "samples" || last === "line")
      return only(COMPARISONS);
    if (last === "heap") return only([...EQUALITIES, ...(VALUES.heap as Suggestion[])]);
    if (TEXT_FIELDS[last]) return name(TEXT_FIELDS[last], EQUALITIES);
    if (last === "allocated") return only([{ text: "in", detail: "a window" }, ...COMPARISONS.slice(0, 4)]);
    if (last === "collected" || last === "promoted") return only([{ text: "in", detail: "a window" }, ...JOINTS]);
  }
  return only(JOINTS);
}

function rangesOf(field: string): Suggestion[] {
  return field === "size"
    ? [
        { text: "2w..16w", detail: "words" },
        { text: "1KiB..64KiB", detail: "bytes" },
      ]
    : [
        { text: "1ms..10ms", detail: "time" },
        { text: "1s..", detail: "from a second on" },
      ];
}
