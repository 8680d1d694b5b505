import assert from "node:assert/strict";
import { test } from "node:test";
import { quickClauses } from "../src/filter/clauses";
import { suggest } from "../src/filter/complete";
import type { Capabilities } from "../src/api/types";

const OCAML: Capabilities = { lifetimes: true, promotions: true, gc_parameters: true, lanes: true, sizes: true };
const NATIVE: Capabilities = { ...OCAML, promotions: false, gc_parameters: false };
const SNAPSHOTS: Capabilities = {
  lifetimes: false,
  promotions: false,
  gc_parameters: false,
  lanes: false,
  sizes: false,
};

const words = (text: string, at = text.length) => suggest(text, at, OCAML).words.map((word) => word.text);

test("an empty filter starts with a field", () => {
  assert.ok(words("").includes("lifetime"));
  assert.ok(words("promoted and ").includes("lifetime"));
  assert.ok(words("not (").includes("inside"));
});

test("what is being typed narrows the choice and is replaced", () => {
  const found = suggest("promoted and lif", 16, OCAML);
  assert.deepEqual(
    found.words.map((word) => word.text),
    ["lifetime"],
  );
  assert.deepEqual([found.from, found.to], [13, 16]);
});

test("fields that the source does not tell are not offered", () => {
  const found = (tells: Capabilities) => suggest("not ", 4, tells).words.map((word) => word.text);
  const missing = (tells: Capabilities) => found(OCAML).filter((word) => !found(tells).includes(word));
  assert.deepEqual(missing(NATIVE), ["promoted", "heap"]);
  assert.deepEqual(missing(SNAPSHOTS), [
    "live in",
    "collected",
    "promoted",
    "size",
    "lifetime",
    "heap",
    "domain",
    "samples",
  ]);
  const clauses = quickClauses(1, NATIVE).map(({ clause }) => clause);
  assert.ok(clauses.includes("collected") && !clauses.some((clause) => /heap|promoted/.test(clause)));
  const ofSnapshots = quickClauses(1, SNAPSHOTS).map(({ clause }) => clause);
  assert.deepEqual(ofSnapshots, ["live at end", "not inside module /^Stdlib/"]);
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
  assert.deepEqual(suggest("inside Par", 10, OCAML).names, { kind: "function", part: "Par" });
  assert.deepEqual(suggest('inside module "Std', 18, OCAML).names, { kind: "module", part: "Std" });
  assert.deepEqual(suggest("file = ", 7, OCAML).names, { kind: "file", part: "" });
  assert.equal(suggest("size > ", 7, OCAML).names, null);
});

test("in the middle of a text the rest of the word is replaced too", () => {
  const found = suggest("lifet > 2s", 3, OCAML);
  assert.deepEqual([found.from, found.to], [0, 5]);
});

test("programs without promotions are not offered OCaml's heaps", () => {
  const clauses = (tells: Capabilities) => quickClauses(10, tells).map(({ clause }) => clause);
  assert.ok(clauses(OCAML).includes("promoted"));
  assert.ok(!clauses(NATIVE).some((clause) => /promoted|heap|Stdlib/.test(clause)));
  assert.ok(clauses(NATIVE).includes("collected"));
});
