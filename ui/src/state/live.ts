// Follows a recording that still runs: the page goes on to the newest state, unless it is paused.

import { signal } from "@preact/signals";
import type { News } from "../api/events";
import { advanceTo, currentSource, isWaiting, shownEpoch } from "./answers";

/** The state of following: if the trace is being recorded, and the page goes along; `lost` if the server does not answer. */
export type Mode = "off" | "live" | "paused" | "ended" | "lost";

export const mode = signal<Mode>("off");

/** The newest state that the server has told of. */
export const news = signal<News | null>(null);

/** The page does not change more often. */
const REFRESH_MS = 1000;

const RETRY_MS = 2000;

let stream: AbortController | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
let refreshedAt = 0;

/** Starts following. */
export function followRecording(): void {
  mode.value = "live";
  void listen(null);
}

/** True while the trace is being recorded, whether the page goes along or not. */
export function isRecording(): boolean {
  return news.value?.recording ?? mode.value === "live";
}

export function pause(): void {
  if (mode.value !== "live") return;
  mode.value = "paused";
  // The server keeps what is shown as long as this stream is open.
  void listen(shownEpoch());
}

export function resume(): void {
  if (mode.value !== "paused") return;
  mode.value = "live";
  refreshedAt = 0;
  void listen(null);
}

export function togglePause(): void {
  if (mode.value === "paused") resume();
  else pause();
}

/** Listens until the recording has ended, again if the connection breaks. */
async function listen(hold: number | null): Promise<void> {
  stream?.abort();
  const abort = new AbortController();
  stream = abort;
  const wanted = mode.value;
  while (!abort.signal.aborted) {
    try {
      await currentSource().follow?.(hold, onNews, abort.signal);
      if (news.value?.recording === false) return;
    } catch {
      if (abort.signal.aborted) return;
      mode.value = "lost";
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    if (mode.value === "lost" && !abort.signal.aborted) mode.value = wanted;
  }
}

function onNews(state: News): void {
  news.value = state;
  goAlong();
}

/** Shows the newest state, but not too often, and not before all answers about the last one have arrived. */
function goAlong(): void {
  clearTimeout(timer);
  if (mode.value !== "live" || !news.value) return;
  if (news.value.epoch > shownEpoch()) {
    const wait = refreshedAt + REFRESH_MS - Date.now();
    if (wait > 0 || isWaiting()) {
      timer = setTimeout(goAlong, Math.max(wait, 50));
      return;
    }
    refreshedAt = Date.now();
    advanceTo(news.value.epoch);
  }
  if (!news.value.recording) mode.value = "ended";
}
