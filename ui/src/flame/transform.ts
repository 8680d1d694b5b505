// Hiding and focusing in the page itself, for report files, which have no engine. Sums of nodes are exact; nodes that were
// merged into "other" stay merged.

import type { Estimate, Figures, Details } from "../api/types";
import type { Tree, TreeNode } from "./tree";

/** True if a name matches a pattern: `*` is any text, `?` any character (unless after `\`), `/.../` a regular expression. */
export function matchesAny(patterns: readonly string[]): (name: string) => boolean {
  const tests = patterns.map((pattern) => {
    const regex = /^\/(.*)\/(i?)$/.exec(pattern);
    if (regex) return new RegExp(regex[1] as string, regex[2]);
    const escaped = pattern.replace(/\\[*?\\]|[^]/g, (piece) => {
      if (piece === "*") return ".*";
      if (piece === "?") return ".";
      return piece.slice(-1).replace(/[.*+?^${}()|[\]\\/]/, "\\$&");
    });
    return new RegExp(`^${escaped}$`, "s");
  });
  return (name) => tests.some((test) => test.test(name));
}

/** The tree around the functions in focus, without the hidden ones. Only the first focus is used. */
export function transformed(tree: Tree, focus: readonly string[], hide: readonly string[]): Tree {
  const visible = hide.length === 0 ? tree.nodes : withoutHidden(tree.nodes, matchesAny(hide));
  if (focus.length === 0) return { ...tree, nodes: visible };
  const inFocus = matchesAny(focus.slice(0, 1));
  const callees = new Forest();
  const callers = new Forest();
  let total: Figures | null = null;
  let isAtLeast = false;
  const paths = childPaths(visible);
  visible.forEach((node, i) => {
    const path = paths(i);
    const outermost = path.findIndex((k) => isCalled(visible[k] as TreeNode, inFocus));
    if (outermost < 0) {
      isAtLeast ||= node.kind === "other" && node.total.bytes.value > 0;
      return;
    }
    const below = path.slice(outermost + 1).map((k) => visible[k] as TreeNode);
    if (below.length > 0) {
      callees.add(below, node.total, node.own, node.details);
      return;
    }
    total = sum(total, node.total);
    const above = path
      .slice(0, outermost)
      .reverse()
      .map((k) => visible[k] as TreeNode);
    for (let n = 1; n <= above.length; n++) callers.add(above.slice(0, n), node.total, ZERO, node.details);
  });
  return {
    ...tree,
    focus: [...focus.slice(0, 1)],
    focus_total: total ?? NOTHING,
    isAtLeast,
    nodes: callees.nodes(),
    callers: callers.nodes(),
  };
}

function isCalled(node: TreeNode, matches: (name: string) => boolean): boolean {
  return node.kind !== "other" && matches(node.label.name);
}

/** The path from the root to each node. */
function childPaths(nodes: readonly TreeNode[]): (node: number) => number[] {
  return (node) => {
    const path: number[] = [];
    for (let i: number | null = node; i !== null; i = (nodes[i] as TreeNode).parent) path.push(i);
    return path.reverse();
  };
}

function withoutHidden(nodes: readonly TreeNode[], isHidden: (name: string) => boolean): TreeNode[] {
  const forest = new Forest();
  const paths = childPaths(nodes);
  const own = nodes.map((node) => node.own);
  // From the leaves up: a hidden function's own memory is attributed to its caller.
  for (let i = nodes.length - 1; i >= 0; i--) {
    const node = nodes[i] as TreeNode;
    if (isCalled(node, isHidden) && node.parent !== null)
      own[node.parent] = sumEstimates(own[node.parent] as Estimate, own[i] as Estimate);
  }
  nodes.forEach((node, i) => {
    if (isCalled(node, isHidden)) return;
    const path = paths(i)
      .map((k) => nodes[k] as TreeNode)
      .filter((one) => !isCalled(one, isHidden));
    forest.add(path, node.total, own[i] as Estimate, node.details);
  });
  return forest.nodes();
}

