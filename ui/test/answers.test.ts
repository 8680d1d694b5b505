import assert from "node:assert/strict";
import { test } from "node:test";
import { question } from "../src/api/question";
import type { Reply, Source } from "../src/api/source";
import { ask, useSource } from "../src/state/answers";

/** A source that answers when it is told to, and counts. */
function slowSource() {
  const asked: { resolve: (reply: Reply<unknown>) => void; signal: AbortSignal | undefined }[] = [];
  const source: Source = {
    slices: null,
    hasServer: true,
    status: () => Promise.reject(new Error("nobody asks")),
    ask<T>(_: unknown, signal?: AbortSignal): Promise<Reply<T>> {
      return new Promise((resolve, reject) => {
        asked.push({ resolve: resolve as (reply: Reply<unknown>) => void, signal });
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
      });
    },
  };
  useSource(source);
  return asked;
}

function reply(report: string, identity = "mine"): Reply<string> {
  return { report, command: null, identity, epoch: 0 };
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
  asked[1]?.resolve(reply("answer", "other"));
  assert.deepEqual(await answers[0], reply("answer"));
  await assert.rejects(answers[1] as Promise<unknown>, /another trace/);
});
