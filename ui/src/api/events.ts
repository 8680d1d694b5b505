// The server's stream of events: the state of a trace that is being recorded.

/** The newest state of the trace. */
export interface News {
  epoch: number;
  recording: boolean;
  /** Seconds from the start to the last event. */
  duration: number;
  /** Why the trace is not followed any more, if that is not its end. */
  error: string | null;
}

/** Parses the text of server-sent events as it arrives. Comments, which keep the connection open, are skipped. */
export function eventParser(onNews: (news: News) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    const events = (rest + text).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) onNews(JSON.parse(data.slice("data: ".length)) as News);
    }
  };
}

/** Reads a response until it ends or is aborted. */
export async function readEvents(response: Response, onNews: (news: News) => void): Promise<void> {
  if (!response.ok || !response.body) throw new Error(`The server answered ${response.status}.`);
  const parse = eventParser(onNews);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) parse(value ?? "");
}
