import assert from "node:assert/strict";
import { test } from "node:test";
import type { Palette } from "../src/colours";
import { colourNumbers, palette } from "../src/flame/colours";
import { type Band, depthAt, drawBand, fitted, ROW, rowTop } from "../src/flame/draw";
import { layOut, neighbour, nodeAt, pathNames, pathTo } from "../src/flame/layout";
import { bandOf, locate, nameOf, type Part, picture, search, zoomedPicture } from "../src/flame/picture";
import { find, matcher } from "../src/flame/search";
import type { TreeNode } from "../src/flame/tree";
import { type Branch, nodesOf, treeOf } from "./tree";

const TREE: Branch[] = [
  [
    "main",
    100,
    [
      ["b", 60, [["x", 50]]],
      ["a", 30],
      ["other (2)", 5],
    ],
  ],
];

test("boxes are as wide as their share, children inside their parents", () => {
  const layout = layOut(nodesOf(TREE), 100, "bytes", "size");
  const rounded = (edges: Float64Array) => [...edges].map((x) => Number(x.toFixed(6)));
  assert.deepEqual(rounded(layout.left), [0, 0, 0, 0.6, 0.9]);
  assert.deepEqual(rounded(layout.right), [1, 0.6, 0.5, 0.9, 0.95]);
});

test("in the order of names, what is put together comes last", () => {
  const layout = layOut(nodesOf(TREE), 100, "bytes", "name");
  const names = [...(layout.rows[1] as Int32Array)].map((i) => layout.nodes[i]?.label.name);
  assert.deepEqual(names, ["a", "b", "other (2)"]);
  assert.equal(layout.left[3], 0);
  assert.equal(nodeAt(layout, 2, 0.5), 2);
});

test("pointing finds the box, and nothing where a function allocates itself", () => {
  const layout = layOut(nodesOf(TREE), 100, "bytes", "size");
  assert.equal(nodeAt(layout, 0, 0.99), 0);
  assert.equal(nodeAt(layout, 2, 0.49), 2);
  assert.equal(nodeAt(layout, 2, 0.55), -1);
  assert.equal(nodeAt(layout, 7, 0.5), -1);
  assert.deepEqual(pathTo(layout, 2), [0, 1, 2]);
});

test("arrow keys go to the largest child, to the parent and to what is beside", () => {
  const layout = layOut(nodesOf(TREE), 100, "bytes", "name");
  assert.equal(neighbour(layout, 0, "child"), 1);
  assert.equal(neighbour(layout, 1, "left"), 3);
  assert.equal(neighbour(layout, 1, "parent"), 0);
  assert.equal(neighbour(layout, 2, "child"), -1);
  assert.equal(neighbour(layout, 0, "parent"), -1);
});

test("a box is found again by its name in another tree", () => {
  const before = picture(treeOf(TREE), CHOICES, "all");
  const after = picture(
    treeOf([
      [
        "main",
        50,
        [
          ["c", 40],
          ["b", 10, [["x", 1]]],
        ],
      ],
    ]),
    CHOICES,
    "all",
  );
  const name = nameOf(before, 0, 2);
  assert.deepEqual(locate(after, name), { part: 0, node: 3 });
  assert.equal(locate(after, "zzz"), null);
});

test("the same function in other places has other names", () => {
  const names = pathNames(
    nodesOf([
      ["a", 2, [["f", 1]]],
      ["b", 2, [["f", 1]]],
    ]),
  );
  assert.equal(new Set(names).size, 4);
});

test("what is inside of several matches counts once", () => {
  const nodes = nodesOf([
    ["m.f", 100, [["g", 70, [["m.h", 50]]]]],
    ["m.k", 10],
  ]);
  const found = find(nodes, matcher("M.") as never);
  assert.equal(found.nodes, 3);
  assert.equal(found.bytes, 110);
});