interface Growing {
  node: TreeNode;
  children: Map<string, Growing>;
}

/** A tree that is built from paths. */
class Forest {
  private readonly roots = new Map<string, Growing>();

  /** Adds to the node at the end of a path; the nodes before it must have been added already. */
  add(path: readonly TreeNode[], total: Figures, own: Estimate, details: Details): void {
    let children = this.roots;
    let found: Growing | undefined;
    let isNew = false;
    path.forEach((step, depth) => {
      const name = `${step.kind}\0${step.label.name}\0${step.label.place ?? ""}`;
      found = children.get(name);
      isNew = !found;
      if (!found) {
        found = {
          node: {
            parent: null,
            depth,
            label: step.label,
            kind: step.kind,
            others: step.others,
            total: NOTHING,
            own: ZERO,
            details: NO_DETAILS,
          },
          children: new Map(),
        };
        children.set(name, found);
      }
      children = found.children;
    });
    if (!found) return;
    const before = found.node;
    const others = isNew ? before.others : before.others + (path.at(-1) as TreeNode).others;
    found.node = {
      ...before,
      others,
      total: sum(before.total, total),
      own: sumEstimates(before.own, own),
      details: sumDetails(before, details, total),
    };
  }

  /** The nodes in preorder, largest first, "other" last. */
  nodes(): TreeNode[] {
    const out: TreeNode[] = [];
    const isOther = ({ node }: Growing) => (node.kind === "other" ? 1 : 0);
    const ascending = (nodes: Iterable<Growing>) =>
      [...nodes].sort((a, b) => isOther(b) - isOther(a) || a.node.total.bytes.value - b.node.total.bytes.value);
    const stack = ascending(this.roots.values()).map((growing) => ({ growing, parent: null as number | null }));
    while (stack.length > 0) {
      const { growing, parent } = stack.pop() as { growing: Growing; parent: number | null };
      const place = out.length;
      out.push({ ...growing.node, parent });
      for (const child of ascending(growing.children.values())) stack.push({ growing: child, parent: place });
    }
    return out;
  }
}

const ZERO: Estimate = { value: 0, error: 0, low: 0, high: 0 };
const NOTHING: Figures = { bytes: ZERO, blocks: ZERO, samples: 0 };
export const NO_DETAILS: Details = {
  lifetime: null,
  promoted: 0,
  heap: { minor: 0, major: 0, external: 0, native: 0 },
  live_at_half: 0,
  live_at_end: 0,
};

function sum(a: Figures | null, b: Figures): Figures {
  if (!a || a.bytes.value === 0) return b;
  return {
    bytes: sumEstimates(a.bytes, b.bytes),
    blocks: sumEstimates(a.blocks, b.blocks),
    samples: a.samples + b.samples,
  };
}

/** Errors of different blocks are independent: their squares add. */
function sumEstimates(a: Estimate, b: Estimate): Estimate {
  const value = a.value + b.value;
  const error = Math.hypot(a.error, b.error);
  return { value, error, low: Math.max(0, value - error), high: value + error };
}

function sumDetails(before: TreeNode, added: Details, addedTotal: Figures): Details {
  const { details, total } = before;
  const [weight, addedWeight] = [total.blocks.value, addedTotal.blocks.value];
  const mean = ((details.lifetime ?? 0) * weight + (added.lifetime ?? 0) * addedWeight) / (weight + addedWeight || 1);
  return {
    lifetime: details.lifetime === null ? added.lifetime : added.lifetime === null ? details.lifetime : mean,
    promoted: details.promoted + added.promoted,
    heap: {
      minor: details.heap.minor + added.heap.minor,
      major: details.heap.major + added.heap.major,
      external: details.heap.external + added.heap.external,
      native: details.heap.native + added.heap.native,
    },
    live_at_half: details.live_at_half + added.live_at_half,
    live_at_end: details.live_at_end + added.live_at_end,
  };
}
