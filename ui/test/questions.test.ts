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
  assert.equal(address(asked), "series?branches=true&points=400&where=promoted");
});

test("drilling into a layer asks for its callers", () => {
  const asked = questions.seriesQuestion(state("#callers=A.f&callers=B.g&split=site"), 400);
  assert.equal(address(asked), "series?callers-of=A.f&callers-of=B.g&own-code=true&points=400");
  const whole = questions.seriesQuestion(state("#callers=A.f&split=function&lists=all"), 400);
  assert.equal(address(whole), "series?all-code=true&callers-of=A.f&points=400");
});

test("a focus has no direction of its own", () => {
  assert.equal(
    decoded(address(questions.flameQuestion(state("#focus=A.f&direction=up&live=all&hide=B.*")))),
    "flame?focus=A.f&hide=B.*&min=0.1%",
  );
});

test("two traces are compared, or two windows, which are the halves at first", () => {
  const trace = { duration: 3, hasOther: false };
  const asked = (hash: string, more = {}) => {
    const found = questions.diffQuestion(state(hash), { ...trace, ...more });
    return found && address(found);
  };
  assert.equal(asked("#of=end", { hasOther: true }), "diff?of=end&rows=5000");
  assert.equal(asked(""), "diff?rows=5000&window=0s..1.5s&window=1.5s..3s");
  assert.equal(asked("", { duration: 5.260955 }), "diff?rows=5000&window=0s..2.630477s&window=2.630477s..5.260955s");
  assert.equal(asked("#before=0..1&after=1..2.5", { hasOther: true }), "diff?rows=5000&window=0s..1s&window=1s..2.5s");
  assert.equal(asked("", { duration: 0 }), null);
});

test("the table is sorted by the engine, which knows all rows", () => {
  const asked = (hash: string) => decoded(address(questions.tableQuestion(state(`#live=all&${hash}`))));
  assert.equal(asked("sort=inclusive"), "hotspots?rows=1000&sort=inclusive");
  assert.equal(asked("sort=life&ascending"), "hotspots?reverse=true&rows=1000&sort=lifetime");
});

test("hidden functions are hidden in all views that have functions", () => {
  const hidden = state("#hide=Stdlib.*");
  const facts = { duration: 3, hasOther: false };
  for (const asked of [
    questions.flameQuestion(hidden),
    questions.tableQuestion(hidden),
    questions.treeQuestion(hidden),
    questions.leaksQuestion(hidden),
    questions.diffQuestion(hidden, facts),
    questions.seriesQuestion(hidden, 400),
  ])
    assert.match(address(asked as Parameters<typeof address>[0]), /hide=Stdlib/);
});

test("leaks and the comparison of two traces follow the window; two windows take its place", () => {
  const brushed = state("#view=compare&window=1..2");
  const facts = { duration: 3, hasOther: false };
  const text = (asked: Parameters<typeof address>[0] | null) => asked && decoded(address(asked));
  assert.match(text(questions.leaksQuestion(brushed)) ?? "", /where=allocated in 1s\.\.2s/);
  assert.match(text(questions.diffQuestion(brushed, { ...facts, hasOther: true })) ?? "", /where=allocated in/);
  assert.doesNotMatch(text(questions.diffQuestion(brushed, facts)) ?? "", /where/);
  assert.equal(text(questions.summaryQuestion(brushed, facts)), "summary?findings=0");
});

test("the views are about the layer that is on its own", () => {
  const asked = (hash: string) => decoded(address(questions.statsQuestion(state(`#live=all&${hash}`))));
  assert.equal(asked("callers=A.f&callers=B.g"), 'stats?where=own function = "A.f" called by "B.g"');
  assert.equal(asked("callers=A.f&lists=all"), 'stats?where=function = "A.f"');
  assert.equal(asked("callers=a.ml&split=file&where=promoted"), 'stats?where=promoted&where=file = "a.ml"');
  assert.equal(asked("callers=A.f&ownCode&hide=B.*"), 'stats?where=own function = "A.f" hiding "B.*"');
  assert.equal(
    asked("callers=A.f&ownCode&mine=A.*&hide=B.*"),
    'stats?where=own function = "A.f" mine "A.*" hiding "B.*"',
  );
});

test("own code can be that of some patterns, where it is asked for", () => {
  const hotspots = (hash: string) => decoded(address(questions.tableQuestion(state(`#live=all&${hash}`))));
  assert.match(hotspots("ownCode&mine=A.*&mine=B.*"), /mine=A\.\*&mine=B\.\*&own-code=true/);
  assert.doesNotMatch(hotspots("mine=A.*&lists=all"), /mine/);
  const leaks = (hash: string) => decoded(address(questions.leaksQuestion(state(`#live=all&${hash}`))));
  assert.match(leaks("mine=A.*"), /mine=A\.\*/);
  assert.doesNotMatch(leaks("mine=A.*&lists=all"), /mine/);
});
