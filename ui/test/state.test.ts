import assert from "node:assert/strict";
import { test } from "node:test";
import { momentOf, parseState, printState, type State } from "../src/state/state";

test("the first look has an empty address", () => {
  assert.equal(printState(parseState("")), "");
});

test("an address keeps everything that was chosen", () => {
  const chosen: State = {
    ...parseState(""),
    view: "tree",
    live: 12.5,
    where: 'inside "A&b=c #1" and size > 2k',
    window: { from: 0.25, to: 1e-3 + 1 },
    windowOf: "collected",
    pause: "0.25",
    without: ['inside "A.f"'],
    blockSort: "age",
    lists: "all",
    estimator: "count",
    unit: "blocks",
    measure: "promotion-rate",
    split: "none",
    callers: ["a", "b"],
    zoom: { from: 0, to: 0.000002 },
    clock: "local",
    folded: true,
    direction: "up",
    shape: "flame",
    frames: "file",
    focus: ["x;y", "ü"],
    hide: ["Stdlib.*"],
    ownCode: true,
    mine: ["Parser.*"],
    recursion: true,
    lines: true,
    unfolded: true,
    colour: "growth",
    order: "name",
    node: "c.1x2",
    range: { from: 0.25, to: 0.5 },
    search: "/a b/",
    treeDirection: "down",
    open: "1x2.3y4",
    by: "age",
    sort: "life",
    ascending: true,
    rows: "map",
    logHeights: true,
    leaksBy: "module",
    source: "src/cache.ml:42",
    before: { from: 0, to: 1 },
    after: { from: 1, to: 2 },
    of: "end",
    diffBy: "site",
    realOnly: true,
    diffSort: "after",
    diffShape: "flame",
    diffWidth: "before",
    per: "allocated",
    heap: "why",
    retainedBy: "kind",
    retainedSort: "own",
    at: "Cache.table > Hashtbl.t",
    kind: "closure Cache.*",
    heldBy: "/Cache/",
    through: "Global.env",
    site: "Parser.*",
    address: "0x8000",
    depth: "2",
    fleet: "trend",
    amount: "blocks",
    service: "shop & co",
    runs: "day >= '2026-11-01'",
    sitesOf: "module",
    from: "1.4",
    to: "1.5",
    runsBy: "host",
    sitesBy: "none",
    over: "day",
    seriesBy: "none",
  };
  for (const name of Object.keys(chosen) as (keyof State)[]) {
    assert.notDeepEqual(
      chosen[name],
      parseState("")[name],
      `${name} is to be tried with something else than its default`,
    );
  }
  assert.deepEqual(parseState(`#${printState(chosen)}`), chosen);
});

test("what an address has wrong is as by default", () => {
  const wrong = "#view=nothing&live=-3&window=5..1&zoom=a..b&sort=__proto__&live=x&before=0..Infinity&measure=";
  assert.deepEqual(parseState(wrong), parseState(""));
});

test("a moment can be a name or a time", () => {
  assert.equal(parseState("#live=end").live, "end");
  assert.equal(parseState("#live=0").live, 0);
  assert.equal(parseState("#live=").live, null, "the default of the view");
  assert.equal(momentOf(parseState("#view=table")), "peak");
  assert.equal(momentOf(parseState("#view=blocks")), "all");
});
