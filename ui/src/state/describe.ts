// What is looked at, in words.

import { seconds } from "../format";
import type { State } from "./state";

/** What the views show, such as "Live at the peak". */
export function scopeText(state: State): string {
  switch (state.live) {
    case "all":
      return "Allocated";
    case "peak":
      return "Live at the peak";
    case "end":
      return "Live at the end";
    default:
      return `Live at ${seconds(state.live)}`;
  }
}
