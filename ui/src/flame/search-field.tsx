import type { JSX, RefObject } from "preact";
import { useMemo, useState } from "preact/hooks";
import { percent } from "../format";
import type { Everywhere } from "../state/everywhere";
import { state, update } from "../state/state";
import { FoundElsewhere } from "../widgets/found-elsewhere";
import { SearchBox } from "../widgets/search-box";
import type { Unit } from "./layout";
import { type Picture, search } from "./picture";
import type { Found } from "./search";

/**
 * The search in a flame graph: the matches, how often the next one was asked for, and the field with their share. Boxes are
 * missing in a flame graph: `everywhere` has the matches in the whole trace, if the engine was asked.
 */
export function useFlameSearch(
  drawn: Picture | null,
  unit: Unit,
  box: RefObject<HTMLInputElement | null>,
  label: string,
  everywhere: Everywhere | null = null,
): { found: (Found | null)[]; jumps: number; field: JSX.Element } {
  const text = state.value.search;
  const { found, shown } = useMemo(() => (drawn ? search(drawn, text) : { found: [], shown: null }), [drawn, text]);
  const [asks, setAsks] = useState({ search: "", count: 0 });
  const jumps = asks.search === text ? asks.count : 0;
  const { focus, hide, ownCode } = state.value;
  // With a focus or hidden functions, stacks with a match may not be part of the graph.
  const isWhole = focus.length === 0 && hide.length === 0 && !ownCode;
  const all = everywhere && isWhole && !everywhere.isOutside ? everywhere.total[unit].value : null;
  const missing = isWhole ? "too small to draw" : "not shown here or too small to draw";
  const field = (
    <>
      {shown && drawn && (
        <span class="found" role="status">
          {shown.nodes > 0 ? (
            `${percent(all ?? shown[unit], drawn.total[unit].value)} in ${shown.nodes} box${shown.nodes === 1 ? "" : "es"} (Enter: next)`
          ) : everywhere ? (
            <FoundElsewhere found={everywhere} missing={missing} />
          ) : (
            "no box with this name"
          )}
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
