import assert from "node:assert/strict";
import { test } from "node:test";
import { clausesOf, inQuery, patternOf, quoted, searchPattern, withClause } from "../src/state/patterns";

test("a clause is joined so that it binds to the whole query", () => {
  assert.equal(withClause("", "promoted"), "promoted");
  assert.equal(withClause("size > 1k", "promoted"), "size > 1k and promoted");
  assert.equal(withClause("size > 1k or promoted", "live at end"), "(size > 1k or promoted) and live at end");
  assert.equal(withClause("(a or b)", "c"), "(a or b) and c");
});

test("an `or` in a name is not one", () => {
  assert.equal(withClause('inside "a or b"', "c"), 'inside "a or b" and c');
  assert.equal(withClause("inside / or /", "c"), "inside / or / and c");
  assert.equal(withClause('inside "a\\" or b"', "c"), 'inside "a\\" or b" and c');
});

test("names become patterns that match them", () => {
  assert.equal(patternOf("A.f"), "A.f");
  assert.equal(patternOf("/usr/x"), "?usr/x");
  assert.equal(quoted("A.f"), '"A.f"');
  assert.equal(quoted('a"b'), '"a\\"b"');
  assert.equal(quoted("Ops.*\\"), '"Ops.\\*\\\\"');
});

test("a query is taken apart where all of its parts must hold", () => {
  assert.deepEqual(clausesOf('inside "a and b" and (x or y) and not z'), ['inside "a and b"', "(x or y)", "not z"]);
  assert.deepEqual(clausesOf("a or b and c"), ["a or b and c"]);
  assert.deepEqual(clausesOf("(a and b)"), ["(a and b)"]);
  assert.deepEqual(clausesOf("  "), []);
});

test("patterns of options mean the same in a query", () => {
  for (const [pattern, text] of [
    ["Stdlib.*", '"Stdlib.*"'],
    ['a "b" \\* \\', '"a \\"b\\" \\* \\\\"'],
    ["/^Parser/i", "/^Parser/i"],
    ["/a/b\\/c/", "/a\\/b\\/c/"],
    ["?leading", '"?leading"'],
  ] as const)
    assert.equal(inQuery(pattern), text);
});

test("a search text becomes a pattern that matches the same names", () => {
  assert.equal(searchPattern(" Map.Make.(fun) "), "/Map\\.Make\\.\\(fun\\)/i");
  assert.equal(inQuery(searchPattern("a/b")), "/a\\/b/i");
  assert.equal(searchPattern("/^Map/"), "/^Map/i");
  assert.equal(searchPattern("/^Map"), "/^Map/i");
});
