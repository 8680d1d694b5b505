// The flame graph.

import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { Flame } from "../api/types";
import { bytes, estimatedBytes, estimatedCount, percent, printable } from "../format";
import { reserved } from "../colours";
import { useKeys } from "../keys";
import { selectionText, shownSelection } from "../save/requests";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { scopeText } from "../state/describe";
import { isRecording } from "../state/live";
import { flameQuestion, PLAIN_LOOK } from "../state/questions";
import { tells, traceFacts } from "../state/session";
import { canUndo, COLOURS, FRAMES, momentOf, state, undo, update } from "../state/state";
import { Chip, Empty, IconButton, Segmented, Select } from "../widgets/controls";
import { Icon } from "../widgets/icons";
import { openMenuBelow } from "../widgets/menu";
import { Problem } from "../widgets/problem";
import { functionTools } from "./actions";
import { FlameCanvas } from "./canvas";
import { treeOf } from "./columns";
import { flameKeys, foldKey } from "./flame-keys";
import { ColourLegend } from "./legend";
import { useEverywhere } from "../state/everywhere";
import { useFlameSearch } from "./search-field";
import { FrameTip } from "./frame-tip";
import { amountText, picture } from "./picture";
import { transformed } from "./transform";

/** The pattern for functions of OCaml's standard library. */
const STDLIB = "Stdlib.*";

function isTold(colour: (typeof COLOURS)[number]): boolean {
  if (colour === "heap") {
    return tells().promotions;
  }
  // Growth is that of the blocks that were chosen, which snapshots do not follow.
  return colour === "module" || tells().lifetimes;
}

