import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hotspot, Hotspots } from "../src/api/types";
import { pathNames } from "../src/flame/layout";
import { parseState } from "../src/state/state";
import { columns, csvWord, exported, sorted } from "../src/views/columns";
import { ageClause } from "../src/views/heatmap";
import { leadingTo, opening, openRows, openText, visibleRows } from "../src/views/tree-rows";
import { figures, nodesOf } from "./tree";

function row(name: string, own: number, life: number | null): Hotspot {
  return {
    label: { name, place: "a.ml:1" },
    allocated: figures(own, 1),
    live_at_peak: figures(0),
    live_at_end: figures(own / 2),
    inclusive: figures(own * 2),
    mean_size: 24,
    lifetime: { p50: life, p90: null, p99: null },
    oldest: 1.25,
    promoted_percent: null,
    growth: [],
    is_noise: false,
  };
}

const ROWS = [row("b", 10, 0.5), row("a", 30, null), row("c", 20, 0.1)];
const report = (promotions: boolean, blocks = true) =>
  ({
    rows: ROWS,
    subject: { duration: 2, tells: { promotions, lifetimes: blocks, sizes: blocks } },
  }) as unknown as Hotspots;
const REPORT = report(true);
const names = (rows: readonly Hotspot[]) => rows.map((one) => one.label.name).join("");

test("rows are sorted by any column; what outlives the trace lives longest", () => {
  const all = columns(parseState("#live=all"), REPORT);
  assert.equal(names(sorted(ROWS, all, "own", false)), "acb");
  assert.equal(names(sorted(ROWS, all, "own", true)), "bca");
  assert.equal(names(sorted(ROWS, all, "life", false)), "abc");
  assert.equal(names(sorted(ROWS, all, "name", false)), "abc");
});

test("a median that is not known is longer than the oldest block, not than the run", () => {
  const life = columns(parseState("#live=all"), REPORT).find((column) => column.name === "life");
  assert.equal(life?.text(row("a", 1, null)), "> 1.25 s");
});

test("columns that would repeat what is looked at are left out", () => {
  const shown = (hash: string) => columns(parseState(hash), REPORT).map((column) => column.name);
  assert.ok(shown("#live=all").includes("peak") && shown("#live=all").includes("end"));
  assert.ok(!shown("#live=peak").includes("peak"));
  assert.ok(!shown("#live=end").includes("end"));
});

test("sizes and lifetimes are left out where the source has snapshots only", () => {
  const shown = columns(parseState(""), report(false, false)).map((column) => column.name);
  assert.ok(!shown.includes("size") && !shown.includes("life"));
  assert.ok(shown.includes("blocks"));
});

test("promotions are left out where the source does not tell them", () => {
  const shown = (promotions: boolean) => columns(parseState(""), report(promotions)).map((column) => column.name);
  assert.ok(shown(true).includes("promoted"));
  assert.ok(!shown(false).includes("promoted"));
});

test("tables are copied as text, CSV and JSON", () => {
  const all = columns(parseState("#live=all"), REPORT);
  const text = exported(ROWS, all, "text").split("\n");
  assert.equal(text.length, 4);
  assert.ok(text[1]?.endsWith("b (a.ml:1)"));
  const csv = exported(ROWS, all, "csv").split("\n");
  assert.equal(csv[1], "b,a.ml:1,10,1,20,0,5,1,24,0.5,");
  assert.deepEqual(JSON.parse(exported(ROWS, all, "json")), ROWS);
});

test("a name is not a formula for spreadsheets", () => {
  assert.equal(csvWord('=HYPERLINK("x")'), `"'=HYPERLINK(""x"")"`);
  assert.equal(csvWord("Stdlib.(@)"), "Stdlib.(@)");
});

test("a tree shows what is open, and opening goes on to where it divides", () => {
  const nodes = nodesOf([
    [
      "a",
      10,
      [
        [
          "b",
          10,
          [
            ["c", 6],
            ["d", 4],
          ],
        ],
      ],
    ],
    ["e", 5, [["f", 5]]],
  ]);
  const ids = pathNames(nodes);
  const shown = (open: string[]) =>
    visibleRows(nodes, new Set(open), ids)
      .map((one) => nodes[one.node]?.label.name)
      .join("");
  assert.equal(shown([]), "ae");
  assert.equal(shown(opening(nodes, 0, ids)), "abcde");
  assert.equal(shown([ids[1] as string]), "ae");
});

test("the rows that are open are in the address", () => {
  const nodes = nodesOf([
    [
      "a",
      10,
      [
        ["b", 6, [["c", 6]]],
        ["d", 4],
      ],
    ],
  ]);
  const ids = pathNames(nodes);
  assert.deepEqual([...openRows("", nodes, ids)], [ids[0]], "the largest branch at first");
  const open = new Set([ids[0] as string, ids[1] as string]);
  assert.deepEqual(openRows(openText(open), nodes, ids), open);
  assert.deepEqual([...openRows("of.another.tree", nodes, ids)], [ids[0]]);
  assert.equal(openRows(openText(new Set()), nodes, ids).size, 0);
  assert.equal(openRows("*", nodes, ids).size, nodes.length);
});

test("a search opens what leads to its matches", () => {
  const nodes = nodesOf([
    [
      "a",
      10,
      [
        [
          "b",
          10,
          [
            ["c", 6],
            ["d", 4],
          ],
        ],
      ],
    ],
    ["e", 5, [["f", 5]]],
  ]);
  const ids = pathNames(nodes);
  const open = leadingTo(nodes, (node) => node.label.name === "d", ids);
  assert.deepEqual(open.sort(), [ids[0], ids[1]].sort());
});

test("rows of the heat map are clauses", () => {
  const ages = [0, 0.001, 0.01, 0.1];
  assert.equal(ageClause(ages, 0, 1), "lifetime in 0s..0.01s and not live at end");
  assert.equal(ageClause(ages, 3, 3), "live at end");
  assert.equal(ageClause(ages, 1, 3), "lifetime in 0.001s..");
});
