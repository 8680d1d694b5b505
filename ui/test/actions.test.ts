import assert from "node:assert/strict";
import { test } from "node:test";
import { ACTIONS } from "../src/flame/actions";
import { peakQuestion } from "../src/state/questions";
import { parseState } from "../src/state/state";

function run(key: string, hash: string, name: string) {
  const state = parseState(hash);
  return { ...state, ...ACTIONS.find((action) => action.key === key)?.change(state, name) };
}

test("memory inside of a box is selected by what the boxes are", () => {
  assert.equal(run("o", "#view=flame", "A.f").where, 'inside "A.f"');
  assert.equal(run("x", "#view=tree&frames=module", "A").where, 'not inside module "A"');
  // The rows of a table are functions, whatever the boxes of trees are.
  assert.equal(run("o", "#view=table&frames=module", "A.f").where, 'inside "A.f"');
});

test("a peak is asked for without functions, and the same key takes one back", () => {
  const once = run("-", "#view=table&window=1..2&where=size+>+8", "A.f");
  assert.deepEqual(once.without, ['inside "A.f"']);
  assert.deepEqual(peakQuestion(once).options, [
    ["where", "size > 8"],
    ["without", 'inside "A.f"'],
    ["window", "1s..2s"],
    ["rows", "0"],
  ]);
  // The layer of the timeline that is on its own is a part of the selection; the window is not a filter here.
  const drilled = peakQuestion(parseState("#callers=A.f&window=1..2")).options;
  assert.deepEqual(drilled, [
    ["where", 'own function = "A.f"'],
    ["window", "1s..2s"],
    ["rows", "0"],
  ]);
  const both = run("-", '#view=table&without=inside+"A.f"', "B.g");
  assert.deepEqual(both.without, ['inside "A.f"', 'inside "B.g"']);
  assert.deepEqual(run("-", '#view=table&without=inside+"A.f"', "A.f").without, []);
});
