// A question is a command of the `heapline` program with its options: what the API is asked, what the report file
// has the answer of, and what "copy as command" writes.

export type Command =
  | "status"
  | "info"
  | "summary"
  | "hotspots"
  | "tree"
  | "series"
  | "stats"
  | "heatmap"
  | "leaks"
  | "diff"
  | "complete"
  | "flame";

export interface Question {
  command: Command;
  /** Options without `--` and their values, in the order in which they matter. */
  options: [name: string, value: string][];
}

type Value = string | number | boolean | readonly string[] | null | undefined;

/** A question of options by name: lists are given several times, flags are `true`, what is empty is left out. */
export function question(command: Command, options: Record<string, Value> = {}): Question {
  const list: [string, string][] = [];
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    if (Array.isArray(value)) for (const one of value) list.push([name, String(one)]);
    else list.push([name, String(value)]);
  }
  return { command, options: list };
}

/**
 * The address of the answer, below `api/v1/`. It is the same for the same question: report files are indexed by it, and
 * so is what is kept of earlier answers.
 */
export function address({ command, options }: Question): string {
  const query = new URLSearchParams(options);
  query.sort();
  const text = query.toString();
  return text === "" ? command : `${command}?${text}`;
}

// What the command line calls differently: a flame graph is a tree, drawn from columns.
const TYPED: Partial<Record<Command, string>> = { flame: "tree" };
// What only concerns how many points or boxes a picture has.
const PICTURE_ONLY = new Set(["max-nodes"]);

/** The line to type that prints the same numbers. `against` is the trace that is compared with, if there is one. */
export function commandLine(
  { command, options }: Question,
  program: string,
  trace: string,
  against: string | null,
): string {
  const comparesTraces = command === "diff" && against !== null && !options.some(([name]) => name === "window");
  const words = [program, TYPED[command] ?? command, ...(comparesTraces ? [shellWord(against)] : []), shellWord(trace)];
  for (const [name, value] of options) {
    if (PICTURE_ONLY.has(name)) continue;
    words.push(value === "true" ? `--${name}` : `--${name} ${shellWord(value)}`);
  }
  return words.join(" ");
}

/** A word as a POSIX shell must be given it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
