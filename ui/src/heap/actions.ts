// Actions on a definition, a value or a site of a heap snapshot. Each changes the state, so each can be undone.

import type { HeapKind } from "../api/types";
import { patternOf } from "../state/patterns";
import { type State, update } from "../state/state";
import { copy } from "../widgets/controls";
import type { MenuItem } from "../widgets/menu";

/** A selection of all blocks. */
export const EVERYTHING = { kind: "", heldBy: "", through: "", site: "", address: "", where: "" };

/** Shows paths, of a selection in place of the present one. */
export function showWhy(selection: Partial<Pick<State, keyof typeof EVERYTHING>>): void {
  update({ ...EVERYTHING, ...selection, heap: "why" });
}

export interface Named {
  name: string;
  kind: HeapKind | null;
  place?: string | undefined;
  /** The names from a root, if it is in the dominator tree. */
  path?: string;
}

const HOLDERS: readonly (HeapKind | null)[] = ["root", "group", "module", "definition"];

/** The name of a class: values that are alone have their sizes in their names. */
function className({ name, kind }: Named): string {
  if (kind === "array" || kind === "float_array" || kind === "list") return name.replace(/ of [\d,]+$/, "");
  return kind === "string" ? "string" : name;
}

export const VALUE_ACTIONS: readonly {
  key: string;
  text: string;
  isPossible: (named: Named) => boolean;
  run: (named: Named) => void;
}[] = [
  {
    key: "w",
    text: "Why: paths to what it retains",
    isPossible: ({ kind }) => kind !== "root",
    run: (named) => showWhy({ heldBy: patternOf(className(named)) }),
  },
  {
    key: "r",
    text: "Why: paths through it, also to what others reach too",
    isPossible: ({ kind }) => kind === "group" || kind === "module" || kind === "definition",
    run: (named) => showWhy({ through: patternOf(className(named)) }),
  },
  {
    key: "y",
    text: "Why: paths to all values of this kind",
    isPossible: ({ kind }) => !HOLDERS.includes(kind),
    run: (named) => showWhy({ kind: patternOf(className(named)) }),
  },
  {
    key: "o",
    text: "List what it retains",
    isPossible: ({ path }) => path !== undefined,
    run: ({ path }) => update({ heap: "retained", at: path ?? "" }),
  },
];

export function valueMenu(named: Named): (MenuItem | "line")[] {
  return [
    ...VALUE_ACTIONS.map((action) => ({
      text: action.text,
      hint: action.key,
      isDisabled: named.kind === null || !action.isPossible(named),
      run: () => action.run(named),
    })),
    "line",
    { text: "Copy its name", hint: "c", run: () => void copy(named.name, "the name") },
    ...(named.place ? [{ text: `Copy ${named.place}`, run: () => void copy(named.place as string, "the place") }] : []),
  ];
}
