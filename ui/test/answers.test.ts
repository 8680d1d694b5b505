import assert from "node:assert/strict";
import { test } from "node:test";
import { question } from "../src/api/question";
import type { Source } from "../src/api/source";
import { ask, useSource } from "../src/state/answers";

/** A source that answers when it is told to, and counts. */
function slowSource() {
  const asked: { resolve: (answer: unknown) => void; signal: AbortSignal | undefined }[] = [];
  const source: Source = {
    slices: null,
    hasServer: true,
    ask<T>(_: unknown, signal?: AbortSignal): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        asked.push({ resolve: resolve as (answer: unknown) => void, signal });
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
      });
    },
  };
  useSource(source);
  return asked;
}

test("the same question is asked once, by however many, and its answer kept", async () => {
  const asked = slowSource();
  const both = [ask(question("stats", { bins: 1 })), ask(question("stats", { bins: 1 }))];
  assert.equal(asked.length, 1);
  asked[0]?.resolve("answer");
  assert.deepEqual(await Promise.all(both), ["answer", "answer"]);
  assert.equal(await ask(question("stats", { bins: 1 })), "answer");
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
  asked[1]?.resolve("late");
  assert.equal(await again, "late");
});
