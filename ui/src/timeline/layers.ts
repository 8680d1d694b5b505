import type { GroupLine } from "../api/types";
import { label } from "../format";

/** The name of a layer. */
export function groupName(group: GroupLine): string {
  return group.is_other ? `other${/ \(\d+\)/.exec(group.label.name)?.[0] ?? ""}` : label(group.label);
}
