import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseScope, shownScope } from "../src/state/scope";
import { clamped, parseState } from "../src/state/state";

const FACTS = { duration: 3, hasOther: false };

test("leaks are about the end, whatever is chosen elsewhere", () => {
  const leaks = parseState("#view=leaks&live=all");
  assert.equal(shownScope(leaks), "end");
  assert.match(chooseScope(leaks, "peak", FACTS) as string, /live at the end/);
});

test("comparisons have their own choice; a window has no peak", () => {
  const compare = parseState("#view=compare&live=end");
  assert.equal(shownScope(compare), "all");
  assert.deepEqual(chooseScope(compare, "end", FACTS), { of: "end" });
  assert.match(chooseScope(compare, "peak", FACTS) as string, /no peak/);
  assert.deepEqual(chooseScope(compare, "peak", { ...FACTS, hasOther: true }), { of: "peak" });
});

test("times after the end of the run are clamped to it", () => {
  const now = clamped(parseState("#live=1e9&zoom=1000..2000&window=1..2000&before=0..3.000001"), 3);
  assert.equal(now.live, "end");
  assert.equal(now.zoom, null);
  assert.deepEqual(now.window, { from: 1, to: 3 });
  assert.deepEqual(now.before, { from: 0, to: 3.000001 }, "as in report files");
});

test("the overview has no scope: one that is chosen there is shown in the flame graph", () => {
  const overview = parseState("#live=all");
  assert.equal(overview.view, "overview");
  assert.equal(shownScope(overview), null);
  assert.deepEqual(chooseScope(overview, "end", FACTS), { live: "end", view: "flame" });
  assert.deepEqual(chooseScope(parseState("#view=table"), "end", FACTS), { live: "end" });
});
