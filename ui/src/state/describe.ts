// Describes the selection in words.

import { seconds } from "../format";
import type { Moment } from "./codec";
import { isRecording } from "./live";
import type { GROUPS } from "./state";

/** Names of groupings. */
export const GROUP_NAMES: Record<(typeof GROUPS)[number], string> = {
  function: "function",
  site: "line of source",
  file: "file",
  module: "module",
  crate: "crate",
  domain: "domain",
  size: "block size",
  age: "lifetime",
};

/** Groupings to choose from. */
export function groupOptions<G extends keyof typeof GROUP_NAMES>(groups: readonly G[]): { value: G; text: string }[] {
  return groups.map((value) => ({ value, text: GROUP_NAMES[value] }));
}

/** The end of the run in words; of a recording that still runs, the present. */
export function endText(): string {
  return isRecording() ? "now" : "at the end";
}

/** The title of the views, such as "Live at the peak". The end of a recording that still runs is now. */
export function scopeText(live: Moment): string {
  switch (live) {
    case "all":
      return "Allocated";
    case "peak":
      return "Live at the peak";
    case "end":
      return `Live ${endText()}`;
    default:
      return `Live at ${seconds(live)}`;
  }
}
