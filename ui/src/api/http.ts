import { address } from "./question";
import { ApiError, type Source } from "./source";

const TOKEN_KEY = "heapline-token";

/** Answers from a server, whose API is at `base`. */
export function httpSource(base: string): Source {
  const token = takeToken();
  const headers: HeadersInit = token ? { Authorization: `Bearer ${token}` } : {};
  // The identity of the trace, from the first answer on.
  let identity: string | null = null;
  return {
    slices: null,
    hasServer: true,
    async ask<T>(question: Parameters<Source["ask"]>[0], signal?: AbortSignal): Promise<T> {
      let response: Response;
      try {
        response = await fetch(base + address(question), { headers, signal: signal ?? null });
      } catch (error) {
        if (signal?.aborted) throw error;
        throw new ApiError({
          code: "unreachable",
          message: "The server does not respond. Is `heapline view` still running?",
        });
      }
      const shown = response.headers.get("Heapline-Trace");
      identity ??= shown;
      if (shown !== null && shown !== identity) {
        throw new ApiError({
          code: "other_trace",
          message: "The server shows another trace now. Reload the page to see it.",
        });
      }
      const body: unknown = await response.json().catch(() => null);
      if (response.ok && body !== null) return body as T;
      const error = (body as { error?: ApiError["body"] } | null)?.error;
      throw new ApiError(
        error ?? { code: "failed", message: `The server answered ${response.status} ${response.statusText}.` },
      );
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
