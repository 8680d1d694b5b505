// The colour of a name: the same in the timeline, the flame graph and the lists. Names of a module have its hue in different
// shades. Hues and shades are those of hashes, except that those of the largest functions of the trace can be told apart.

import { signal } from "@preact/signals";
import type { Label } from "./api/types";

/** A colour: chroma, hue, and how far its lightness is from that of its palette, towards the text. */
export type Tone = readonly [chroma: number, hue: number, shift: number];

/** Number 0 is for what has no colour: "other" and unknown. */
export const PLAIN = 0;

/** So many that few modules of a program share one. */
const HUES = Array.from({ length: 30 }, (_, k) => 12 * k);
const SHADES: readonly (readonly [chroma: number, shift: number])[] = [
  [0.07, -0.06],
  [0.085, 0.02],
  [0.1, 0.1],
  [0.115, 0.18],
];

/** The colours of names, from number 1 on. */
export const NAME_TONES: readonly Tone[] = HUES.flatMap((hue) =>
  SHADES.map(([chroma, shift]): Tone => [chroma, hue, shift]),
);

/** Fills by number, and the same for what does not match a search. */
export interface Palette {
  fills: readonly string[];
  faded: readonly string[];
  text: string;
  fadedText: string;
}

export function tones(isDark: boolean, colours: readonly Tone[]): Palette {
  const lightness = isDark ? 0.44 : 0.84;
  const fill = ([chroma, hue, shift]: Tone, fade: number) => {
    const base = lightness + (isDark ? shift : -shift);
    const ground = isDark ? 0.26 : 0.955;
    return `oklch(${(base + (ground - base) * fade).toFixed(3)} ${(chroma * (1 - fade)).toFixed(3)} ${hue})`;
  };
  const all: readonly Tone[] = [[0.008, 80, isDark ? -0.12 : -0.06], ...colours];
  return {
    fills: all.map((tone) => fill(tone, 0)),
    faded: all.map((tone) => fill(tone, 0.72)),
    text: isDark ? "#f3efe9" : "#221f1a",
    fadedText: isDark ? "#aaa49b" : "#5f584f",
  };
}

/** In the dark theme, fills are darker: shades must differ, and the text on each must be read. */
const DARK_TONES = NAME_TONES.map(([chroma, hue, shift]): Tone => [chroma, hue, 0.8 * shift - 0.076]);

const PALETTES = { light: tones(false, NAME_TONES), dark: tones(true, DARK_TONES) };

export function namePalette(isDark: boolean): Palette {
  return isDark ? PALETTES.dark : PALETTES.light;
}

/** The kinds of names that have colours. */
const NAMED = ["function", "site", "module", "file", "crate"] as const;
export type NameKind = (typeof NAMED)[number];

export function isNameKind(kind: string): kind is NameKind {
  return (NAMED as readonly string[]).includes(kind);
}

/**
 * The module of a function, as the engine has it: all up to the first part that is not a module, or what comes before
 * the last `::`.
 */
export function moduleOf(name: string): string {
  const parts = name.split(".");
  const end = parts.findIndex((part) => !/^([A-Z]|exe$)/.test(part));
  if (end !== 0) return (end < 0 ? parts : parts.slice(0, end)).join(".");
  const path = name.split("<")[0] as string;
  const colons = path.lastIndexOf("::");
  return colons < 0 ? "(no module)" : path.slice(0, colons);
}

/** The hues of modules and the shades of functions that do not have those of their hashes. */
interface Reserved {
  hues: ReadonlyMap<string, number>;
  shades: ReadonlyMap<string, number>;
}

export const reserved = signal<Reserved>({ hues: new Map(), shades: new Map() });

/** Gives functions, the largest first, colours that can be told apart. Those that have such colours keep them. */
export function reserveColours(functions: readonly Label[]): void {
  const hues = new Map(reserved.value.hues);
  const shades = new Map(reserved.value.shades);
  for (const label of functions) {
    const group = groupOf(label, "function");
    if (!hues.has(group)) hues.set(group, freest(hash(group), HUES.length, [...hues.values()]));
    const siblings = functions.filter((one) => groupOf(one, "function") === group && shades.has(one.name));
    const taken = siblings.map(({ name }) => shades.get(name) as number);
    if (!shades.has(label.name)) shades.set(label.name, freest(hash(label.name), SHADES.length, taken));
  }
  reserved.value = { hues, shades };
  known.clear();
}

/** The place on a circle that is far enough from those taken, as near to the wanted one as possible. */
function freest(wanted: number, places: number, taken: readonly number[]): number {
  const distance = (a: number, b: number) => Math.min(Math.abs(a - b), places - Math.abs(a - b));
  const nearest = Array.from({ length: places }, (_, k) => (wanted + k) % places).sort(
    (a, b) => distance(a, wanted % places) - distance(b, wanted % places),
  );
  for (let apart = Math.max(1, Math.floor(places / 10)); apart > 0; apart--) {
    const free = nearest.find((place) => taken.every((other) => distance(place, other) >= apart));
    if (free !== undefined) return free;
  }
  return wanted % places;
}

const known = new Map<string, number>();

/** The part of a name that has a hue. */
function groupOf(label: Label, kind: NameKind): string {
  return kind === "function" || kind === "site" ? (label.module ?? moduleOf(label.name)) : label.name;
}

/** The number of a name's colour. */
export function nameNumber(label: Label, kind: NameKind): number {
  const { name } = label;
  const group = groupOf(label, kind);
  const key = `${group}\0${name}`;
  const { hues, shades } = reserved.value;
  let found = known.get(key);
  if (found === undefined) {
    const hue = hues.get(group) ?? hash(group) % HUES.length;
    found = 1 + hue * SHADES.length + (shades.get(name) ?? hash(name) % SHADES.length);
    // A hostile trace has any number of names.
    if (known.size > 100_000) known.clear();
    known.set(key, found);
  }
  return found;
}

export function nameColour(label: Label, kind: NameKind, isDark: boolean): string {
  return namePalette(isDark).fills[nameNumber(label, kind)] as string;
}

function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  // The last multiplication only mixes the high bits, but colours use the low ones.
  h ^= h >>> 15;
  return Math.imul(h, 0x2c1b3c6d) >>> 0;
}
