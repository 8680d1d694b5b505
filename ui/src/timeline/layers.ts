import type { GroupLine, Series } from "../api/types";
import { isNameKind, nameColour, type Tone, tones } from "../colours";
import { label } from "../format";
import type { State } from "../state/state";

/** The name of a layer. */
export function groupName(group: GroupLine): string {
  return group.is_other ? `other${/ \(\d+\)/.exec(group.label.name)?.[0] ?? ""}` : label(group.label);
}

const UNITS: Record<string, number> = { µs: 1e-6, ms: 1e-3, s: 1 };

/** The rank of a range such as `4 - 7 words`, `lived 1 ms to 10 ms` or `alive at the end`: its lower end. */
function rangeStart(name: string): number {
  if (name.startsWith("lived less")) return 0;
  const first = /(\d+)(?: (µs|ms|s)\b)?/.exec(name);
  return first ? Number(first[1]) * (UNITS[first[2] ?? "s"] ?? 1) : Number.POSITIVE_INFINITY;
}

/** A series whose layers are in the order of their ranges, if they are ranges: those of sizes and lifetimes. */
export function inOrder(series: Series, split: State["split"]): Series {
  if (split !== "size" && split !== "age") return series;
  const rank = (group: GroupLine) => (group.is_other ? Number.POSITIVE_INFINITY : rangeStart(group.label.name));
  const groups = [...series.groups].sort(
    (a, b) => Number(a.is_other) - Number(b.is_other) || Math.sign(rank(a) - rank(b)) || 0,
  );
  return { ...series, groups };
}

/** Distinguishable hues, in the order of layers that have no names, such as sizes. */
const RANGE_HUES = [42, 248, 155, 325, 85, 285, 195, 12, 122, 222];

/** The colours of layers: those of their names, if they have such. */
export interface LayerColours {
  fills: readonly string[];
  other: string;
}

/** The colours of the layers of a timeline. */
export function layerColours(
  groups: readonly GroupLine[],
  { split, callers }: Pick<State, "split" | "callers">,
  isDark: boolean,
): LayerColours {
  // The callers of a line are functions.
  const kind = split === "branches" || (callers.length > 0 && split === "site") ? "function" : split;
  const ranges = tones(
    isDark,
    RANGE_HUES.map((hue, k): Tone => [0.1, hue, k % 2 === 0 ? 0.05 : 0.09]),
  ).fills;
  return {
    fills: groups.map(({ label }, layer) =>
      isNameKind(kind) ? nameColour(label, kind, isDark) : (ranges[1 + (layer % RANGE_HUES.length)] as string),
    ),
    other: isDark ? "oklch(0.36 0.008 80)" : "oklch(0.88 0.008 80)",
  };
}
