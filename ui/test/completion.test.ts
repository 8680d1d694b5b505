import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "../src/api/question";
import type { Source } from "../src/api/source";
import type { Completion } from "../src/api/types";
import { type Choices, Completer, insert } from "../src/filter/completion";
import { useSource } from "../src/state/answers";

interface Asked {
  address: string;
  signal: AbortSignal | undefined;
  answer: (report: Completion | null) => void;
}

/** A source that answers when it is told to; with an error, if the answer is null. */
function slowSource(): Asked[] {
  const asked: Asked[] = [];
  const source: Source = {
    slices: null,
    holds: () => true,
    files: null,
    state: "",
    hasServer: true,
    compareWith: null,
    follow: null,
    status: () => Promise.reject(new Error("nobody asks")),
    ask(question, signal) {
      return new Promise((resolve, reject) => {
        const answer = (report: Completion | null) =>
          report
            ? resolve({ report: report as never, command: null, identity: "", epoch: 0 })
            : reject(new Error("failed"));
        asked.push({ address: address(question), signal, answer });
      });
    },
  };
  useSource(source);
  return asked;
}

function completion(...texts: string[]): Completion {
  return { replace: [0, 1], items: texts.map((text) => ({ text, hint: "", name: null })), unmatched: [] };
}

test("an item replaces its part of the text, and one space follows", () => {
  const choices: Choices = { ...completion(), text: "lifet > 2s", replace: [0, 5] };
  assert.deepEqual(insert(choices, "lifetime"), { text: "lifetime > 2s", cursor: 9 });
  const end: Choices = { ...completion(), text: "live at", replace: [5, 7] };
  assert.deepEqual(insert(end, "in"), { text: "live in ", cursor: 8 });
});

test("the text and the cursor are sent, and the answer is shown", async () => {
  const asked = slowSource();
  const completer = new Completer();
  const shown: (Choices | null)[] = [];
  const done = completer.complete("s > 1", 1, (choices) => shown.push(choices));
  assert.equal(asked[0]?.address, "complete?cursor=1&text=s+%3E+1");
  assert.ok(completer.isWaiting);
  asked[0]?.answer(completion("size", "site"));
  await done;
  assert.ok(!completer.isWaiting);
  assert.deepEqual(shown, [{ ...completion("size", "site"), text: "s > 1" }]);
});

test("answers about an earlier text are dropped", async () => {
  const asked = slowSource();
  const completer = new Completer();
  const shown: (string | undefined)[] = [];
  const show = (choices: Choices | null) => shown.push(choices?.text);
  const both = [completer.complete("s", 1, show), completer.complete("si", 2, show)];
  assert.equal(asked[0]?.signal?.aborted, true);
  asked[1]?.answer(completion("size"));
  asked[0]?.answer(completion("samples"));
  await Promise.all(both);
  assert.deepEqual(shown, ["si"]);

  const last = completer.complete("siz", 3, show);
  completer.cancel();
  asked[2]?.answer(completion("size"));
  await last;
  assert.deepEqual(shown, ["si"]);
});

test("nothing is shown if nothing fits, or the server does not answer", async () => {
  const asked = slowSource();
  const completer = new Completer();
  const shown: (Choices | null)[] = [];
  for (const report of [completion(), null]) {
    const done = completer.complete("x", 1, (choices) => shown.push(choices));
    asked.at(-1)?.answer(report);
    await done;
  }
  assert.deepEqual(shown, [null, null]);
});
