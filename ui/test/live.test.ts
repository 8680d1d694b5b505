import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { eventParser, type News } from "../src/api/events";
import { question } from "../src/api/question";
import type { Reply, Source } from "../src/api/source";
import { ask, shownEpoch, useSource } from "../src/state/answers";
import { scopeText } from "../src/state/describe";
import { followRecording, isRecording, mode, pause, resume } from "../src/state/live";
import { extended } from "../src/timeline/snap";

function news(epoch: number, recording = true): News {
  return { epoch, recording, duration: epoch, error: null };
}

test("events are parsed however the text is cut", () => {
  const text = `:\n\nevent: state\ndata: ${JSON.stringify(news(1))}\n\n:\n\nevent: state\ndata: ${JSON.stringify(news(2))}\n\n`;
  for (const size of [1, 2, 7, 1000]) {
    const found: News[] = [];
    const parse = eventParser((news) => found.push(news));
    for (let at = 0; at < text.length; at += size) parse(text.slice(at, at + size));
    assert.deepEqual(found, [news(1), news(2)]);
  }
});

test("windows that end with the trace grow with it", () => {
  const window = { from: 1, to: 5 };
  assert.deepEqual(extended(window, 5, 7), { from: 1, to: 7 });
  assert.deepEqual(extended({ from: 1, to: 4.9999999 }, 5, 7), { from: 1, to: 7 });
  assert.equal(extended(window, 6, 7), window);
  assert.equal(extended(window, 5, 5), window);
  assert.equal(extended(null, 5, 7), null);
});

test("the page goes along, pauses, and knows the end", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const streams: { hold: number | null; tell: (news: News) => void; signal: AbortSignal }[] = [];
  let newest = 1;
  const source: Source = {
    slices: null,
    holds: () => true,
    files: null,
    state: "",
    hasServer: true,
    compareWith: null,
    status: () => Promise.reject(new Error("nobody asks")),
    ask: async <T>(_: unknown, __?: AbortSignal, epoch?: number | null) =>
      ({ report: null as T, command: null, identity: "mine", epoch: epoch ?? newest }) satisfies Reply<T>,
    follow: (hold, tell, signal) => new Promise(() => streams.push({ hold, tell, signal })),
  };
  useSource(source);
  await ask(question("info"));
  assert.equal(shownEpoch(), 1);
  followRecording();
  assert.equal(mode.value, "live");
  const tell = (epoch: number, recording = true) => {
    newest = epoch;
    streams.at(-1)?.tell(news(epoch, recording));
  };
  tell(2);
  assert.equal(shownEpoch(), 2, "the first is shown at once");
  tell(3);
  mock.timers.tick(500);
  tell(4);
  assert.equal(shownEpoch(), 2, "but not two in a second");
  mock.timers.tick(500);
  assert.equal(shownEpoch(), 4);
  pause();
  assert.equal(mode.value, "paused");
  assert.ok(streams[0]?.signal.aborted);
  assert.equal(streams[1]?.hold, 4, "the server keeps what is shown");
  mock.timers.tick(5000);
  tell(9);
  mock.timers.tick(5000);
  assert.equal(shownEpoch(), 4);
  resume();
  assert.equal(streams[2]?.hold, null);
  tell(9);
  assert.equal(shownEpoch(), 9);
  assert.ok(isRecording());
  assert.equal(scopeText("end"), "Live now");
  tell(10, false);
  mock.timers.tick(1000);
  assert.equal(shownEpoch(), 10);
  assert.equal(mode.value, "ended");
  assert.ok(!isRecording());
  assert.equal(scopeText("end"), "Live at the end");
  mock.timers.reset();
});
