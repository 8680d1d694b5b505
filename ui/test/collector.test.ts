import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gc, WorstPause } from "../src/api/types";
import { choosePause, isChosen, pauseSpan } from "../src/collector/choose";
import { bandTop, intervalOf, marked, partsOf } from "../src/collector/draw";
import { heapPoints } from "../src/collector/heap";
import { countsText, headlineText, lossTexts, piecesText, stopsText, wordsNote } from "../src/collector/text";
import { address } from "../src/api/question";
import { bandQuestion, collectorQuestion } from "../src/state/questions";
import { parseState, type State } from "../src/state/state";

const decoded = (text: string) => decodeURIComponent(text.replaceAll("+", " "));
const MIB = 2 ** 20;

function pause(start: number, length: number, change: Partial<WorstPause> = {}): WorstPause {
  return {
    start,
    length,
    domain: 0,
    causes: [],
    pieces: [{ kind: "minor", phase: null, start, length }],
    hidden_pieces: 0,
    promoted_words: 1000,
    allocated_words: 2000,
    direct_words: 0,
    heap_words: 5000,
    stop: null,
    promoted: null,
    ...change,
  };
}

function report(change: Partial<Gc> = {}): Gc {
  const lengths = { count: 3, total: 0.3, mean: 0.1, p50: 0.1, p90: 0.15, p99: 0.15, p99_9: 0.15, max: 0.15 };
  return {
    subject: { duration: 10, word_bytes: 8 },
    from: 0,
    to: 10,
    collector: { seconds: 0.3, of_seconds: 10, percent: 3 },
    kinds: [{ kind: "minor", ...lengths }],
    pauses: lengths,
    domains: [],
    stops: null,
    words: {
      allocated: 10 * MIB,
      minor: 10 * MIB,
      promoted: 5 * MIB,
      direct: 0,
      promoted_percent: 50,
      from: 0,
      to: 10,
      is_complete: true,
    },
    counts: { minor_collections: 3, major_collections: 1, compactions: 0, forced_major_collections: 2 },
    heap: null,
    audit: null,
    worst: [],
    hidden_rows: 0,
    series: {
      times: [5, 10],
      collector_percent: [4, 2],
      kinds: [
        { kind: "slice", percent: [1, 0] },
        { kind: "minor", percent: [3, 2] },
      ],
      longest_pause: [0.1, 0.15],
      minor_collections: [1, 1],
      minor_words: null,
      direct_words: null,
      promoted_words: null,
      heap_words: [null, 2000],
      free_words: [null, 500],
    },
    missing_collections: 0,
    refused_collections: 0,
    ...change,
  } as Gc;
}

test("the sentences on the collector are those of the terminal", () => {
  const gc = report();
  assert.equal(headlineText(gc), "3.0 % of the time, longest pause 150 ms, 4 MiB/s promoted");
  assert.equal(
    countsText(gc),
    "3 minor collections, 1 major collection, 2 forced in 10 s. Times and counts are exact.",
  );
  assert.equal(countsText(report({ counts: null, from: 1, to: 2 })), "3 pauses from 1 s to 2 s.");
  assert.equal(wordsNote(gc), "Counted by the runtime, so they are exact.");
  assert.match(wordsNote(report({ words: null })), /unknown/);
  assert.deepEqual(lossTexts(gc), []);
  assert.match(lossTexts(report({ missing_collections: 1 }))[0] ?? "", /^1 minor collection that the runtime counted/);
  assert.equal(lossTexts(report({ missing_collections: null, refused_collections: 2 })).length, 1);
  assert.equal(stopsText(gc), null);
});

test("the pieces of a pause have their lengths if there are several", () => {
  assert.equal(piecesText(pause(1, 0.002)), "minor collection");
  const pieces: WorstPause["pieces"] = [
    { kind: "minor", phase: null, start: 1, length: 0.002 },
    { kind: "slice", phase: "idle", start: 1.002, length: 0.001 },
    { kind: "slice", phase: "mark", start: 1.003, length: 0.001 },
    { kind: "finalisers", phase: null, start: 1.004, length: 0.001 },
  ];
  assert.equal(
    piecesText(pause(1, 0.005, { pieces, hidden_pieces: 2 })),
    "minor collection 2 ms, major slice (begin) 1 ms, major slice (mark) 1 ms, and 3 more",
  );
});

