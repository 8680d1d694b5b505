// A request: a report with its options. It is the URL of the API, the key of answers in report files, and the source of
// "copy as command". The names and defaults of options are generated from their definition.

import { REQUESTS } from "./requests";

type Requests = typeof REQUESTS;
export type Report = keyof Requests;
export type Command = Report | "status";

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

type Options<C extends Command> = C extends Report
  ? { readonly [Name in keyof Requests[C]]?: Value<Requests[C][Name]> | null }
  : Record<string, never>;

export interface Question {
  command: Command;
  /** Options, without `--`, and their values. */
  options: [name: string, value: string][];
}

interface Option {
  kind: "flag" | "list" | "value";
  default?: string;
}

function optionsOf(command: Command): Record<string, Option> {
  return command === "status" ? {} : REQUESTS[command];
}

/** A request from options by name. Empty values and defaults are omitted. */
export function question<const C extends Command>(command: C, options: Options<C> = {} as Options<C>): Question {
  const known = optionsOf(command);
  const list: [string, string][] = [];
  for (const [name, value] of Object.entries(options as Record<string, unknown>)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    if (String(value) === known[name]?.default) continue;
    for (const one of Array.isArray(value) ? value : [value]) list.push([name, String(one)]);
  }
  return { command, options: list };
}

/**
 * The URL of the answer, below `api/v1/`. It is canonical: report files and the cache of answers are indexed by it.
 */
export function address({ command, options }: Question): string {
  const query = new URLSearchParams(options);
  query.sort();
  const text = query.toString();
  return text === "" ? command : `${command}?${text}`;
}

/**
 * The command line that prints the same numbers, as `Request::command_line` of the engine writes it. `against` is the
 * trace that is compared with, if there is one.
 */
export function commandLine({ command, options }: Question, trace: string, against: string | null): string {
  // The columns of a flame graph are for drawing; the equivalent command shows the tree.
  const typed = command === "flame" ? "tree" : command;
  const comparesTraces = command === "diff" && against !== null && !options.some(([name]) => name === "window");
  const words = ["heapline", typed, ...(comparesTraces ? [shellPath(against)] : []), shellPath(trace)];
  for (const [name, { kind }] of Object.entries(optionsOf(typed))) {
    for (const [, value] of options.filter(([option]) => option === name)) {
      if (kind === "flag") words.push(`--${name}`);
      else if (value.startsWith("-")) words.push(`--${name}=${shellWord(value)}`);
      else words.push(`--${name} ${shellWord(value)}`);
    }
  }
  return words.join(" ");
}

/** Quotes a word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w./-][\w./:@+%,-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Quotes the path of a file, which must not look like an option. */
function shellPath(path: string): string {
  return shellWord(path.startsWith("-") && path !== "-" ? `./${path}` : path);
}
