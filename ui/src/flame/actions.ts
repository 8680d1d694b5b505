// Actions on a function. Each action is a change of the state, so each can be undone.

import type { JSX } from "preact";
import type { TreeNode } from "./tree";
import { patternOf, quoted, withClause } from "../state/patterns";
import { type State, state, update } from "../state/state";
import { copy } from "../widgets/controls";
import type { MenuItem } from "../widgets/menu";

interface Action {
  key: string;
  text: string;
  /** True if it needs a server that answers any request. */
  needsEngine?: boolean;
  /** True if a report file can do it to trees only: its tables are ready-made. */
  needsTree?: boolean;
  /** True if it is for functions and lines, not for modules and crates. */
  needsPlace?: boolean;
  change: (state: State, name: string, place?: string) => Partial<State>;
}

/** The query for memory allocated inside of a function, or of what else the boxes of trees are. */
function insideClause({ view, frames }: State, name: string): string {
  const isTree = view === "flame" || view === "tree";
  const field = isTree && frames !== "function" && frames !== "site" ? `${frames} ` : "";
  return `inside ${field}${quoted(name)}`;
}

export const ACTIONS: readonly Action[] = [
  {
    key: "f",
    text: "Focus: show its callers and callees",
    change: (_, name) => ({ focus: [patternOf(name)], node: "", view: "flame" }),
  },
  {
    key: "F",
    text: "Focus further: add to the call chain",
    needsEngine: true,
    change: (now, name) => ({ focus: [...now.focus, patternOf(name)], node: "", view: "flame" }),
  },
  {
    key: "h",
    text: "Hide: attribute its memory to the caller",
    needsTree: true,
    change: (now, name) => ({ hide: [...now.hide, patternOf(name)], node: "" }),
  },
  {
    key: "o",
    text: "Filter: only memory allocated inside",
    needsEngine: true,
    change: (now, name) => ({ where: withClause(now.where, insideClause(now, name)), node: "" }),
  },
  {
    key: "x",
    text: "Filter: exclude memory allocated inside",
    needsEngine: true,
    change: (now, name) => ({ where: withClause(now.where, `not ${insideClause(now, name)}`), node: "" }),
  },
  {
    key: "-",
    text: "What if: the peak without memory allocated inside",
    needsEngine: true,
    change: (now, name) => {
      const clause = insideClause(now, name);
      return now.without.includes(clause)
        ? { without: now.without.filter((one) => one !== clause) }
        : { without: [...now.without, clause] };
    },
  },
  {
    key: "g",
    text: "Go to its source: lines and their memory",
    needsEngine: true,
    needsPlace: true,
    change: (_, name, place) => ({ view: "source", source: place ?? name }),
  },
  {
    key: "s",
    text: "Search for it",
    change: (_, name) => ({ search: name }),
  },
];

/** What can be done with the nodes of a tree: call trees and heap snapshots differ. */
export interface NodeTools {
  /** Actions with keys, for all nodes that are not merged ones. */
  actions: readonly { key: string; text: string; run: (node: TreeNode, index: number) => void }[];
  menu: (node: TreeNode, index: number) => (MenuItem | "line")[];
  tip: (node: TreeNode, index: number, isBottomUp: boolean) => JSX.Element | null;
}

/** The actions on functions in a tree. */
function treeActions(hasServer: boolean): readonly Action[] {
  const { frames } = state.value;
  const hasPlaces = frames !== "module" && frames !== "crate";
  return ACTIONS.filter((action) => (!action.needsEngine || hasServer) && (!action.needsPlace || hasPlaces));
}

/** The actions on functions in a table. */
export function tableActions(hasServer: boolean): readonly Action[] {
  return ACTIONS.filter((action) => !(action.needsEngine || action.needsTree) || hasServer);
}

/** The tools of functions in a call tree. */
export function functionTools(hasServer: boolean, tip: NodeTools["tip"]): NodeTools {
  return {
    actions: treeActions(hasServer).map((action) => ({
      key: action.key,
      text: action.text,
      run: (node) => act(action, node.label.name, node.label.place),
    })),
    menu: (node) => functionMenu(node, treeActions(hasServer)),
    tip,
  };
}

/** Runs the action of a key on a function. */
export function act(action: Action, name: string, place?: string): void {
  update(action.change(state.value, name, place));
}

/** The menu of a function. */
export function functionMenu(
  node: Pick<TreeNode, "label" | "kind">,
  actions: readonly Action[],
): (MenuItem | "line")[] {
  const { name, place } = node.label;
  const isOther = node.kind === "other";
  return [
    ...actions.map((action) => ({
      text: action.text,
      hint: action.key,
      isDisabled: isOther,
      run: () => act(action, name, place),
    })),
    "line",
    { text: "Copy its name", hint: "c", isDisabled: isOther, run: () => void copy(name, "the name") },
    ...(place ? [{ text: `Copy ${place}`, run: () => void copy(place, "the place") }] : []),
  ];
}
