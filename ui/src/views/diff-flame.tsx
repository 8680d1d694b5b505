// A comparison as a flame graph: the width of a box is one side, its colour the change.

import type { JSX, RefObject } from "preact";
import { useMemo } from "preact/hooks";
import type { NamedDiffTree } from "../api/types";
import { functionTools } from "../flame/actions";
import { FlameCanvas } from "../flame/canvas";
import { ChangeTip } from "../flame/change-tip";
import { changedTree, missing } from "../flame/diff-tree";
import { flameKeys, foldKey } from "../flame/flame-keys";
import { ColourLegend } from "../flame/legend";
import { useFlameSearch } from "../flame/search-field";
import { picture } from "../flame/picture";
import { bytes, count, estimatedChange, printable } from "../format";
import { useKeys } from "../keys";
import { selectionText, shownSelection } from "../save/requests";
import { traceFacts } from "../state/session";
import { state, update } from "../state/state";
import { Empty, Segmented } from "../widgets/controls";
import { Icon } from "../widgets/icons";
import { openMenuBelow } from "../widgets/menu";
import { tipOn } from "../widgets/tip";
import { shortNames } from "./diff-rows";

/** Functions in the list of those that are on one side only. */
const LISTED = 24;

export function DiffFlame(props: {
  data: NamedDiffTree;
  /** The question that this is the answer to. */
  of: string | null;
  hasServer: boolean;
  /** The text field of the search. */
  box: RefObject<HTMLInputElement | null>;
}): JSX.Element {
  const now = state.value;
  const { data, box } = props;
  const side = now.diffWidth;
  const names = shortNames(data.before_name, data.after_name);
  const tree = useMemo(() => changedTree(data, side), [data, side]);
  const drawn = useMemo(
    () =>
      picture(
        tree,
        {
          unit: "bytes",
          order: now.order,
          colour: "change",
          kind: now.diffBy,
          shape: now.shape,
          folds: !now.unfolded && now.search === "",
        },
        `${side === "after" ? "After" : "Before"}: ${bytes(tree.total.bytes.value)}, change ${estimatedChange(data.total.bytes)}`,
      ),
    [tree, now.order, now.shape, now.unfolded, now.search],
  );
  const { found, jumps, field } = useFlameSearch(drawn, "bytes", box, "Search for functions");
  const absent = useMemo(() => missing(tree.nodes, side), [tree, side]);

  useKeys("Compare", [
    ...flameKeys(box),
    foldKey(),
    {
      key: "v",
      does: "width: after or before",
      run: () => update({ diffWidth: side === "after" ? "before" : "after" }),
    },
  ]);

  /** A menu of the functions that this side does not have; each shows its place on the other side. */
  const listAbsent = (event: MouseEvent) => {
    const items = absent.slice(0, LISTED).map((node) => {
      const { label, change } = tree.nodes[node] as (typeof tree.nodes)[number];
      return {
        text: printable(label.name),
        hint: `${estimatedChange(change.change)}${change.isReal ? "" : " (chance)"}`,
        run: () =>
          update({
            diffWidth: side === "after" ? "before" : "after",
            node: drawn.parts[0]?.names[node] ?? "",
            range: null,
          }),
      };
    });
    const rest = absent.length - items.length;
    const more = { text: `${count(rest)} more, each smaller`, isDisabled: true, run: () => {} };
    openMenuBelow(event, rest > 0 ? [...items, "line", more] : items);
  };

  return (
    <>
      <div class="toolbar">
        <Segmented
          label="Width"
          value={side}
          options={[
            { value: "after", text: "Width: after" },
            { value: "before", text: "Before", help: "Shows what is not there after" },
          ]}
          onChange={(diffWidth) => update({ diffWidth })}
        />
        {absent.length > 0 && (
          <button
            type="button"
            class="button"
            onClick={listAbsent}
            {...tipOn(
              side === "after"
                ? "Functions without samples after: they have no width here"
                : "Functions without samples before: they have no width here",
            )}
          >
            {count(absent.length)} {side === "after" ? "vanished" : "new"} <Icon name="down" />
          </button>
        )}
        <span class="spring" />
        {field}
      </div>
      {drawn.total.samples === 0 ? (
        <Empty title="Nothing here">No sampled block is on this side.</Empty>
      ) : (
        <div class="flame-box">
          <FlameCanvas
            picture={drawn}
            of={props.of}
            found={found}
            jumps={jumps}
            isBottomUp={false}
            tools={functionTools(props.hasServer, (node) => (
              <ChangeTip node={node} />
            ))}
            describe={`Changes as a flame graph, width ${side}`}
            caption={`From ${names.before} to ${names.after}: ${estimatedChange(data.total.bytes)}. Widths are ${side === "after" ? names.after : names.before}`}
            selection={selectionText(now, shownSelection(now, traceFacts()))}
          />
          <ColourLegend mode="change" />
        </div>
      )}
    </>
  );
}
