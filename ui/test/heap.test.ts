import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "../src/api/question";
import type { DominatorNode, DominatorTree, HeapKind } from "../src/api/types";
import { drawnTree, pathOf } from "../src/heap/nodes";
import { heapViewQuestion, retainedQuestion } from "../src/heap/questions";
import { parseState } from "../src/state/state";

function node(parent: number | null, depth: number, name: string, kind: HeapKind | null, bytes: number): DominatorNode {
  const amount = { bytes, blocks: 1 };
  return { parent, depth, name, kind, values: 3, own: amount, retained: amount };
}

const TREE: DominatorTree = {
  subject: {
    program: "server",
    pid: 1,
    total: { bytes: 100, blocks: 5 },
    folded: 0,
    damage: { references: 0, roots: 0, others: 0 },
  },
  nodes: [
    node(null, 0, "globals", "group", 90),
    node(0, 1, "module Cache", "module", 80),
    node(1, 2, "Cache.table", "definition", 70),
    node(2, 3, "Hashtbl.t", "hashtable", 60),
    node(0, 1, "other (3)", null, 10),
  ],
};

test("a path begins at a definition or a module, as --at takes it", () => {
  assert.equal(pathOf(TREE.nodes, 3), "Cache.table > Hashtbl.t");
  assert.equal(pathOf(TREE.nodes, 1), "module Cache");
  assert.equal(pathOf(TREE.nodes, 0), "globals");
});

test("the drawn tree has the figures of the answer, without errors", () => {
  const { nodes, total } = drawnTree(TREE);
  assert.deepEqual(
    nodes.map(({ total }) => total.bytes),
    TREE.nodes.map(({ retained: { bytes } }) => ({ value: bytes, error: 0, low: bytes, high: bytes })),
  );
  assert.equal(total.bytes.value, 100);
  assert.equal(nodes[4]?.kind, "other");
  assert.equal(nodes[4]?.others, 3);
  // Definitions of a module have its colour.
  assert.equal(nodes[2]?.label.module, nodes[1]?.label.module);
});

test("questions have what was chosen, and no defaults", () => {
  const asked = (hash: string) => address(heapViewQuestion(parseState(hash)));
  assert.equal(asked("heap=icicle"), "dominators?min=0.1%25");
  assert.equal(asked("heap=retained"), "retained?rows=1000");
  assert.equal(asked("heap=retained&retainedBy=kind"), "retained?by=kind&rows=1000");
  assert.equal(asked("heap=why&heldBy=Cache.table&depth=2"), "why?depth=2&held-by=Cache.table&rows=100");
  assert.equal(asked("heap=why&through=Global.env"), "why?rows=100&through=Global.env");
  assert.equal(asked("heap=compare"), "diff?rows=200");
  // A path has no grouping.
  const state = { at: "Cache.table > Hashtbl.t", retainedBy: "kind" } as const;
  assert.equal(address(retainedQuestion(state)), "retained?at=Cache.table+%3E+Hashtbl.t&rows=1000");
});