test("a search is a part of the name in any case, or a regular expression", () => {
  const matches = (text: string, name: string) => matcher(text)?.({ name });
  assert.equal(matches("LIST", "Stdlib.List.map"), true);
  assert.equal(matches("/^List/", "Stdlib.List.map"), false);
  assert.equal(matches("/map$/", "Stdlib.List.map"), true);
  assert.equal(matches("/(", "a/(b"), true);
  assert.equal(matcher("  "), null);
});

test("with a focus there are callers above and callees below", () => {
  const tree = { ...treeOf(TREE), focus: ['"f"'], callers: nodesOf([["c", 100, [["d", 90]]]]) };
  const drawn = picture(tree, CHOICES, "all");
  assert.equal(drawn.rows, 2 + 1 + 3);
  assert.deepEqual(drawn.bar, { row: 2, texts: ["f"] });
  assert.equal(drawn.parts[1]?.isUp, true);
  assert.equal(search(drawn, "x").shown?.bytes, 50);
});

test("names lose their outer modules before they are cut", () => {
  const context = { font: "x", measureText: (text: string) => ({ width: text.length * 6 }) } as never;
  assert.equal(fitted(context, "Stdlib.Map.Make.add", 200), "Stdlib.Map.Make.add");
  assert.equal(fitted(context, "Stdlib.Map.Make.add", 60), "Make.add");
  assert.equal(fitted(context, "Stdlib.Map.Make.add", 20), "add");
  assert.equal(fitted(context, "Stdlib.Map.Make.iterate", 30), "iter…");
  assert.equal(fitted(context, "Stdlib.Map.Make.iterate", 8), "");
});

test("what has no colour of its own is plain", () => {
  const nodes = nodesOf(TREE);
  assert.equal(colourNumbers(nodes, "module", "function", 1)[4], 0);
  for (const mode of ["module", "heap", "lifetime", "growth"] as const) {
    const fills = palette(mode, false).fills.length;
    for (const number of colourNumbers(nodes, mode, "function", 1)) assert.ok(number < fills);
  }
});

// The budget of the flame graph: drawing must not cost more than there are places to draw to, however many nodes
// there are. Time is not a condition of tests, so what is counted are rectangles and texts.
test("a hundred thousand boxes are drawn with a few thousand rectangles", () => {
  const wide: Branch[] = Array.from({ length: 10_000 }, (_, k) => [
    `f${k}`,
    10,
    Array.from(
      { length: 3 },
      (_, m): Branch => [
        `g${m}`,
        3,
        [
          ["h", 2],
          ["i", 1],
        ],
      ],
    ),
  ]);
  const nodes = nodesOf(wide);
  assert.equal(nodes.length, 100_000);
  const layout = layOut(nodes, 100_000, "bytes", "size");
  const counts = drawn(band(layout), 1500);
  assert.ok(counts.rectangles < 4 * 1500, `${counts.rectangles} rectangles`);
  assert.equal(counts.texts, 0);
  const zoomed = drawn({ ...band(layout), from: 0.5, to: 0.5001 }, 1500);
  assert.equal(zoomed.rectangles, 1 + 3 + 6);
  assert.ok(zoomed.texts > 0);
});

test("stacks of twenty thousand frames are laid out, and only what is seen is drawn", () => {
  const nodes = nodesOf([["f0", 5]]);
  for (let depth = 1; depth < 20_000; depth++) {
    nodes.push({ ...(nodes[0] as (typeof nodes)[0]), parent: depth - 1, depth, label: { name: `f${depth}` } });
  }
  const layout = layOut(nodes, 5, "bytes", "name");
  assert.equal(layout.rows.length, 20_000);
  assert.ok(drawn(band(layout), 800, 10_000).rectangles <= 400 / 20 + 2);
});

test("a tree that grows up and one that grows down have their first row at the base", () => {
  const layout = layOut(nodesOf(TREE), 100, "bytes", "size");
  const down = { ...band(layout), base: 100 };
  const up = { ...down, isUp: true };
  assert.equal(rowTop(down, 0), 100);
  assert.equal(rowTop(up, 0), 80);
  assert.equal(depthAt(down, 125), 1);
  assert.equal(depthAt(up, 75), 1);
  assert.equal(depthAt(down, 90), -1);
});

