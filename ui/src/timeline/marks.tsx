import type { JSX } from "preact";
import { bytes, seconds } from "../format";
import type { Span } from "../state/codec";
import { state, update } from "../state/state";
import { tipOn } from "../widgets/tip";
import { xOf } from "./draw";

/** Room for the word "end", and for half of the word "peak". */
const END_WIDTH = 38;
const MARK_HALF = 20;

/** The peak and the end, to be chosen; and the moment that was chosen. */
export function Marks(props: {
  frame: { range: Span; width: number };
  peak: { time: number; bytes: number };
  duration: number;
}): JSX.Element {
  const { live } = state.value;
  const { frame, peak, duration } = props;
  const marks: { name: string; text: string; time: number; isOn: boolean; run: () => void; help: string }[] = [
    {
      name: "peak",
      text: "peak",
      time: peak.time,
      isOn: live === "peak",
      run: () => update({ live: "peak" }),
      help: `The peak: ${bytes(peak.bytes)} alive ${seconds(peak.time)} after the start. Click to see what that was.`,
    },
    {
      name: "end",
      text: "end",
      time: duration,
      isOn: live === "end",
      run: () => update({ live: "end" }),
      help: "What was alive when the trace ended. Click to see what that was.",
    },
  ];
  if (typeof live === "number") {
    const time = live;
    marks.push({
      name: "pin",
      text: seconds(time),
      time,
      isOn: true,
      run: () => update({ live: "peak" }),
      help: "The views show what was alive at this moment. Click to go back to the peak.",
    });
  }
  return (
    <>
      {marks
        .filter(({ time }) => time >= frame.range.from && time <= frame.range.to * (1 + 1e-9))
        .map((mark) => {
          // The end has its place at the right edge; a peak that is there too stands beside it.
          const edge = mark.name === "end" ? frame.width : frame.width - END_WIDTH;
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
