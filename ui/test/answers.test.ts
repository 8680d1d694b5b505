import assert from "node:assert/strict";
import { test } from "node:test";
import { question, type Question } from "../src/api/question";
import type { Reply, Source } from "../src/api/source";
import { advanceTo, ask, generation, isWaiting, shownEpoch, useSource } from "../src/state/answers";

/** A source that answers when it is told to, and counts. */
function slowSource() {
  const asked: {
    resolve: (reply: Reply<unknown>) => void;
    signal: AbortSignal | undefined;
    epoch: number | null | undefined;
  }[] = [];
  const source: Source = {
    slices: null,
    holds: () => true,
    files: null,
    state: "",
    hasServer: true,
    compareWith: null,
    follow: null,
    status: () => Promise.reject(new Error("nobody asks")),
    ask<T>(_: unknown, signal?: AbortSignal, epoch?: number | null): Promise<Reply<T>> {
      return new Promise((resolve, reject) => {
        asked.push({ resolve: resolve as (reply: Reply<unknown>) => void, signal, epoch });
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
      });
    },
  };
  useSource(source);
  return asked;
}

function reply(report: string, epoch = 0, identity = "mine"): Reply<string> {
  return { report, command: null, identity, epoch };
}

test("the same question is asked once, by however many, and its answer kept", async () => {
  const asked = slowSource();
  const both = [ask(question("stats", { bins: 1 })), ask(question("stats", { bins: 1 }))];
  assert.equal(asked.length, 1);
  asked[0]?.resolve(reply("answer"));
  assert.deepEqual(await Promise.all(both), [reply("answer"), reply("answer")]);
  assert.deepEqual(await ask(question("stats", { bins: 1 })), reply("answer"));
  assert.equal(asked.length, 1);
});

test("a question is given up when the last asker gives up, and can be asked again", async () => {
  const asked = slowSource();
  const [one, two] = [new AbortController(), new AbortController()];
  const answers = [ask(question("stats", { bins: 2 }), one.signal), ask(question("stats", { bins: 2 }), two.signal)];
  one.abort();
  assert.equal(asked[0]?.signal?.aborted, false);
  two.abort();
  assert.equal(asked[0]?.signal?.aborted, true);
  for (const answer of answers) await assert.rejects(answer, /aborted/);
  const again = ask(question("stats", { bins: 2 }));
  assert.equal(asked.length, 2);
  asked[1]?.resolve(reply("late"));
  assert.deepEqual(await again, reply("late"));
});

test("an answer about another trace is an error", async () => {
  const asked = slowSource();
  const answers = [ask(question("stats", { bins: 3 })), ask(question("stats", { bins: 4 }))];
  asked[0]?.resolve(reply("answer"));
  asked[1]?.resolve(reply("answer", 1, "other"));
  assert.deepEqual(await answers[0], reply("answer"));
  await assert.rejects(answers[1] as Promise<unknown>, /another trace/);
});

test("answers of an older state are dropped when a newer one arrives", async () => {
  const asked = slowSource();
  const [one, two, three] = [1, 2, 3].map((bins) => question("stats", { bins })) as [Question, Question, Question];
  const before = generation.value;
  const [first, late] = [ask(one), ask(two)];
  asked[0]?.resolve(reply("old", 4));
  assert.deepEqual(await first, reply("old", 4));
  assert.equal(generation.value, before, "there was nothing to drop");

  const newer = ask(three);
  asked[2]?.resolve(reply("new", 5));
  assert.deepEqual(await newer, reply("new", 5));
  assert.equal(generation.value, before + 1);
  const again = ask(one);
  assert.equal(asked.length, 4, "what was kept is asked again");
  asked[3]?.resolve(reply("new", 5));
  assert.deepEqual(await again, reply("new", 5));

  asked[1]?.resolve(reply("old", 4));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(asked.length, 5, "what was on its way is asked again");
  asked[4]?.resolve(reply("new", 5));
  assert.deepEqual(await late, reply("new", 5));
  assert.equal(generation.value, before + 1);
});

test("a server that goes back to an older state is not believed", async () => {
  const asked = slowSource();
  const first = ask(question("stats", { bins: 1 }));
  asked[0]?.resolve(reply("new", 2));
  await first;
  const second = ask(question("stats", { bins: 2 }));
  asked[1]?.resolve(reply("old", 1));
  await assert.rejects(second, /another trace/);
  assert.equal(asked.length, 2);
});

test("all questions are about the epoch that is shown, until the page goes on to another", async () => {
  const asked = slowSource();
  assert.equal(shownEpoch(), -1);
  const first = ask(question("stats", { bins: 30 }));
  assert.equal(asked[0]?.epoch, undefined);
  assert.ok(isWaiting());
  asked[0]?.resolve(reply("first", 4));
  await first;
  assert.ok(!isWaiting());
  assert.equal(shownEpoch(), 4);
  ask(question("stats", { bins: 31 })).catch(() => {});
  assert.equal(asked[1]?.epoch, 4);
  const before = generation.value;
  advanceTo(4);
  assert.equal(generation.value, before, "it is shown already");
  advanceTo(6);
  assert.equal(generation.value, before + 1);
  ask(question("stats", { bins: 30 })).catch(() => {});
  assert.equal(asked[2]?.epoch, 6, "what was kept is asked again");
});
