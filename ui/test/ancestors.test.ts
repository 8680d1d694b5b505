import assert from "node:assert/strict";
import { test } from "node:test";
import { passedAncestors } from "../src/flame/ancestors";
import { ROW } from "../src/flame/draw";
import { bandOf, type Choices, picture } from "../src/flame/picture";
import { treeOf } from "./tree";

const CHOICES: Choices = {
  unit: "bytes",
  order: "size",
  colour: "module",
  kind: "function",
  shape: "icicle",
  folds: false,
};
const TREE = treeOf([
  [
    "main",
    100,
    [
      [
        "run",
        100,
        [
          ["a", 60, [["b", 50, [["c", 40]]]]],
          ["d", 40],
        ],
      ],
    ],
  ],
]);

function ancestors(shape: Choices["shape"], top: number, box: string, zoomed = "") {
  const drawn = picture(TREE, { ...CHOICES, shape }, "all");
  const [part] = drawn.parts;
  assert.ok(part);
  const number = (name: string) => part.layout.nodes.findIndex((node) => node.label.name === name);
  const band = bandOf(part, null, number(zoomed), 0);
  const found = passedAncestors(band, { top, height: 3 * ROW }, number(box));
  return found && found.map((node) => part.layout.nodes[node]?.label.name);
}

test("nothing is said while the root is in sight", () => {
  assert.equal(ancestors("icicle", 0, "c"), null);
  // Flames stand on the bottom: six rows, of which three are in sight.
  assert.equal(ancestors("flame", 3 * ROW, "c"), null);
});

test("the ancestors of a box that are out of sight are listed from the root on", () => {
  // The first row is everything.
  assert.deepEqual(ancestors("icicle", 3 * ROW, "c"), ["main", "run", "a"]);
  assert.deepEqual(ancestors("icicle", 3 * ROW, "d"), ["main", "run", "d"]);
  assert.deepEqual(ancestors("flame", 0, "c"), ["main", "run", "a"]);
});

test("without a box, they are those that everything visible has in common", () => {
  assert.deepEqual(ancestors("icicle", 3 * ROW, ""), ["main", "run"]);
  assert.deepEqual(ancestors("icicle", 3 * ROW, "", "b"), ["main", "run", "a"]);
});
