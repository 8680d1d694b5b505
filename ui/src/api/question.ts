// A question is a report with its options: what the API is asked, and what the report file has the answer of. The names
// and defaults of options are generated from their definition.

import { REQUESTS } from "./requests";

type Requests = typeof REQUESTS;
export type Report = keyof Requests;

/** The values of an option that has a fixed set of them. */
export type Choice<R extends Report, Name extends keyof Requests[R]> = Requests[R][Name] extends {
  values: readonly (infer Value)[];
}
  ? Value
  : never;

type Value<Option> = Option extends { kind: "flag" }
  ? boolean
  : Option extends { kind: "list" }
    ? readonly string[]
    : Option extends { values: readonly (infer Choice)[] }
      ? Choice
      : string | number;

type Options<R extends Report> = { readonly [Name in keyof Requests[R]]?: Value<Requests[R][Name]> | null };

/** A report about a dataset. */
export type FleetReport = "regressions" | "diff" | "top" | "trend" | "runs";

export interface Question {
  report: Report | FleetReport;
  /** Options without `--` and their values. */
  options: [name: string, value: string][];
}

/** A question of options by name. What is empty or has its default value is left out. */
export function question<const R extends Report>(report: R, options: Options<R> = {}): Question {
  const known: Record<string, { kind: string; default?: string }> = REQUESTS[report];
  const list: [string, string][] = [];
  for (const [name, value] of Object.entries(options as Record<string, unknown>)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    if (String(value) === known[name]?.default) continue;
    for (const one of Array.isArray(value) ? value : [value]) list.push([name, String(one)]);
  }
  return { report, options: list };
}

/**
 * The URL of the answer, below `api/v1/`. It is canonical: report files and the cache of answers are indexed by it.
 */
export function address({ report, options }: Question): string {
  const query = new URLSearchParams(options);
  query.sort();
  const text = query.toString();
  return text === "" ? report : `${report}?${text}`;
}
