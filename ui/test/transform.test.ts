import assert from "node:assert/strict";
import { test } from "node:test";
import { matchesAny, transformed } from "../src/flame/transform";
import { shape, treeOf } from "./tree";

const TREE = treeOf([
  [
    "main",
    100,
    [
      [
        "map",
        60,
        [
          ["f", 40],
          ["g", 15],
        ],
      ],
      [
        "h",
        30,
        [
          ["map", 20, [["f", 5]]],
          ["other (2)", 4],
        ],
      ],
    ],
  ],
]);

test("a hidden function's memory is its caller's", () => {
  const hidden = transformed(TREE, [], ["map"]);
  assert.equal(shape(hidden.nodes), "main 100 (f 40, h 30 (f 5, other (2) 4), g 15)");
  // Of map's 5 own bytes below main, and of its 15 below h.
  assert.equal(hidden.nodes[0]?.own.value, 10 + 5);
  assert.equal(hidden.nodes.find((node) => node.label.name === "h")?.own.value, 6 + 15);
});

test("a focus has the sum of all its places, with callers and callees", () => {
  const focused = transformed(TREE, ["map"], []);
  assert.equal(focused.focus_total?.bytes.value, 80);
  assert.equal(shape(focused.nodes), "f 45, g 15");
  assert.equal(shape(focused.callers), "main 60, h 20 (main 20)");
});

test("errors of different places add by their squares", () => {
  const focused = transformed(TREE, ["map"], []);
  assert.equal(focused.focus_total?.bytes.error, Math.hypot(3, 3));
});

test("what is put together stays together and is counted", () => {
  const tree = treeOf([
    [
      "a",
      10,
      [
        ["h1", 4, [["other (2)", 4]]],
        ["other (2)", 3],
      ],
    ],
  ]);
  const hidden = transformed(tree, [], ["h*"]);
  assert.equal(shape(hidden.nodes), "a 10 (other (2) 7)");
  assert.equal(hidden.nodes[1]?.others, 4);
});

test("patterns are globs or regular expressions", () => {
  const matches = matchesAny(["Stdlib.*", "/^A\\.x/", "a?c", "Ops.\\*", "src\\b"]);
  assert.ok(matches("Stdlib.List.map"));
  assert.ok(matches("A.xyz"));
  assert.ok(matches("a.c"));
  assert.ok(matches("Ops.*"));
  assert.ok(matches("src\\b"));
  assert.ok(!matches("Ops.add"));
  assert.ok(!matches("MyStdlib.f"));
  assert.ok(!matches("B.A.x"));
});

test("the total of a focus may be more if something outside of it was merged", () => {
  assert.equal(transformed(TREE, ["map"], []).isAtLeast, true);
  assert.equal(transformed(TREE, ["h"], []).isAtLeast, false, "what is merged is inside");
});
