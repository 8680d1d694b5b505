import assert from "node:assert/strict";
import { test } from "node:test";
import { comparedVersions, fleetQuestion } from "../src/fleet/questions";
import { changeText, meanText, shownChanges, verdictText } from "../src/fleet/rows";
import { inOrder } from "../src/fleet/trend";
import type { ChangeRow, TrendSeries, VersionRuns } from "../src/fleet/types";
import { address } from "../src/api/question";
import { parseState } from "../src/state/state";

const RUNS: VersionRuns[] = [
  ["shop", "1.9"],
  ["mail", "0.1"],
  ["shop", "1.10"],
  ["shop", ""],
].map(([service = "", version = ""]) => ({ service, version, runs: 10, first_day: "a", last_day: "b" }));

test("versions are compared in the order of their first runs", () => {
  const pair = (hash: string) => comparedVersions(parseState(hash), RUNS);
  assert.deepEqual(pair("service=shop"), { before: "1.9", after: "1.10" });
  assert.deepEqual(pair(""), { before: "0.1", after: "1.10" });
  assert.deepEqual(pair("to=1.9"), { before: "1.10", after: "1.9" });
  assert.deepEqual(pair("from=1.9&to=0.1"), { before: "1.9", after: "0.1" });
  // Versions of addresses that were shared, and are not there any more.
  assert.deepEqual(pair("service=shop&from=0.7&to=3"), { before: "1.9", after: "1.10" });
  assert.equal(pair("service=mail"), null);
});

test("questions have the options of heapline fleet", () => {
  const asked = (hash: string) => {
    const question = fleetQuestion(parseState(hash), RUNS);
    return question && decodeURIComponent(address(question)).replaceAll("+", " ");
  };
  assert.equal(asked(""), "regressions?by=function&measure=allocated&rows=1000");
  assert.equal(
    asked("fleet=compare&service=shop&amount=blocks&sitesOf=module"),
    "diff?after=1.10&before=1.9&by=version,service,module&measure=blocks&rows=1000&service=shop",
  );
  assert.equal(asked("fleet=compare&service=mail"), null);
  assert.equal(
    asked("fleet=top&runsBy=none&where= line > 3&runs=not damaged"),
    "top?by=function&measure=allocated&rows=1000&runs=not damaged&where=line > 3",
  );
  assert.equal(asked("fleet=top&runsBy=none&sitesBy=none"), "top?by=service&measure=allocated&rows=1000");
  assert.equal(asked("fleet=trend&seriesBy=none"), "trend?by=version&measure=allocated");
  assert.equal(asked("fleet=trend&over=day"), "trend?by=day,service&measure=allocated");
});

function row(name: string, before: number, after: number): ChangeRow {
  const mean = (mean: number) => ({ runs: 10, mean, standard_error: 1, error: 2 });
  return {
    group: { service: "shop", function: name },
    before_name: "1",
    after_name: "2",
    before: mean(before),
    after: mean(after),
    change: after - before,
    error: 3,
    percent: before === 0 ? null : (100 * (after - before)) / before,
    p: 0.01,
    q: 0.04,
    is_significant: true,
  };
}

test("changes are sorted by any column, and searched", () => {
  const rows = [row("b", 1000, 1100), row("c", 0, 50), row("a", 10, 40)];
  const names = (sort: Parameters<typeof shownChanges>[1], search = "") =>
    shownChanges(rows, sort, search)
      .map((row) => row.group["function"])
      .join("");
  assert.equal(names("change"), "bca");
  assert.equal(names("percent"), "cab");
  assert.equal(names("before"), "bac");
  assert.equal(names("after"), "bca");
  assert.equal(names("name"), "abc");
  assert.equal(names("change", "shop a"), "a");
});

test("amounts are written as on the terminal", () => {
  assert.equal(meanText("bytes", { mean: 2048, error: 102.4 }), "2.00 ± 0.10 KiB");
  assert.equal(meanText("blocks", { mean: 2000, error: 100 }), "2.00 ± 0.10 k");
  assert.equal(changeText("bytes", { change: 2048, error: 102.4 }), "+2.00 ± 0.10 KiB");
  assert.equal(changeText("blocks", { change: -20, error: 3 }), "-20 ± 3");
  assert.match(verdictText(row("a", 1, 2)), /^Significant: p 0.010, and 0.040 /);
  assert.match(verdictText({ ...row("a", 1, 2), p: null, q: null }), /^Not tested/);
});

test("points of several series are in one order", () => {
  const series = (...names: string[]): TrendSeries => ({
    group: {},
    points: names.map((name) => ({ name, runs: 1, mean: 1, standard_error: 0, error: 0, step: null })),
  });
  assert.deepEqual(inOrder([series("1", "2", "4"), series("2", "3", "4"), series("0", "1")]), [
    "0",
    "1",
    "2",
    "3",
    "4",
  ]);
});
