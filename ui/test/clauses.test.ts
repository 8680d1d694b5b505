import assert from "node:assert/strict";
import { test } from "node:test";
import type { Capabilities } from "../src/api/types";
import { quickClauses } from "../src/filter/clauses";

const OCAML: Capabilities = { lifetimes: true, promotions: true, gc_parameters: true, lanes: true, sizes: true };
const NATIVE: Capabilities = { ...OCAML, promotions: false, gc_parameters: false };
const SNAPSHOTS: Capabilities = {
  lifetimes: false,
  promotions: false,
  gc_parameters: false,
  lanes: false,
  sizes: false,
};

const clauses = (tells: Capabilities) => quickClauses(10, tells).map(({ clause }) => clause);

test("programs without promotions are not offered OCaml's heaps", () => {
  assert.ok(clauses(OCAML).includes("promoted"));
  assert.ok(!clauses(NATIVE).some((clause) => /promoted|heap|Stdlib/.test(clause)));
  assert.ok(clauses(NATIVE).includes("collected"));
});

test("snapshots are not offered conditions about lifetimes and sizes", () => {
  assert.deepEqual(clauses(SNAPSHOTS), ["live at end", "not module /^Stdlib/"]);
});
