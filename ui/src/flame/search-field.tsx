import type { JSX, RefObject } from "preact";
import { useMemo, useState } from "preact/hooks";
import { percent } from "../format";
import { state, update } from "../state/state";
import { SearchBox } from "../widgets/search-box";
import type { Unit } from "./layout";
import { type Picture, search } from "./picture";
import type { Found } from "./search";

/** The search in a flame graph: the matches, how often the next one was asked for, and the field with their share. */
export function useFlameSearch(
  drawn: Picture | null,
  unit: Unit,
  box: RefObject<HTMLInputElement | null>,
  label: string,
): { found: (Found | null)[]; jumps: number; field: JSX.Element } {
  const text = state.value.search;
  const { found, shown } = useMemo(() => (drawn ? search(drawn, text) : { found: [], shown: null }), [drawn, text]);
  const [asks, setAsks] = useState({ search: "", count: 0 });
  const jumps = asks.search === text ? asks.count : 0;
  const field = (
    <>
      {shown && drawn && (
        <span class="found" role="status">
          {shown.nodes === 0
            ? "nothing found"
            : `${percent(shown[unit], drawn.total[unit].value)} in ${shown.nodes} box${shown.nodes === 1 ? "" : "es"} (Enter: next)`}
        </span>
      )}
      <SearchBox
        box={box}
        placeholder="Search"
        label={label}
        value={text}
        onInput={(search) => update({ search }, "search")}
        onEnter={() => setAsks({ search: text, count: jumps + 1 })}
      />
    </>
  );
  return { found, jumps, field };
}
