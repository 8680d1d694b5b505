import assert from "node:assert/strict";
import { test } from "node:test";
import { inOrder } from "../src/timeline/layers";
import type { Series } from "../src/api/types";
import { errorBand, indexAt, largest, layerAt, stack, timeOf, xOf, outline } from "../src/timeline/draw";
import { measured, niceStep, tickTime, timeTicks, valueTicks, wallTime } from "../src/timeline/scale";
import { snapped } from "../src/timeline/snap";

test("steps are 1, 2 or 5 of a power of ten", () => {
  assert.equal(niceStep(0.3), 0.5);
  assert.equal(niceStep(7), 10);
  assert.equal(niceStep(20), 20);
  assert.equal(niceStep(0), 1);
});

test("times beyond a second are in steps of clocks", () => {
  assert.deepEqual(timeTicks(0, 60, 5), [0, 15, 30, 45, 60]);
  assert.deepEqual(timeTicks(0, 7200, 4), [0, 1800, 3600, 5400, 7200]);
  assert.deepEqual(timeTicks(0.01, 0.05, 5), [0.01, 0.02, 0.03, 0.04, 0.05]);
});

test("ticks are written so that they can be told apart", () => {
  assert.equal(tickTime(0.0125, 0.0025), "12.5 ms");
  assert.equal(tickTime(1.25, 0.25), "1.25 s");
  assert.equal(tickTime(75, 15), "1:15");
  assert.equal(tickTime(3661, 60), "1:01:01");
  assert.equal(tickTime(0.00045, 0.00005), "450 µs");
});

test("the time of day counts from the start of the trace", () => {
  const start = Date.UTC(2026, 10, 15, 23, 59, 59) * 1000;
  assert.equal(wallTime(start, 2, 1, false), "00:00:01");
  assert.equal(wallTime(start, 0.25, 0.01, false), "23:59:59.250");
});

test("values are round in the unit they are written in", () => {
  assert.deepEqual(valueTicks("live-bytes", 5 * 2 ** 20, 4), [0, 2 * 2 ** 20, 4 * 2 ** 20]);
  assert.deepEqual(valueTicks("live-blocks", 5000, 4), [0, 2000, 4000]);
  assert.equal(measured("allocation-rate", 2048), "2 KiB/s");
  assert.deepEqual(valueTicks("live-bytes", 0, 4), [0]);
});

const line = (values: number[], high = values) => ({ values, low: values, high });
const SERIES = {
  times: [1, 2, 3],
  error: [],
  total: line([5, 7, 2], [5, 9, 7]),
  groups: [
    { ...line([4, 4, 1]), label: { name: "a" }, is_other: false },
    { ...line([1, 3, 1]), label: { name: "other (3)" }, is_other: true },
  ],
} as unknown as Series;

test("layers stand on each other, and no peak is lost", () => {
  const tops = stack(SERIES);
  assert.deepEqual(
    tops.map((top) => [...top]),
    [
      [4, 4, 1],
      [5, 7, 2],
    ],
  );
  assert.equal(largest(SERIES, null), 9);
  assert.equal(layerAt(tops, 1, 3), 0);
  assert.equal(layerAt(tops, 1, 6), 1);
  assert.equal(layerAt(tops, 1, 8), -1);
});

test("times and places belong together", () => {
  const frame = { range: { from: 10, to: 20 }, width: 100 };
  assert.equal(xOf(frame, 15), 50);
  assert.equal(timeOf(frame, 50), 15);
  assert.equal(timeOf(frame, -5), 10);
  assert.equal(indexAt(SERIES.times, 1.5), 1);
  assert.equal(indexAt(SERIES.times, 99), 2);
});

test("windows of a report file are between its slices, and never empty", () => {
  const slices = [0, 1, 2, 3];
  assert.deepEqual(snapped({ from: 0.4, to: 2.7 }, slices), { from: 0, to: 3 });
  assert.deepEqual(snapped({ from: 1.1, to: 1.2 }, slices), { from: 1, to: 2 });
  assert.deepEqual(snapped({ from: 2.9, to: 2.95 }, slices), { from: 2, to: 3 });
  assert.deepEqual(snapped({ from: 0.1, to: 0.2 }, slices), { from: 0, to: 1 });
});

test("other windows are exact to the microsecond, and never empty", () => {
  assert.deepEqual(snapped({ from: 0.10000049, to: 0.10000049 }, null), { from: 0.1, to: 0.100001 });
});

test("ranges of sizes and lifetimes are layers in their order", () => {
  const series = (names: string[]) =>
    ({
      groups: names.map((name) => ({ label: { name }, is_other: name.startsWith("other") })),
    }) as unknown as Series;
  const sorted = (split: "size" | "age" | "function", names: string[]) =>
    inOrder(series(names), split).groups.map((group) => group.label.name);
  assert.deepEqual(sorted("size", ["other (2)", "256 - 511 words", "4 - 7 words", "1 word"]), [
    "1 word",
    "4 - 7 words",
    "256 - 511 words",
    "other (2)",
  ]);
  assert.deepEqual(
    sorted("age", ["alive at the end", "lived 1 s to 10 s", "lived 100 µs to 1 ms", "lived less than 10 µs"]),
    ["lived less than 10 µs", "lived 100 µs to 1 ms", "lived 1 s to 10 s", "alive at the end"],
  );
  assert.deepEqual(sorted("function", ["2", "1"]), ["2", "1"]);
});

test("the line above the layers leaves them only at peaks between two points", () => {
  const line = (values: number[], high: number[]) => outline({ values, high }).map(({ at, value }) => `${at}:${value}`);
  // The highest value of an interval in which memory falls is that at its start.
  assert.deepEqual(line([4, 8, 2], [4, 8, 8]), ["0:4", "1:8", "2:2"]);
  assert.deepEqual(line([4, 8, 2], [4, 9, 8]), ["0:4", "0.5:9", "1:8", "2:2"]);
});

test("the band of the error is around the total, and on the scale", () => {
  assert.equal(errorBand(SERIES), null);
  const estimated = { ...SERIES, error: [6, 1, 0] } as Series;
  assert.deepEqual(errorBand(estimated), [
    { low: 0, high: 11 },
    { low: 6, high: 8 },
    { low: 2, high: 2 },
  ]);
  assert.equal(largest(estimated, null), 11);
});
