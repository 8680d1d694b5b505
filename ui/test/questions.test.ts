import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "../src/api/question";
import * as questions from "../src/state/questions";
import { parseState } from "../src/state/state";

const state = (hash: string) => parseState(hash);
const decoded = (text: string) => decodeURIComponent(text.replaceAll("+", " "));

test("the views look at what is alive at the chosen moment", () => {
  assert.equal(decoded(address(questions.flameQuestion(state("")))), "flame?min=0.1%&where=live at peak");
  assert.equal(decoded(address(questions.flameQuestion(state("#live=all")))), "flame?min=0.1%");
  assert.equal(decoded(address(questions.statsQuestion(state("#live=1.5")))), "stats?where=live at 1.5s");
});

test("the filter, the window and the moment must all hold", () => {
  const asked = questions.tableQuestion(state("#where=size+%3E+1k&window=0.5..1.25&live=end&by=site"));
  assert.equal(
    decoded(address(asked)),
    "hotspots?by=site&rows=1000&where=size > 1k&where=allocated in 0.5s..1.25s&where=live at end",
  );
});

test("the timeline is not cut by the window or the moment, which it shows", () => {
  const asked = questions.seriesQuestion(state("#window=0.5..1&live=end&where=promoted"), 400);
  assert.equal(address(asked), "series?by=function&points=400&where=promoted");
});

test("drilling into a layer asks for its callers", () => {
  const asked = questions.seriesQuestion(state("#callers=A.f&callers=B.g&split=site"), 400);
  assert.equal(address(asked), "series?callers-of=A.f&callers-of=B.g&points=400");
});

test("a focus has no direction of its own", () => {
  assert.equal(
    decoded(address(questions.flameQuestion(state("#focus=A.f&direction=up&live=all&hide=B.*")))),
    "flame?focus=A.f&hide=B.*&min=0.1%",
  );
});

test("two traces are compared, or two windows, which are the halves at first", () => {
  const trace = { duration: 3, slices: null, hasOther: false };
  const asked = (hash: string, more = {}) => {
    const found = questions.diffQuestion(state(hash), { ...trace, ...more });
    return found && address(found);
  };
  assert.equal(asked("#of=end", { hasOther: true }), "diff?of=end&rows=200");
  assert.equal(asked(""), "diff?rows=200&window=0s..1.5s&window=1.5s..3s");
  assert.equal(asked("", { slices: [0, 1, 2, 3] }), "diff?rows=200&window=0s..2s&window=2s..3s");
  assert.equal(asked("#before=0..1&after=1..2.5", { hasOther: true }), "diff?rows=200&window=0s..1s&window=1s..2.5s");
  assert.equal(asked("", { duration: 0 }), null);
});
