// The mark in the header of a trace that is being recorded, with pause and resume.

import type { JSX } from "preact";
import type { Info } from "./api/types";
import { seconds } from "./format";
import { mode, news, togglePause } from "./state/live";
import { tipOn } from "./widgets/tip";

export function LiveMark({ info }: { info: Info }): JSX.Element | null {
  const state = mode.value;
  const behind = (news.value?.duration ?? 0) - info.duration;
  switch (state) {
    case "off":
      return null;
    case "live":
      return (
        <button
          type="button"
          class="badge live-mark is-live"
          aria-pressed={false}
          onClick={togglePause}
          {...tipOn(
            <div class="tip-text">The program is being recorded, and the page follows it. Click to pause.</div>,
          )}
        >
          <i class="live-dot" /> live
        </button>
      );
    case "paused":
      return (
        <button
          type="button"
          class="badge live-mark is-warning"
          aria-pressed={true}
          onClick={togglePause}
          {...tipOn(<div class="tip-text">The page shows one moment. Click to go on to the newest state.</div>)}
        >
          paused{behind > 0.5 ? `, ${seconds(behind)} behind` : ""} · resume
        </button>
      );
    case "ended":
      return (
        <span
          class="badge live-mark"
          {...tipOn(<div class="tip-text">{news.value?.error ?? "The trace is complete."}</div>)}
        >
          {news.value?.error ? "no longer live" : "recording ended"}
        </span>
      );
    case "lost":
      return (
        <span
          class="badge live-mark is-warning"
          {...tipOn(<div class="tip-text">The server does not answer. Has Heapline been stopped?</div>)}
        >
          connection lost
        </span>
      );
  }
}
