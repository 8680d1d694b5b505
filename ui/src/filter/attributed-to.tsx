// The note on the functions that a list attributes memory to.

import type { JSX } from "preact";
import type { OwnCode } from "../api/types";
import { printable } from "../format";
import { currentSource } from "../state/answers";
import { editOwnCode } from "./own-code";

const SHOWN_LIBRARIES = 8;

/** In the words of crates/text/src/own_code.rs. */
function ownCodeText({ mine, libraries }: OwnCode): string {
  if (mine.length > 0) return printable(`Attributed to own code: ${mine.join(", ")}.`);
  if (libraries.length === 0) return "Attributed to own code: no function is known to be part of a library.";
  const more = libraries.length - SHOWN_LIBRARIES;
  const names = libraries.slice(0, SHOWN_LIBRARIES).join(", ");
  return printable(`Attributed to own code: all but the libraries ${names}${more > 0 ? ` and ${more} more` : ""}.`);
}

/** The note, with a button to change what is own code. Report files have no choice. */
export function AttributedTo({ ownCode }: { ownCode: OwnCode | undefined }): JSX.Element {
  if (!ownCode) return <span class="muted">Functions of libraries are listed too.</span>;
  return (
    <span class="muted">
      {ownCodeText(ownCode)}{" "}
      {currentSource().hasServer && (
        <button type="button" class="link" onClick={editOwnCode}>
          Change
        </button>
      )}
    </span>
  );
}
