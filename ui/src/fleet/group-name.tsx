import type { JSX } from "preact";
import { NameDot } from "../widgets/name-dot";
import { NameText } from "../views/table";
import { shownValue } from "./rows";
import type { Group } from "./types";

const OF_SITES = ["function", "site", "file", "module", "space"];

/** The cell with the values of a group's properties: those of runs first, and then the site. */
export function GroupName({ group }: { group: Group }): JSX.Element {
  const ofRuns = Object.entries(group).filter(([by]) => !OF_SITES.includes(by));
  const site = Object.entries(group).find(([by]) => OF_SITES.includes(by));
  const label = site && labelOf(shownValue(site[1]));
  return (
    <span role="cell" class="name has-place">
      {label && <NameDot label={label} kind={site[0]} />}
      {ofRuns.map(([by, value]) => (
        <span key={by} class={site ? "fleet-run" : "name-text"}>
          {shownValue(value)}
        </span>
      ))}
      {label && <NameText label={label} />}
    </span>
  );
}

/** The function and the place of a site, such as `f (a.ml:3)`. */
function labelOf(text: string): { name: string; place?: string } {
  const match = /^(.*) \(([^()]+)\)$/.exec(text);
  return match ? { name: match[1] as string, place: match[2] as string } : { name: text };
}
