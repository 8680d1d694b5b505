import type { BlockRow } from "../api/types";
import type { State } from "../state/state";

const KEYS: Record<State["blockSort"], (row: BlockRow) => number> = {
  size: (row) => row.size,
  weight: (row) => row.bytes.value,
  age: (row) => row.lifetime,
  birth: (row) => -row.allocated,
};

/** Sorts the blocks of a report file, which has them in one order. Equal ones are in the order of the trace. */
export function inOrder(rows: readonly BlockRow[], sort: State["blockSort"]): BlockRow[] {
  const key = KEYS[sort];
  return [...rows].sort((a, b) => key(b) - key(a) || a.number - b.number);
}
