import assert from "node:assert/strict";
import { test } from "node:test";
import type { Phrase, Summary, TraceFinding } from "../src/api/types";
import { phraseText } from "../src/overview/sentence";
import { targetOf, targetOfRow } from "../src/overview/targets";
import { parseState } from "../src/state/state";

function finding(kind: TraceFinding["kind"], name: string | null, ...parameters: [string, string][]): TraceFinding {
  return { kind, sentence: name === null ? [] : [{ name }], report: "", parameters };
}

test("figures of findings look like those of the terminal", () => {
  const estimate = { value: 3 * 1048576, error: 1048576 / 2, low: 0, high: 0, samples: 3 };
  const phrases: Phrase[] = [
    { text: "A " },
    { name: "F\u202e" },
    { bytes: estimate },
    { bytes_per_second: estimate },
    { percent: 12.345 },
    { seconds: 0.25 },
    { count: 1234 },
    { rate: 0.001 },
    { rate: 0.0001 },
  ];
  assert.deepEqual(phrases.map(phraseText), [
    "A ",
    "F\ufffd",
    "3.00 ± 0.50 MiB",
    "3.00 ± 0.50 MiB/s",
    "12.3 %",
    "250 ms",
    "1,234",
    "0.001",
    "1e-4",
  ]);
});

test("the finding on the garbage collector leads to its view", () => {
  const target = targetOf(finding("collector", null), parseState("#node=c.1&focus=X"), true);
  assert.ok(target !== "details");
  assert.deepEqual([target.view, target.node, target.focus], ["collector", "", []]);
});

test("a finding is shown in the view that has its figure, with the choices of its report", () => {
  const now = parseState("#where=size+>+1&focus=X&rows=y");
  const growth = targetOf(finding("growth", "F", ["own-code", "true"]), now, true);
  assert.ok(growth !== "details");
  assert.deepEqual([growth.view, growth.leaksBy, growth.lists, growth.focus], ["leaks", "function", "own", []]);
  const garbage = targetOf(finding("garbage", "F", ["own-code", "true"], ["within", "0.5s"]), now, true);
  assert.ok(garbage !== "details");
  assert.equal(garbage.where, "size > 1 and collected and lifetime <= 0.5s");
  assert.deepEqual([garbage.view, garbage.live, garbage.sort, garbage.rows], ["table", "all", "own", ""]);
  const call = targetOf(finding("peak_call", "/F", ["own-code", "true"]), now, true);
  assert.ok(call !== "details");
  assert.deepEqual([call.view, call.live, call.focus], ["flame", "peak", ["?F"]]);
  assert.equal(targetOf(finding("damage", null), now, true), "details");
});

test("a report file shows findings without filters and without own code", () => {
  const now = parseState("");
  const kinds = [
    "growth",
    "peak_holder",
    "peak_call",
    "large_block",
    "garbage",
    "promoted_garbage",
    "size_class",
  ] as const;
  for (const kind of kinds) {
    const target = targetOf(finding(kind, "F", ["own-code", "true"], ["within", "1s"]), now, false);
    assert.ok(target !== "details");
    assert.equal(target.where, undefined, kind);
    assert.ok(!target.ownCode, kind);
    assert.notEqual(target.by, "size");
  }
});

/** A summary whose short-lived blocks live less than some seconds. */
function summary(short: number, isOwn: boolean): Parameters<typeof targetOfRow>[2] {
  const subject = isOwn ? { own_code: { mine: [], libraries: [] } } : {};
  return { short, subject: subject as unknown as Summary["subject"] };
}

test("a row of short-lived memory is shown with a filter for exactly its blocks", () => {
  const now = parseState("#where=a");
  const where = (short: number, hasServer: boolean) =>
    targetOfRow("short_lived", "F", summary(short, false), now, hasServer).where;
  assert.equal(where(0.0526095, true), "a and collected and lifetime < 0.05261s");
  assert.equal(where(0.05, true), "a and collected and lifetime < 0.05s");
  assert.equal(where(0.05, false), undefined);
});

test("a row of own code is shown with own code", () => {
  const now = parseState("");
  const target = (isOwn: boolean, hasServer: boolean) => targetOfRow("blocks", "F", summary(1, isOwn), now, hasServer);
  assert.deepEqual([target(true, true).ownCode, target(false, true).ownCode], [true, false]);
  assert.equal(target(true, false).ownCode, false);
  assert.equal(target(true, true).unit, "blocks");
});
