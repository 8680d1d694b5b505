import assert from "node:assert/strict";
import { test } from "node:test";
import type { NamedDiffTree } from "../src/api/types";
import { PLAIN } from "../src/colours";
import { colourNumbers } from "../src/flame/colours";
import { changedTree, missing } from "../src/flame/diff-tree";
import { changeText } from "../src/flame/draw";
import { figures, shape } from "./tree";

/** main has a (grew), b (vanished, with c below it), d (new) and a rest that did not really change. */
function diff(): NamedDiffTree {
  const before = [100, 40, 30, 20, 0, 30];
  const after = [130, 80, 0, 0, 20, 30.5];
  return {
    total: { before: figures(100), after: figures(130) },
    before: { duration: 1 },
    after: { duration: 1 },
    labels: ["main", "a", "b", "c", "d"].map((name) => ({ name })),
    nodes: {
      parent: [-1, 0, 0, 2, 0, 0],
      label: [0, 1, 2, 3, 4, -1],
      others: [0, 0, 0, 0, 0, 3],
      before,
      before_error: before.map((bytes) => bytes / 10),
      before_samples: before,
      after,
      after_error: after.map((bytes) => bytes / 10),
      after_samples: after,
      change: after.map((bytes, i) => bytes - (before[i] as number)),
      change_error: after.map(() => 5),
      p_value: [0.01, 0.001, 0.001, 0.02, 0.2, 0.9],
      is_real: [true, true, true, true, false, false],
    },
  } as unknown as NamedDiffTree;
}

test("the width of a box is the chosen side", () => {
  assert.equal(shape(changedTree(diff(), "after").nodes), "main 130 (a 80, b 0 (c 0), d 20, other (3) 30.5)");
  assert.equal(shape(changedTree(diff(), "before").nodes), "main 100 (a 40, b 30 (c 20), d 0, other (3) 30)");
});

test("functions without a width are listed, without those below them", () => {
  const { nodes } = changedTree(diff(), "after");
  const names = (side: "before" | "after") => missing(nodes, side).map((node) => nodes[node]?.label.name);
  assert.deepEqual(names("after"), ["b"]);
  assert.deepEqual(names("before"), ["d"]);
});

test("only real changes have a colour, and more and less have different ones", () => {
  const { nodes } = changedTree(diff(), "after");
  const [main, a, b, , d, other] = colourNumbers(nodes, "change", "function", 1) as unknown as number[];
  assert.equal(d, PLAIN);
  assert.equal(other, PLAIN);
  assert.ok((b as number) < 5 && (main as number) > 5 && (a as number) > (main as number));
});

test("changes are told to screen readers", () => {
  const { nodes } = changedTree(diff(), "after");
  assert.equal(changeText(nodes[1] as (typeof nodes)[number]), ", change +40.0 ± 5.0 B, real");
  assert.equal(changeText(nodes[4] as (typeof nodes)[number]), ", change +20.0 ± 5.0 B, within the sampling error");
});