const CHOICES = {
  unit: "bytes",
  order: "size",
  colour: "module",
  kind: "function",
  shape: "icicle",
  folds: false,
} as const;

function band(layout: ReturnType<typeof layOut>): Band {
  return {
    layout,
    colours: new Uint8Array(layout.nodes.length),
    matches: null,
    folded: 0,
    base: 0,
    isUp: false,
    from: 0,
    to: 1,
  };
}

function drawn(band: Band, width: number, top = 0): { rectangles: number; texts: number; said: string[] } {
  const counts = { rectangles: 0, texts: 0, said: [] as string[] };
  const context = {
    font: "",
    fillRect: () => counts.rectangles++,
    fillText: (text: string) => {
      // Figures are beside names.
      if (text !== "1 MiB") counts.texts++;
      counts.said.push(text);
    },
    measureText: (text: string) => ({ width: text.length * 6 }),
  };
  const colours: Palette = { fills: ["a"], faded: ["b"], text: "c", fadedText: "d" };
  const look = {
    palette: colours,
    ground: "",
    outline: "",
    accent: "",
    match: "",
    matchText: "",
    font: "f",
    figure: () => "1 MiB",
  };
  drawBand(context as never, band, { width, height: 400, top }, look, { hovered: -1, selected: -1 });
  return counts;
}

test("boxes have figures where there is room beside the whole name", () => {
  const nodes = treeOf([["Parser.parse", 100, [["run", 50]]]]).nodes;
  const wide = drawn(band(layOut(nodes, 100, "bytes", "size")), 400);
  assert.deepEqual(wide.said, ["Parser.parse", "1 MiB", "run", "1 MiB"]);
  const narrow = drawn(band(layOut(nodes, 100, "bytes", "size")), 110);
  assert.deepEqual(narrow.said, ["Parser.parse", "run"]);
});

test("the bar of a flame graph says what it is zoomed to", () => {
  const tree = treeOf([["main", 100, [["Parser.parse", 25]]]]);
  const choices = { unit: "bytes", order: "size", colour: "module", kind: "function", folds: false } as const;
  for (const shape of ["icicle", "flame"] as const) {
    const all = picture(tree, { ...choices, shape }, "Allocated: 100 B");
    const zoomed = zoomedPicture(all, tree.nodes[1] as TreeNode, "bytes");
    assert.deepEqual(zoomed.bar.texts, ["Parser.parse: 25 B, 25.0 % of Allocated: 100 B"]);
  }
});

test("the frames that nearly all stacks share are one box, up to where stacks differ", () => {
  const tree = treeOf([
    [
      "main",
      1000,
      [
        [
          "run",
          998,
          [
            [
              "protect",
              997,
              [
                ["a", 600],
                ["b", 397],
              ],
            ],
          ],
        ],
        ["exit", 2],
      ],
    ],
  ]);
  const drawn = picture(tree, { ...CHOICES, folds: true }, "all");
  assert.deepEqual(drawn.fold, { bar: 1, names: ["main", "run"] });
  assert.deepEqual(drawn.bar.texts, ["all", "2 frames: main › run"]);
  assert.equal(drawn.rows, 2 + 2);
  // Boxes keep their place: what is not in common is not stretched.
  const band = bandOf(drawn.parts[0] as Part, null, -1, 0);
  assert.equal(rowTop(band, 2), 2 * ROW);
  assert.equal(depthAt(band, 2 * ROW + 1), 2);
  assert.equal(depthAt(band, ROW + 1), -1);
  assert.equal(band.layout.right[2], 0.997);
  assert.equal(picture(tree, CHOICES, "all").fold, null);
  const flame = picture(tree, { ...CHOICES, shape: "flame", folds: true }, "all");
  assert.deepEqual(flame.bar, { row: 2, texts: ["2 frames: main › run", "all"] });
});
