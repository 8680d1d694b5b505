import assert from "node:assert/strict";
import { test } from "node:test";
import type { DiffRow } from "../src/api/types";
import { changePercent, shortNames, shownRows } from "../src/views/diff-rows";
import { figures } from "./tree";

const estimate = (value: number) => ({ value, error: 0, low: value, high: value });

function row(name: string, before: number, after: number): DiffRow {
  const percent = before === 0 ? null : (100 * (after - before)) / before;
  return {
    label: { name },
    before: figures(before),
    after: figures(after),
    bytes: estimate(after - before),
    blocks: estimate(0),
    percent,
    p_value: 0,
    is_real: true,
  };
}

const ROWS = [row("big", 1000, 100), row("new", 0, 500), row("double", 100, 200)];
const names = (sort: Parameters<typeof shownRows>[1], search = "") =>
  shownRows(ROWS, sort, search).map((one) => one.label.name);

test("changes are sorted by any column and searched", () => {
  assert.deepEqual(names("change"), ["big", "new", "double"]);
  assert.deepEqual(names("percent"), ["new", "double", "big"]);
  assert.deepEqual(names("after"), ["new", "double", "big"]);
  assert.deepEqual(names("before"), ["big", "double", "new"]);
  assert.deepEqual(names("name"), ["big", "double", "new"]);
  assert.deepEqual(names("change", "OU"), ["double"]);
});

test("a change in percent is short", () => {
  assert.equal(changePercent(null), "new");
  assert.equal(changePercent(12.34), "+12.3");
  assert.equal(changePercent(-40), "-40.0");
  assert.equal(changePercent(203_973), "+204 k");
});

test("files are named without their folders, unless only those tell them apart", () => {
  assert.deepEqual(shortNames("runs/old.ctf", "runs/new.ctf"), { before: "old.ctf", after: "new.ctf" });
  assert.deepEqual(shortNames("a/run/t.ctf", "b/run/t.ctf"), { before: "a/run/t.ctf", after: "b/run/t.ctf" });
  assert.deepEqual(shortNames("t.ctf", "b/t.ctf"), { before: "t.ctf", after: "b/t.ctf" });
  assert.deepEqual(shortNames("t.ctf", "t.ctf"), { before: "t.ctf", after: "t.ctf" });
});
