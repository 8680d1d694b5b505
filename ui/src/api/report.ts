import { address, type Question } from "./question";
import type { Status } from "./server";
import { ApiError, type Reply, type Source } from "./source";

interface Report {
  version: number;
  status: Status;
  slices: number[];
  /** By URL; each is base64 of raw deflate of JSON, so that answers are only unpacked when needed. */
  answers: Record<string, string>;
}

/** Answers from the text that `heapline report` embeds in the page. */
export function reportSource(text: string): Source {
  const report = JSON.parse(text) as Report;
  if (report.version !== 2) {
    throw new ApiError({ code: "failed", message: `This page cannot read reports of version ${report.version}.` });
  }
  return {
    slices: report.slices,
    hasServer: false,
    follow: null,
    status: async () => report.status,
    async ask<T>(question: Question): Promise<Reply<T>> {
      const packed = report.answers[address(question)];
      if (packed === undefined) {
        throw new ApiError({ code: "not_in_report", message: "Not available in a report file." });
      }
      const answer = JSON.parse(await inflate(packed)) as Pick<Reply<T>, "command" | "report">;
      return { ...answer, identity: report.status.identity ?? "", epoch: report.status.epoch };
    },
  };
}

async function inflate(base64: string): Promise<string> {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}