export function FlameView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  // A report file has the whole tree; focus and hiding are then computed here.
  const asked = hasServer
    ? now
    : { ...now, ...PLAIN_LOOK, focus: [], ...(now.focus.length > 0 ? { direction: "down" as const } : {}) };
  const answer = useAnswer<Flame>(flameQuestion(asked));
  const { data, error, isStale } = answer;
  const whole = useMemo(() => data && treeOf(data), [data]);
  const tree = useMemo(
    () =>
      whole && !hasServer && now.focus.length + now.hide.length > 0 ? transformed(whole, now.focus, now.hide) : whole,
    [whole, now.focus, now.hide],
  );
  // A search may find what is folded. Callers of allocations are not common frames.
  const folds = !now.unfolded && now.search === "" && now.direction === "down";
  const drawn = useMemo(
    () =>
      tree &&
      picture(
        tree,
        { unit: now.unit, order: now.order, colour: now.colour, kind: now.frames, shape: now.shape, folds },
        `${scopeText(momentOf(now))}: ${amountText(tree.total, now.unit)}`,
      ),
    [tree, now.unit, now.order, now.colour, now.shape, folds, isRecording(), reserved.value],
  );
  const searchBox = useRef<HTMLInputElement>(null);
  const everywhere = useEverywhere(now, now.frames, now.search);
  const { found, jumps, field } = useFlameSearch(drawn, now.unit, searchBox, "Search for functions", everywhere);

  useKeys("View", [
    ...flameKeys(searchBox, {
      does: "leave the focus",
      run: () => {
        if (now.focus.length > 0) update({ focus: [] });
      },
    }),
    foldKey(),
    {
      key: "i",
      does: "switch between top-down and bottom-up",
      run: () => update({ direction: now.direction === "down" ? "up" : "down", node: "", focus: [] }),
    },
    ...(hasServer
      ? [
          { key: "r", does: "keep or collapse recursion", run: () => update({ recursion: !now.recursion, node: "" }) },
          { key: "l", does: "show or hide source lines", run: () => update({ lines: !now.lines, node: "" }) },
        ]
      : []),
  ]);

  const isAtLeast = tree?.isAtLeast === true;
  return (
    <div class="view flame-view">
      <div class="toolbar">
        <Segmented
          label="Direction"
          value={now.focus.length > 0 ? null : now.direction}
          options={[
            { value: "down", text: "Top-down", help: "From the entry point to the allocations" },
            { value: "up", text: "Bottom-up", help: "From the allocations to their callers" },
          ]}
          onChange={(direction) => update({ direction, node: "", focus: [] })}
        />
        <Segmented
          label="Shape"
          value={now.shape}
          options={[
            { value: "icicle", text: "Icicle" },
            { value: "flame", text: "Flame" },
          ]}
          onChange={(shape) => update({ shape })}
        />
        {hasServer && (
          <Select
            label="Boxes"
            value={now.frames}
            options={FRAMES.map((value) => ({
              value,
              text: { function: "functions", site: "lines", file: "files", module: "modules", crate: "crates" }[value],
            }))}
            onChange={(frames) => update({ frames, node: "" })}
          />
        )}
        <Select
          label="Colour"
          value={now.colour}
          options={COLOURS.filter(isTold).map((value) => ({ value, text: value }))}
          onChange={(colour) => update({ colour })}
        />
        <button
          type="button"
          class="button"
          onClick={(event) =>
            openMenuBelow(event, [
              { text: "Width: bytes", isChecked: now.unit === "bytes", run: () => update({ unit: "bytes" }) },
              { text: "Width: blocks", isChecked: now.unit === "blocks", run: () => update({ unit: "blocks" }) },
              "line",
              { text: "Largest first", isChecked: now.order === "size", run: () => update({ order: "size" }) },
              { text: "In the order of names", isChecked: now.order === "name", run: () => update({ order: "name" }) },
              "line",
              {
                text: "Show lines of source",
                hint: "l",
                isChecked: now.lines,
                isDisabled: !hasServer,
                run: () => update({ lines: !now.lines, node: "" }),
              },
              {
                text: "Hide the standard library",
                isChecked: now.hide.includes(STDLIB),
                run: () =>
                  update({
                    hide: now.hide.includes(STDLIB) ? now.hide.filter((one) => one !== STDLIB) : [...now.hide, STDLIB],
                    node: "",
                  }),
              },
              {
                text: "Fold the frames that all stacks share",
                hint: "m",
                isChecked: !now.unfolded,
                run: () => update({ unfolded: !now.unfolded }),
              },
              {
                text: "Keep recursion",
                hint: "r",
                isChecked: now.recursion,
                isDisabled: !hasServer,
                run: () => update({ recursion: !now.recursion, node: "" }),
              },
            ])
          }
        >
          More <Icon name="down" />
        </button>
        <span class="spring" />
        {field}
        <IconButton icon="back" text="Undo" hint="u" isDisabled={!canUndo()} onClick={undo} />
      </div>
      {now.focus.length > 0 && (
        <div class="transforms">
          {now.focus.map((name, place) => (
            <Chip
              key={`f${place}`}
              kind={place === 0 ? "focus" : "calls"}
              text={printable(name)}
              onRemove={() => update({ focus: now.focus.slice(0, place), node: "" })}
            />
          ))}
          {tree?.focus_total && (
            <span class="muted">
              {isAtLeast && "at least "}
              {bytes(tree.focus_total.bytes.value)} inside,{" "}
              {percent(tree.focus_total.bytes.value, tree.total.bytes.value)} of all
              {isAtLeast && ": more may be in small boxes that a report file merges into “other”"}
            </span>
          )}
        </div>
      )}
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : drawn && drawn.total.samples === 0 ? (
        <Empty title="Nothing here">
          {now.focus.length > 0
            ? "Nothing was allocated inside these functions."
            : "No sampled block is in this selection."}
        </Empty>
      ) : (
        drawn &&
        tree && (
          <div class={`flame-box ${isStale ? "stale" : ""}`}>
            <FlameCanvas
              picture={drawn}
              of={answer.of}
              found={found}
              jumps={jumps}
              isBottomUp={tree.direction === "bottom_up"}
              tools={functionTools(hasServer, (node, _, isBottomUp) => (
                <FrameTip
                  node={node}
                  total={drawn.total}
                  unit={now.unit}
                  isExact={tree.subject.is_exact}
                  isBottomUp={isBottomUp}
                />
              ))}
              describe={`Flame graph of ${scopeText(momentOf(now))}`}
              caption={`${[scopeText(momentOf(now)), ...now.focus.map((name) => `inside ${printable(name)}`)].join(", ")}: ${now.unit === "bytes" ? estimatedBytes(drawn.total.bytes) : `${estimatedCount(drawn.total.blocks)} blocks`}`}
              selection={selectionText(now, shownSelection(now, traceFacts()))}
            />
            <ColourLegend mode={now.colour} />
          </div>
        )
      )}
    </div>
  );
}
