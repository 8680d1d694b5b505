import type { JSX, RefObject } from "preact";
import { state, update } from "../state/state";
import { SearchBox } from "./search-box";

/** The text field that filters the rows of a list by name. */
export function RowFilter({ box }: { box: RefObject<HTMLInputElement | null> }): JSX.Element {
  return (
    <SearchBox
      box={box}
      placeholder="Filter rows"
      label="Filter the rows"
      value={state.value.rows}
      onInput={(rows) => update({ rows }, "rows")}
    />
  );
}
