import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../src/format";

const estimate = (value: number, error: number) => ({ value, error, low: value - error, high: value + error });

// The cases of crates/cli/src/units.rs: the page and the terminal must not disagree.
test("memory is written as the terminal writes it", () => {
  assert.equal(format.bytes(0), "0 B");
  assert.equal(format.bytes(1023), "1023 B");
  assert.equal(format.bytes(1024), "1 KiB");
  assert.equal(format.bytes(1_048_575), "1.00 MiB");
  assert.equal(format.bytes(54539), "53.3 KiB");
  assert.equal(format.bytes((2 ** 32 - 1) * 4), "16.0 GiB");
});

test("halves are rounded as the terminal rounds them", () => {
  assert.equal(format.bytes(32_000), "31.2 KiB");
  assert.equal(format.bytes(31.75 * 1024), "31.8 KiB");
  assert.equal(format.bytes(-32_000), "-31.2 KiB");
  assert.equal(format.bytes(31.25001 * 1024), "31.3 KiB");
});

test("the end of a name tells functions apart", () => {
  for (const [name, end] of [
    ["Stdlib.Map.Make.bal", "bal"],
    ["Shop.Sessions.start.(fun)", "start.(fun)"],
    ["alloc::vec::Vec<T,A>::push", "push"],
    ["jaq::run::{{closure}}", "run::{{closure}}"],
    ["main", "main"],
    ["(unknown)", "(unknown)"],
    ["<jaq::Val as a::B<c::D>>", "<jaq::Val as a::B<c::D>>"],
    ["", ""],
  ] as const)
    assert.equal(format.innermost(name), end, name);
});

test("errors decide how many digits are shown", () => {
  assert.equal(format.estimatedBytes(estimate(12.3456e6, 0.42e6)), "11.77 ± 0.40 MiB");
  assert.equal(format.estimatedBytes(estimate(12.3456e6, 4.2e6)), "11.8 ± 4.0 MiB");
  assert.equal(format.estimatedBytes(estimate(777 * 1024, 1077 * 1024)), "0.8 ± 1.1 MiB");
  assert.equal(format.estimatedBytes(estimate(80, 0)), "80 B");
  assert.equal(format.estimatedBytes(estimate(0, 24000)), "< 23.4 KiB");
  assert.equal(format.estimatedBytes(estimate(0, 0)), "0 B");
});

test("changes have their sign", () => {
  assert.equal(format.estimatedChange(estimate(6.02 * 2 ** 20, 0.78 * 2 ** 20)), "+6.02 ± 0.78 MiB");
  assert.equal(format.estimatedChange(estimate(-219 * 1024, 391 * 1024)), "-219 ± 391 KiB");
  assert.equal(format.signedCount(50_600), "+50.6 k");
});

test("times go from microseconds to hours", () => {
  assert.equal(format.seconds(0), "0 µs");
  assert.equal(format.seconds(0.0416), "41.6 ms");
  assert.equal(format.seconds(1.5), "1.50 s");
  assert.equal(format.seconds(123.4), "2 min 3 s");
  assert.equal(format.seconds(7321), "2 h 2 min");
});

test("numbers, counts and shares", () => {
  assert.equal(format.count(7_353_975), "7,353,975");
  assert.equal(format.countShort(999), "999");
  assert.equal(format.countShort(12_345), "12.3 k");
  assert.equal(format.estimatedCount(estimate(12_345, 400)), "12.35 ± 0.40 k");
  assert.equal(format.percent(1, 3), "33.3 %");
  assert.equal(format.percent(1, 1e6), "< 0.1 %");
  assert.equal(format.percent(0, 0), "-");
});

test("names cannot hide or turn around the text beside them", () => {
  assert.equal(format.printable("\u001b[2Jf\n\u202egpj"), "\ufffd[2Jf\ufffd\ufffdgpj");
});

test("times of queries are exact to the microsecond", () => {
  assert.equal(format.queryTime(0.1 + 0.2), "0.3s");
  assert.equal(format.queryTime(0.000001), "0.000001s");
  assert.equal(format.queryTime(14.305212), "14.305212s");
});

test("what the source does not tell is a question mark", () => {
  const untold = null as unknown as number;
  assert.equal(format.countShort(untold), "?");
  assert.equal(format.bytes(untold), "?");
  assert.equal(format.estimatedBytes({ value: untold, error: 0, low: 0, high: 0 }), "?");
  assert.equal(format.percent(Number.NaN, 3), "?");
});
