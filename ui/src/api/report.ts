import { address, type Question } from "./question";
import type { Status } from "./server";
import { ApiError, type Reply, type Source } from "./source";

interface Report {
  version: number;
  status: Status;
  slices: number[];
  /** The state that the page opens in, unless its address has another. */
  state?: string;
  /** Answers that are likely to be needed at the same time: base64 of raw deflate of a JSON array. */
  groups: { questions: string[]; answers: string }[];
}

type Answer = Pick<Reply<unknown>, "command" | "report">;

/** Answers from the text that `heapline report` embeds in the page. */
export function reportSource(text: string): Source {
  const report = JSON.parse(text) as Report;
  if (report.version !== 3) {
    throw new ApiError({ code: "failed", message: `This page cannot read reports of version ${report.version}.` });
  }
  const groups = report.groups.map(({ questions, answers }) => ({ questions, answers: once(() => unpack(answers)) }));
  const places = new Map(
    groups.flatMap((group) => group.questions.map((question, place) => [question, { group, place }] as const)),
  );
  return {
    slices: report.slices,
    hasServer: false,
    follow: null,
    files: null,
    state: report.state ?? "",
    compareWith: null,
    status: async () => report.status,
    holds: (question) => places.has(address(question)),
    async ask<T>(question: Question): Promise<Reply<T>> {
      const found = places.get(address(question));
      if (found === undefined) {
        throw new ApiError({ code: "not_in_report", message: "Not available in a report file." });
      }
      const answer = (await found.group.answers())[found.place] as Pick<Reply<T>, "command" | "report">;
      return { ...answer, identity: report.status.identity ?? "", epoch: report.status.epoch };
    },
  };
}

/** A computation that is done when it is first needed. */
function once<T>(compute: () => T): () => T {
  let computed: { value: T } | null = null;
  return () => (computed ??= { value: compute() }).value;
}

async function unpack(packed: string): Promise<Answer[]> {
  return JSON.parse(await inflate(packed)) as Answer[];
}

async function inflate(base64: string): Promise<string> {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}
