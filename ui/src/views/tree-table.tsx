// A tree as a table: shares, bars, rows to expand, search, keys.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { NodeTools } from "../flame/actions";
import { pathNames } from "../flame/layout";
import { matcher } from "../flame/search";
import type { TreeNode } from "../flame/tree";
import { bytes, countShort, percent, printable } from "../format";
import { Amount } from "../headline";
import { useKeys } from "../keys";
import { useEverywhere } from "../state/everywhere";
import { type State, state, update } from "../state/state";
import { Empty } from "../widgets/controls";
import { FoundElsewhere } from "../widgets/found-elsewhere";
import { openMenu } from "../widgets/menu";
import { NameDot } from "../widgets/name-dot";
import { SearchBox } from "../widgets/search-box";
import { SplitName } from "../widgets/split-name";
import { hideTip, showTip } from "../widgets/tip";
import { VirtualRows } from "../widgets/virtual";
import { ALL_OPEN, leadingTo, NONE_OPEN, opening, openRows, openText, visibleRows } from "./tree-rows";

export function TreeTable(props: {
  /** Null until they are there. */
  nodes: readonly TreeNode[] | null;
  /** The question that the nodes are the answer to. */
  of: string | null;
  /** Bytes. */
  total: number;
  isStale: boolean;
  isExact: boolean;
  /** True if children are callers, so that nodes have nothing of their own. */
  isUp: boolean;
  label: string;
  /** The kind of the nodes, if their names have colours. */
  kind?: string;
  /** The kind of the nodes, if the engine knows more of them than the tree. */
  searched?: State["by"];
  /** The title of the column of names. */
  title: string;
  /** Text in place of a tree without nodes. */
  empty: string;
  /** Shown in place of the tree. */
  problem: JSX.Element | null;
  tools: NodeTools;
  note: string;
  choices?: ComponentChildren;
}): JSX.Element {
  const now = state.value;
  const { nodes, tools, total, isUp } = props;
  const names = useMemo(() => (nodes ? pathNames(nodes) : []), [nodes]);
  const open = useMemo(() => openRows(now.open, nodes ?? [], names), [now.open, nodes, names]);
  const setOpen = (text: string) => update({ open: text }, "open rows");
  // By name: rows move when the trace grows.
  const [selectedName, setSelectedName] = useState<string | null>(null);
  const matches = useMemo(() => matcher(now.search), [now.search]);
  const isMatch = (node: TreeNode) => node.kind !== "other" && matches?.(node.label) === true;
  const rows = useMemo(() => {
    if (!nodes) return [];
    const found = matches ? leadingTo(nodes, isMatch, names) : [];
    return visibleRows(nodes, found.length > 0 ? new Set([...open, ...found]) : open, names);
  }, [nodes, open, names, matches]);
  const isMissing = useMemo(() => matches !== null && nodes !== null && !nodes.some(isMatch), [nodes, matches]);
  const everywhere = useEverywhere(now, props.searched ?? "size", isMissing ? now.search : "");
  const searchBox = useRef<HTMLInputElement>(null);

  useEffect(() => setSelectedName(null), [props.of]);
  const selected = Math.max(
    0,
    rows.findIndex((row) => names[row.node] === selectedName),
  );
  const setSelected = (row: number) => setSelectedName(names[rows[row]?.node ?? -1] ?? null);

  const nodeAt = (row: number) => nodes?.[rows[row]?.node ?? -1];
  const setRow = (row: number, isOpen: boolean) => {
    const at = rows[row];
    if (!at || !nodes) return;
    const next = new Set(open);
    if (isOpen) for (const name of opening(nodes, at.node, names)) next.add(name);
    else next.delete(names[at.node] as string);
    setOpen(openText(next));
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
    { key: "*", does: "open everything", run: () => setOpen(ALL_OPEN) },
    ...tools.actions.map((action) => ({
      key: action.key,
      does: action.text.toLowerCase(),
      run: () => {
        const node = nodeAt(selected);
        if (node && node.kind !== "other") action.run(node, rows[selected]?.node ?? 0);
      },
    })),
  ]);

  const row = (index: number) => {
    const { node: place, depth, hasChildren, isOpen } = rows[index] as (typeof rows)[number];
    const node = nodes?.[place] as TreeNode;
    const size = node.total.bytes.value;
    const isNoise = !props.isExact && node.total.bytes.error >= size;
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
          showTip(event.clientX, event.clientY, tools.tip(node, place, isUp))
        }
        onMouseLeave={hideTip}
        onContextMenu={(event) => {
          event.preventDefault();
          setSelected(index);
          openMenu(event.clientX, event.clientY, tools.menu(node, place), node.label.name);
        }}
      >
        <span role="gridcell" class={`number ${isNoise ? "is-noise" : ""}`}>
          <Amount estimate={node.total.bytes} />
        </span>
        <span role="gridcell" class="number muted">
          {percent(size, total)}
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
          <i style={{ width: `${(100 * size) / (total || 1)}%` }} />
        </span>
        <span
          role="gridcell"
          class={`name is-split ${isNoise ? "is-noise" : ""} ${matches?.(node.label) ? "is-match" : ""}`}
          style={{ paddingLeft: `${Math.min(depth, 40) * 14}px` }}
        >
          <span class={`twisty ${isOpen ? "is-open" : ""}`}>{hasChildren ? "›" : ""}</span>
          {node.kind === "other" ? (
            <span class="muted">other ({node.others})</span>
          ) : (
            <>
              <NameDot label={node.label} kind={props.kind ?? ""} />
              <SplitName name={printable(node.label.name)} />
              {node.label.place && <span class="place">{printable(node.label.place)}</span>}
            </>
          )}
        </span>
      </div>
    );
  };

  return (
    <div class="view">
      <div class="toolbar">
        {props.choices}
        <button type="button" class="button" onClick={() => setOpen(ALL_OPEN)}>
          Open all
        </button>
        <button type="button" class="button" onClick={() => setOpen(NONE_OPEN)}>
          Close all
        </button>
        <span class="spring" />
        <span class="muted wide-only">{props.note}</span>
        {isMissing && (
          <span class="found" role="status">
            {everywhere ? <FoundElsewhere found={everywhere} missing="not in this tree" /> : "no row with this name"}
          </span>
        )}
        <SearchBox
          box={searchBox}
          placeholder="Search"
          label="Search for names"
          value={now.search}
          onInput={(search) => update({ search }, "search")}
        />
      </div>
      {props.problem ??
        (nodes && nodes.length === 0 ? (
          <Empty title="Nothing here">{props.empty}</Empty>
        ) : (
          <div class={`table-box tree-box ${isUp ? "is-up" : ""} ${props.isStale ? "stale" : ""}`}>
            {nodes && (
              <VirtualRows
                count={rows.length}
                selected={selected}
                role="treegrid"
                label={props.label}
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
                      {props.title}
                    </span>
                  </>
                }
                row={row}
              />
            )}
          </div>
        ))}
    </div>
  );
}
