import { readEvents } from "./events";
import { address, type Question } from "./question";
import type { Status } from "./server";
import { ApiError, type Reply, type Source } from "./source";

const TOKEN_KEY = "heapline-token";

/** Answers from a server, whose API is at `base`. */
export function httpSource(base: string): Source {
  const token = takeToken();
  const headers: HeadersInit = token ? { Authorization: `Bearer ${token}` } : {};
  const get = async <T>(
    path: string,
    signal?: AbortSignal,
    more: Record<string, string> = {},
  ): Promise<{ body: T; headers: Headers }> => {
    let response: Response;
    try {
      response = await fetch(base + path, { headers: { ...headers, ...more }, signal: signal ?? null });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError({
        code: "unreachable",
        message: "The server does not answer. Has `heapline view` been stopped?",
      });
    }
    const body: unknown = await response.json().catch(() => null);
    if (response.ok && body !== null) return { body: body as T, headers: response.headers };
    const error = (body as { error?: ApiError["body"] } | null)?.error;
    throw new ApiError(
      error ?? { code: "failed", message: `The server answered ${response.status} ${response.statusText}.` },
    );
  };
  return {
    slices: null,
    hasServer: true,
    status: async () => (await get<Status>("status")).body,
    async follow(hold, onNews, signal) {
      const response = await fetch(`${base}events${hold === null ? "" : `?hold=${hold}`}`, { headers, signal });
      await readEvents(response, onNews);
    },
    async ask<T>(question: Question, signal?: AbortSignal, epoch?: number | null): Promise<Reply<T>> {
      const more: Record<string, string> = epoch == null ? {} : { "Heapline-Epoch": String(epoch) };
      const { body, headers } = await get<T>(address(question), signal, more);
      return {
        report: body,
        // Encoded as the value of a query, because headers are ASCII.
        command: new URLSearchParams(`command=${headers.get("Heapline-Command") ?? ""}`).get("command") || null,
        identity: headers.get("Heapline-Trace") ?? "",
        epoch: Number(headers.get("Heapline-Epoch")),
      };
    },
  };
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
