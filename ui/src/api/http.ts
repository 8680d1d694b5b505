import { readEvents } from "./events";
import { address, type Question } from "./question";
import type { Status } from "./server";
import { ApiError, type Reply, type Source } from "./source";

const TOKEN_KEY = "heapline-token";

/** Answers from a server, whose API is at `base`. */
export function httpSource(base: string): Source {
  const token = takeToken();
  const headers: HeadersInit = token ? { Authorization: `Bearer ${token}` } : {};
  /** Sends a request and gives the response if it is not an error. */
  const send = async (path: string, more: Record<string, string> = {}, init: RequestInit = {}): Promise<Response> => {
    let response: Response;
    try {
      response = await fetch(base + path, { ...init, headers: { ...headers, ...more } });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError({
        code: "unreachable",
        message: "The server does not answer. Has `heapline view` been stopped?",
      });
    }
    if (response.ok) return response;
    const body: unknown = await response.json().catch(() => null);
    const error = (body as { error?: ApiError["body"] } | null)?.error;
    throw new ApiError(
      error ?? { code: "failed", message: `The server answered ${response.status} ${response.statusText}.` },
    );
  };
  const get = async <T>(path: string, signal?: AbortSignal, more: Record<string, string> = {}) => {
    const response = await send(path, more, { signal: signal ?? null });
    const body: unknown = await response.json().catch(() => null);
    if (body !== null) return { body: body as T, headers: response.headers };
    throw new ApiError({ code: "failed", message: "The server sent half an answer." });
  };
  return {
    slices: null,
    hasServer: true,
    holds: () => true,
    state: "",
    status: async () => (await get<Status>("status")).body,
    async follow(hold, onNews, signal) {
      const response = await fetch(`${base}events${hold === null ? "" : `?hold=${hold}`}`, { headers, signal });
      await readEvents(response, onNews);
    },
    files: {
      async get(path, epoch) {
        const response = await send(path, { "Heapline-Epoch": String(epoch) });
        const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1];
        return { name: name ?? "heapline", content: await response.blob() };
      },
      async command(path, epoch) {
        const response = await send(path, { "Heapline-Epoch": String(epoch) }, { method: "HEAD" });
        return commandIn(response.headers);
      },
    },
    async compareWith(file) {
      await send(`against?${new URLSearchParams({ name: file.name })}`, {}, { method: "POST", body: file });
    },
    async ask<T>(question: Question, signal?: AbortSignal, epoch?: number | null): Promise<Reply<T>> {
      const more: Record<string, string> = epoch == null ? {} : { "Heapline-Epoch": String(epoch) };
      const { body, headers } = await get<T>(address(question), signal, more);
      return {
        report: body,
        command: commandIn(headers),
        identity: headers.get("Heapline-Trace") ?? "",
        epoch: Number(headers.get("Heapline-Epoch")),
      };
    },
  };
}

/** The command in the headers of a response: encoded as the value of a query, because headers are ASCII. */
function commandIn(headers: Headers): string | null {
  return new URLSearchParams(`command=${headers.get("Heapline-Command") ?? ""}`).get("command") || null;
}

/** Takes the token out of the URL, so that it is not shared with a link. */
function takeToken(): string | null {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const token = parameters.get("token");
  if (token === null) return sessionStorage.getItem(TOKEN_KEY);
  sessionStorage.setItem(TOKEN_KEY, token);
  parameters.delete("token");
  const rest = parameters.toString();
  history.replaceState(null, "", rest === "" ? location.pathname + location.search : `#${rest}`);
  return token;
}
