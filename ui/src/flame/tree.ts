// A call tree as the page draws it: nodes instead of columns.

import type { Details, Estimate, Flame, Figures, Label, NodeKind } from "../api/types";

/** A node of a tree. Of `own`, only the bytes are known. */
export interface TreeNode {
  parent: number | null;
  depth: number;
  label: Label;
  kind: NodeKind;
  others: number;
  total: Figures;
  own: Estimate;
  details: Details;
  /** In a comparison: both sides. */
  change?: NodeChange;
}

/** The amounts of a node on both sides of a comparison. */
export interface NodeChange {
  before: Estimate;
  after: Estimate;
  change: Estimate;
  /** Samples before and after. */
  samples: readonly [number, number];
  p: number;
  isReal: boolean;
}

export type Tree = Omit<Flame, "labels" | "min" | "focus_own" | "nodes" | "callers"> & {
  nodes: TreeNode[];
  callers: TreeNode[];
  /** True if small nodes that were merged may be in focus too, so that the total of the focus may be larger. */
  isAtLeast?: boolean;
};
