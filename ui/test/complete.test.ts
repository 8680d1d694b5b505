import assert from "node:assert/strict";
import { test } from "node:test";
import { quickClauses } from "../src/filter/clauses";
import { suggest } from "../src/filter/complete";

const words = (text: string, at = text.length) => suggest(text, at).words.map((word) => word.text);

test("an empty filter starts with a field", () => {
  assert.ok(words("").includes("lifetime"));
  assert.ok(words("promoted and ").includes("lifetime"));
  assert.ok(words("not (").includes("inside"));
});

test("what is being typed narrows the choice and is replaced", () => {
  const found = suggest("promoted and lif", 16);
  assert.deepEqual(
    found.words.map((word) => word.text),
    ["lifetime"],
  );
  assert.deepEqual([found.from, found.to], [13, 16]);
});

test("native programs have no heaps to promote between", () => {
  const found = (hasHeaps: boolean) => suggest("not ", 4, hasHeaps).words.map((word) => word.text);
  assert.deepEqual(
    found(true).filter((word) => !found(false).includes(word)),
    ["promoted", "heap"],
  );
  const clauses = quickClauses(1, false).map(({ clause }) => clause);
  assert.ok(clauses.includes("collected") && !clauses.some((clause) => /heap|promoted/.test(clause)));
});

test("fields are followed by what they are compared with", () => {
  assert.ok(words("size ").includes(">="));
  assert.ok(words("size >= ").includes("64KiB"));
  assert.deepEqual(words("heap = "), ["major", "minor", "external", "native"]);
  assert.ok(words("live at ").includes("peak"));
  assert.ok(words("allocated in ").includes("50%.."));
});

test("a condition that is complete is followed by and, or", () => {
  for (const text of [
    "size >= 64KiB ",
    "live at peak ",
    'inside "A b" ',
    "heap = major ",
    'inside module "M" ',
    "allocated in 1s..2s ",
  ]) {
    assert.deepEqual(words(text), ["and", "or"], text);
  }
});

test("names of the trace are offered where names stand", () => {
  assert.deepEqual(suggest("inside Par", 10).names, { kind: "function", part: "Par" });
  assert.deepEqual(suggest('inside module "Std', 18).names, { kind: "module", part: "Std" });
  assert.deepEqual(suggest("file = ", 7).names, { kind: "file", part: "" });
  assert.equal(suggest("size > ", 7).names, null);
});

test("in the middle of a text the rest of the word is replaced too", () => {
  const found = suggest("lifet > 2s", 3);
  assert.deepEqual([found.from, found.to], [0, 5]);
});

test("programs without promotions are not offered OCaml's heaps", () => {
  const clauses = (hasPromotions: boolean) => quickClauses(10, hasPromotions).map(({ clause }) => clause);
  assert.ok(clauses(true).includes("promoted"));
  assert.ok(!clauses(false).some((clause) => /promoted|heap|Stdlib/.test(clause)));
  assert.ok(clauses(false).includes("collected"));
});
