import type { JSX } from "preact";
import { bytes, seconds } from "../format";
import type { Span } from "../state/codec";
import { isRecording } from "../state/live";
import { chooseScope, shownScope } from "../state/scope";
import { traceFacts } from "../state/session";
import { state, update } from "../state/state";
import { notify } from "../widgets/controls";
import { tipOn } from "../widgets/tip";
import { xOf } from "./draw";

/** Space for the words "end" and "now", and for half of the word "peak". */
const END_WIDTH = 38;
const NOW_WIDTH = 44;
const MARK_HALF = 20;

/** The flags of peak and end, and of the selected point in time. */
export function Marks(props: {
  frame: { range: Span; width: number };
  peak: { time: number; bytes: number };
  duration: number;
  /** True if two windows are compared, so that no point in time is chosen. */
  isCompared: boolean;
}): JSX.Element {
  const live = props.isCompared ? "all" : shownScope(state.value);
  const choose = (tile: "peak" | "end") => {
    const change = chooseScope(state.value, tile, traceFacts());
    if (typeof change === "string") notify(change);
    else update(change);
  };
  const { frame, peak, duration } = props;
  const marks: { name: string; text: string; time: number; isOn: boolean; run: () => void; help: string }[] = [
    {
      name: "peak",
      text: "peak",
      time: peak.time,
      isOn: live === "peak",
      run: () => choose("peak"),
      help: `The peak: ${bytes(peak.bytes)} alive ${seconds(peak.time)} after the start. Click to select it.`,
    },
    {
      name: "end",
      text: isRecording() ? "now" : "end",
      time: duration,
      isOn: live === "end",
      run: () => choose("end"),
      help: `Memory live ${isRecording() ? "now" : "at the end of the trace"}. Click to select it.`,
    },
  ];
  if (typeof live === "number") {
    const time = live;
    marks.push({
      name: "pin",
      text: seconds(time),
      time,
      isOn: true,
      run: () => update({ live: null }),
      help: "The views show memory live at this time. Click to deselect it.",
    });
  }
  return (
    <>
      {marks
        .filter(({ time }) => time >= frame.range.from && time <= frame.range.to * (1 + 1e-9))
        .map((mark) => {
          // The end is at the right edge; a peak that is there too is placed beside it.
          const edge = mark.name === "end" ? frame.width : frame.width - (isRecording() ? NOW_WIDTH : END_WIDTH);
          const x = Math.max(MARK_HALF, Math.min(xOf(frame, mark.time), edge));
          const side = x >= edge ? "is-left" : "";
          return (
            <button
              key={mark.name}
              type="button"
              class={`timeline-mark ${mark.isOn ? "is-on" : ""} ${side}`}
              style={{ left: `${x}px` }}
              aria-pressed={mark.isOn}
              onClick={mark.run}
              {...tipOn(<div class="tip-text">{mark.help}</div>)}
            >
              {mark.text}
            </button>
          );
        })}
    </>
  );
}