test("the band has a scale of its own, but a small share looks small", () => {
  const top = (...shares: number[]) =>
    bandTop({ from: 0, series: { ...report().series, collector_percent: shares } } as Gc);
  assert.deepEqual([top(0.1), top(5), top(5.1, 3), top(60), top()], [5, 5, 10, 100, 5]);
});

test("the parts of an interval are in the order of the band, and not more than all of it", () => {
  const gc = report();
  assert.deepEqual(partsOf(gc, 0), [
    { kind: "minor", percent: 3 },
    { kind: "slice", percent: 1 },
  ]);
  assert.deepEqual(partsOf(gc, 1), [{ kind: "minor", percent: 2 }]);
  const series = { ...gc.series, collector_percent: [2, 2] };
  assert.deepEqual(partsOf({ ...gc, series }, 0), [
    { kind: "minor", percent: 1.5 },
    { kind: "slice", percent: 0.5 },
  ]);
  assert.deepEqual(
    [intervalOf(gc, 0), intervalOf(gc, 1)],
    [
      { from: 0, to: 5 },
      { from: 5, to: 10 },
    ],
  );
});

test("the longest pauses within the zoomed part are marked in the order of time", () => {
  const worst = [pause(5, 3), pause(1, 2), pause(9.5, 1)];
  const starts = (from: number, to: number) =>
    marked(worst, { range: { from, to }, width: 1000 }, () => false).map(({ start }) => start);
  assert.deepEqual(starts(0, 20), [1, 5, 9.5]);
  assert.deepEqual(starts(2, 9), [1, 5]);
  const many = Array.from({ length: 30 }, (_, k) => pause(k, 1));
  assert.equal(marked(many, { range: { from: 0, to: 100 }, width: 3000 }, () => false).length, 10);
});

test("a mark covers no other: shorter pauses at the same place have none, unless one is chosen", () => {
  const worst = [pause(1, 0.03), pause(1.01, 0.02), pause(1.02, 0.01), pause(3, 0.01)];
  const frame = { range: { from: 0, to: 10 }, width: 500 };
  const starts = (chosen: number) => marked(worst, frame, ({ start }) => start === chosen).map(({ start }) => start);
  assert.deepEqual(starts(-1), [1, 3]);
  assert.deepEqual(starts(1.02), [1.02, 3]);
});

test("a pause is selected in whole microseconds, and deselected again", () => {
  const one = pause(1.0000021, 0.0000031);
  assert.deepEqual(pauseSpan(one), { from: 1.000002, to: 1.000006 });
  assert.deepEqual(pauseSpan(pause(2, 0)), { from: 2, to: 2.000001 });
  const now = parseState("");
  const change = choosePause(now, one, null);
  assert.deepEqual(change, { window: { from: 1.000002, to: 1.000006 }, windowOf: "live", pause: "1.000002" });
  const after: State = { ...now, ...change };
  assert.ok(isChosen(after, one) && !isChosen(after, pause(2, 0)));
  assert.deepEqual(choosePause(after, one, null), { window: null, windowOf: "allocated", pause: "" });
  // Another window is that of no pause.
  assert.ok(!isChosen({ ...after, window: { from: 1, to: 2 } }, pause(1, 1)));
});

test("a pause in a report file selects the slice that it is in, if there is one", () => {
  const now = parseState("");
  assert.deepEqual(choosePause(now, pause(4.2, 0.1), [0, 5, 10]), { window: { from: 0, to: 5 } });
  assert.equal(choosePause(now, pause(4.2, 0.1), []), null);
});

test("the collector follows a brushed window, but not that of a pause, which would be the only one", () => {
  const text = (state: State) => decoded(address(collectorQuestion(state)));
  const brushed = parseState("#window=1..2&where=size+>+1");
  assert.match(text(brushed), /window=1s\.\.2s/);
  assert.match(text(brushed), /where=size > 1/);
  assert.doesNotMatch(text(brushed), /allocated in/);
  assert.doesNotMatch(text({ ...brushed, pause: "1" }), /window=/);
  const zoomed = parseState("#zoom=3..4&window=1..2");
  assert.match(decoded(address(bandQuestion(zoomed))), /window=3s\.\.4s/);
  // Without a window, the band and the view ask for the same.
  const plain = parseState("");
  assert.equal(address(bandQuestion(plain)), address(collectorQuestion(plain)));
});

test("the heap is drawn from where its size is known", () => {
  assert.deepEqual(heapPoints(report()), [{ time: 10, heap: 16000, used: 12000 }]);
});
