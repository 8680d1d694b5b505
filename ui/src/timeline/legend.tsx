import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { GroupLine } from "../api/types";
import { openMenuBelow } from "../widgets/menu";
import { useSize } from "../widgets/size";
import { SplitName } from "../widgets/split-name";
import { groupName, type LayerColours } from "./layers";

/** The names of the layers that there is room for, a menu with all, and what the rest is. */
export function Legend(props: {
  groups: readonly GroupLine[];
  colours: LayerColours;
  hovered: number;
  onHover: (layer: number) => void;
  onPick: (group: GroupLine) => void;
}): JSX.Element {
  const { groups } = props;
  const list = useRef<HTMLUListElement>(null);
  const { width } = useSize(list);
  const [fit, setFit] = useState(groups.length);
  const named = groups.map((group, layer) => ({ group, layer })).filter(({ group }) => !group.is_other);
  const other = groups.findIndex((group) => group.is_other);

  // Those that wrap to a second line are cut off.
  useLayoutEffect(() => {
    const items = [...(list.current?.children ?? [])] as HTMLElement[];
    const first = items[0]?.offsetTop ?? 0;
    setFit(items.filter((item) => item.offsetTop === first).length);
  }, [groups, width]);

  const item = (group: GroupLine, layer: number) => (
    <button
      type="button"
      class={layer === props.hovered ? "is-hovered" : ""}
      // What is cut off can be reached in the menu.
      onMouseEnter={() => props.onHover(layer)}
      onMouseLeave={() => props.onHover(-1)}
      onClick={() => props.onPick(group)}
    >
      <i
        class="dot"
        style={{
          background: group.is_other ? props.colours.other : props.colours.fills[layer],
        }}
      />
      <span class="name-text">
        <SplitName name={groupName(group)} />
      </span>
    </button>
  );
  const hidden = named.length - fit;
  return (
    <>
      <ul class="layers" ref={list} aria-label="Layers">
        {named.map(({ group, layer }, place) => (
          <li key={layer} class={place >= fit ? "is-cut" : ""}>
            {item(group, layer)}
          </li>
        ))}
      </ul>
      {(named.length > 0 || other >= 0) && (
        <div class="layers layers-rest">
          {named.length > 0 && (
            // It keeps its room when it is not needed: names that only fit without it would come and go.
            <button
              type="button"
              class={`layers-more ${hidden > 0 ? "" : "is-unneeded"}`}
              onClick={(event) =>
                openMenuBelow(
                  event,
                  groups.map((group) => ({ text: groupName(group), run: () => props.onPick(group) })),
                )
              }
            >
              +{Math.max(hidden, 1)}
              <span class="spoken"> more layers</span>
            </button>
          )}
          {other >= 0 && item(groups[other] as GroupLine, other)}
        </div>
      )}
    </>
  );
}
