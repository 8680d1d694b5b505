// Encodes parts of the state in the URL. Defaults are omitted.

export interface Codec<T> {
  print(value: T): string[];
  parse(texts: string[]): T;
}

export function text(byDefault = ""): Codec<string> {
  return {
    print: (value) => (value === byDefault ? [] : [value]),
    parse: (texts) => texts[0] ?? byDefault,
  };
}

export function choice<const T extends string>(values: readonly T[], byDefault: NoInfer<T>): Codec<T> {
  return {
    print: (value) => (value === byDefault ? [] : [value]),
    parse: (texts) => values.find((value) => value === texts[0]) ?? byDefault,
  };
}

/** A choice of all values of an option, with the same default. */
export function option<const T extends string>(option: { values: readonly T[]; default: NoInfer<T> }): Codec<T> {
  return choice(option.values, option.default);
}

export const flag: Codec<boolean> = {
  print: (value) => (value ? [""] : []),
  parse: (texts) => texts.length > 0,
};

export const list: Codec<readonly string[]> = {
  print: (value) => [...value],
  parse: (texts) => texts,
};

/** A time window, in seconds. */
export interface Span {
  from: number;
  to: number;
}

export const span: Codec<Span | null> = {
  print: (value) => (value ? [`${value.from}..${value.to}`] : []),
  parse: (texts) => {
    const match = /^([\d.e-]+?)\.\.([\d.e-]+)$/.exec(texts[0] ?? "");
    if (!match) return null;
    const [from, to] = [Number(match[1]), Number(match[2])];
    return from >= 0 && to > from && Number.isFinite(to) ? { from, to } : null;
  },
};

/** The part of a window within the run; null if there is none. */
export function clampSpan(window: Span | null, duration: number): Span | null {
  // Report files have windows that end a microsecond after the last event.
  if (!window || window.to <= duration + 2e-6) return window;
  return window.from < duration ? { from: window.from, to: duration } : null;
}

/** The scope: allocated memory, or memory live at a point in time (in seconds, if it has no name). */
export type Moment = "all" | "peak" | "end" | number;

/** A scope that was chosen; null for the default of each view. */
export const moment: Codec<Moment | null> = {
  print: (value) => (value === null ? [] : [String(value)]),
  parse: (texts) => {
    const text = texts[0] ?? "";
    if (text === "all" || text === "peak" || text === "end") return text;
    const time = Number(text);
    return text !== "" && Number.isFinite(time) && time >= 0 ? time : null;
  },
};
