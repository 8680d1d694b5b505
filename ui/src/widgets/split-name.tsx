import type { JSX } from "preact";
import { innermost } from "../format";

/** A name in two parts: where there is too little room, outer modules are cut off, not the function. */
export function SplitName({ name }: { name: string }): JSX.Element {
  const at = name.length - innermost(name).length;
  return (
    <>
      {at > 0 && <span class="name-outer">{name.slice(0, at)}</span>}
      <span class="name-inner">{name.slice(at)}</span>
    </>
  );
}
