import type { GroupLine, Series } from "../api/types";
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
