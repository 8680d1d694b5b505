// The call tree, bottom-up or top-down, with shares and bars.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Flame } from "../api/types";
import type { TreeNode } from "../flame/tree";
import { bytes, countShort, percent, printable } from "../format";
import { ACTIONS, act, functionMenu } from "../flame/actions";
import { treeOf } from "../flame/columns";
import { FrameTip } from "../flame/frame-tip";
import { pathNames } from "../flame/layout";
import { matcher } from "../flame/search";
import { transformed } from "../flame/transform";
import { Amount } from "../headline";
import { useKeys } from "../keys";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { groupOptions } from "../state/describe";
import { treeQuestion } from "../state/questions";
import { FRAMES, state, update } from "../state/state";
import { Chip, Empty, Segmented, Select } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { Problem } from "../widgets/problem";
import { SearchBox } from "../widgets/search-box";
import { hideTip, showTip } from "../widgets/tip";
import { VirtualRows } from "../widgets/virtual";
import { leadingTo, opening, visibleRows } from "./tree-rows";

export function TreeView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  const isUp = now.treeDirection === "up";
  const answer = useAnswer<Flame>(treeQuestion(hasServer ? now : { ...now, hide: [] }));
  const { data, error, isStale } = answer;
  const whole = useMemo(() => data && treeOf(data), [data]);
  const tree = useMemo(
    () => (whole && !hasServer && now.hide.length > 0 ? transformed(whole, [], now.hide) : whole),
    [whole, now.hide],
  );
  const names = useMemo(() => (tree ? pathNames(tree.nodes) : []), [tree]);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  // By name: rows move when the trace grows.
  const [selectedName, setSelectedName] = useState<string | null>(null);
  const matches = useMemo(() => matcher(now.search), [now.search]);
  const rows = useMemo(() => {
    if (!tree) return [];
    const found = matches ? leadingTo(tree.nodes, (node) => node.kind !== "other" && matches(node.label), names) : [];
    return visibleRows(tree.nodes, found.length > 0 ? new Set([...open, ...found]) : open, names);
  }, [tree, open, names, matches]);
  const searchBox = useRef<HTMLInputElement>(null);

  // Expand the largest branch at first: a collapsed tree shows little.
  useEffect(() => {
    if (!tree || tree.nodes.length === 0) return;
    setOpen((before) => (names.some((name) => before.has(name)) ? before : new Set(opening(tree.nodes, 0, names))));
  }, [tree]);
  useEffect(() => setSelectedName(null), [answer.of]);
  const selected = Math.max(
    0,
    rows.findIndex((row) => names[row.node] === selectedName),
  );
  const setSelected = (row: number) => setSelectedName(names[rows[row]?.node ?? -1] ?? null);

  const nodeAt = (row: number) => tree?.nodes[rows[row]?.node ?? -1];
  const setRow = (row: number, isOpen: boolean) => {
    const at = rows[row];
    if (!at || !tree) return;
    const next = new Set(open);
    if (isOpen) for (const name of opening(tree.nodes, at.node, names)) next.add(name);
    else next.delete(names[at.node] as string);
    setOpen(next);
  };
  const parentRow = (row: number) => rows.findIndex((one) => one.node === nodeAt(row)?.parent);
  const move = (to: number) => setSelected(Math.max(0, Math.min(rows.length - 1, to)));

  useKeys("Tree", [
    { key: "ArrowDown", does: "down a row", run: () => move(selected + 1) },
    { key: "ArrowUp", does: "up a row", run: () => move(selected - 1) },
    { key: "j", does: "down a row", run: () => move(selected + 1) },
    { key: "k", does: "up a row", run: () => move(selected - 1) },
    {
      key: "ArrowRight",
      does: "expand, or go to the first child",
      run: () => (rows[selected]?.isOpen ? move(selected + 1) : setRow(selected, true)),
    },
    {
      key: "ArrowLeft",
      does: "collapse, or go to the parent",
      run: () => (rows[selected]?.isOpen ? setRow(selected, false) : move(parentRow(selected))),
    },
    { key: "/", does: "search", run: () => searchBox.current?.focus() },
    {
      key: "Escape",
      does: "end the search",
      run: () => {
        searchBox.current?.blur();
        update({ search: "" });
      },
    },
    { key: "*", does: "open everything", run: () => setOpen(new Set(names)) },
    ...ACTIONS.filter((action) => !action.needsEngine || hasServer).map((action) => ({
      key: action.key,
      does: action.text.toLowerCase(),
      run: () => {
        const node = nodeAt(selected);
        if (node && node.kind !== "other") act(action, node.label.name);
      },
    })),
  ]);

  return (
    <div class="view">
      <div class="toolbar">
        <Segmented
          label="Direction"
          value={now.treeDirection}
          options={[
            { value: "up", text: "Bottom-up", help: "From the allocations to their callers" },
            { value: "down", text: "Top-down", help: "From the entry point to the allocations" },
          ]}
          onChange={(treeDirection) => update({ treeDirection })}
        />
        <Select
          label="A row is a"
          value={now.frames}
          options={groupOptions(FRAMES)}
          onChange={(frames) => update({ frames })}
        />
        <button type="button" class="button" onClick={() => setOpen(new Set(names))}>
          Open all
        </button>
        <button type="button" class="button" onClick={() => setOpen(new Set())}>
          Close all
        </button>
        {now.hide.map((name, place) => (
          <Chip
            key={place}
            kind="hidden"
            text={printable(name)}
            onRemove={() => update({ hide: now.hide.filter((_, k) => k !== place) })}
          />
        ))}
        <span class="spring" />
        <span class="muted wide-only">{isUp ? "callers below each row" : "callees below each row"}</span>
        <SearchBox
          box={searchBox}
          placeholder="Search"
          label="Search for functions"
          value={now.search}
          onInput={(search) => update({ search }, "search")}
        />
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : tree && tree.nodes.length === 0 ? (
        <Empty title="Nothing here">No sampled block is in this selection.</Empty>
      ) : (
        <div class={`table-box tree-box ${isUp ? "is-up" : ""} ${isStale ? "stale" : ""}`}>
          {tree && (
            <VirtualRows
              count={rows.length}
              selected={selected}
              role="treegrid"
              label="Call tree"
              head={
                <>
                  <span role="columnheader" class="number">
                    Total
                  </span>
                  <span role="columnheader" class="number">
                    Share
                  </span>
                  {!isUp && (
                    <span role="columnheader" class="number wide-only">
                      Own
                    </span>
                  )}
                  <span role="columnheader" class="number wide-only">
                    Blocks
                  </span>
                  <span role="columnheader">
                    <span class="spoken">Bar</span>
                  </span>
                  <span role="columnheader" class="head-name">
                    {isUp ? "Allocated in, called by" : "Function"}
                  </span>
                </>
              }
              row={(index) => {
                const { node: place, depth, hasChildren, isOpen } = rows[index] as (typeof rows)[number];
                const node = tree.nodes[place] as TreeNode;
                const total = node.total.bytes.value;
                const isNoise = !tree.subject.is_exact && node.total.bytes.error >= total;
                return (
                  <div
                    key={names[place]}
                    class={`row ${index === selected ? "is-selected" : ""}`}
                    role="row"
                    aria-level={depth + 1}
                    aria-expanded={hasChildren ? isOpen : undefined}
                    aria-selected={index === selected}
                    onClick={() => {
                      setSelected(index);
                      if (hasChildren) setRow(index, !isOpen);
                    }}
                    onMouseMove={(event) =>
                      event.clientX > (event.currentTarget as HTMLElement).getBoundingClientRect().left + 40 &&
                      showTip(
                        event.clientX,
                        event.clientY,
                        <FrameTip
                          node={node}
                          total={tree.total}
                          unit="bytes"
                          isExact={tree.subject.is_exact}
                          isBottomUp={isUp}
                        />,
                      )
                    }
                    onMouseLeave={hideTip}
                    onContextMenu={(event) => {
                      event.preventDefault();
                      setSelected(index);
                      openMenu(event.clientX, event.clientY, functionMenu(node, hasServer), node.label.name);
                    }}
                  >
                    <span role="gridcell" class={`number ${isNoise ? "is-noise" : ""}`}>
                      <Amount estimate={node.total.bytes} />
                    </span>
                    <span role="gridcell" class="number muted">
                      {percent(total, tree.total.bytes.value)}
                    </span>
                    {!isUp && (
                      <span role="gridcell" class="number wide-only">
                        {node.own.value > 0 ? bytes(node.own.value) : ""}
                      </span>
                    )}
                    <span role="gridcell" class="number wide-only muted">
                      {countShort(node.total.blocks.value)}
                    </span>
                    <span role="gridcell" class="tree-bar">
                      <i style={{ width: `${(100 * total) / (tree.total.bytes.value || 1)}%` }} />
                    </span>
                    <span
                      role="gridcell"
                      class={`name ${isNoise ? "is-noise" : ""} ${matches?.(node.label) ? "is-match" : ""}`}
                      style={{ paddingLeft: `${Math.min(depth, 40) * 14}px` }}
                    >
                      <span class={`twisty ${isOpen ? "is-open" : ""}`}>{hasChildren ? "›" : ""}</span>
                      {node.kind === "other" ? (
                        <span class="muted">other ({node.others})</span>
                      ) : (
                        <>
                          {printable(node.label.name)}
                          {node.label.place && <span class="place">{printable(node.label.place)}</span>}
                        </>
                      )}
                    </span>
                  </div>
                );
              }}
            />
          )}
        </div>
      )}
    </div>
  );
}
