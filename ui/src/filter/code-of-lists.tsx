// The choice of the functions that lists attribute memory to.

import type { JSX } from "preact";
import type { OwnCode } from "../api/types";
import { printable } from "../format";
import { currentSource } from "../state/answers";
import { update } from "../state/state";
import { Segmented } from "../widgets/controls";

const SHOWN_LIBRARIES = 8;

/** In the words of crates/text/src/own_code.rs. */
function ownCodeText({ mine, libraries }: OwnCode): string {
  if (mine.length > 0) return printable(`Attributed to own code: ${mine.join(", ")}.`);
  if (libraries.length === 0) return "Attributed to own code: no function is known to be part of a library.";
  const more = libraries.length - SHOWN_LIBRARIES;
  const names = libraries.slice(0, SHOWN_LIBRARIES).join(", ");
  return printable(`Attributed to own code: all but the libraries ${names}${more > 0 ? ` and ${more} more` : ""}.`);
}

/** The attribution of a list, and the choice of another. Report files have no choice. */
export function CodeOfLists({ ownCode }: { ownCode: OwnCode | undefined }): JSX.Element {
  return (
    <>
      {currentSource().hasServer && (
        <Segmented
          label="Lists of"
          value={ownCode ? "own" : "all"}
          options={[
            {
              value: "own",
              text: "Own code",
              help: "Attribute the memory of libraries to the function that calls them",
            },
            { value: "all", text: "All functions", help: "List the functions of libraries too" },
          ]}
          // Own code in all views includes the lists.
          onChange={(lists) => update(lists === "own" ? { lists } : { lists, ownCode: false, node: "" })}
        />
      )}
      <span class="muted">{ownCode ? ownCodeText(ownCode) : "Functions of libraries are listed too."}</span>
    </>
  );
}
