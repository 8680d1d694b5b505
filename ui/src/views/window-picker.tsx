// A strip of the timeline to select a time window.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Series } from "../api/types";
import type { Span } from "../state/codec";
import { spanText } from "../timeline/scale";
import { snapped } from "../timeline/snap";
import { useSize } from "../widgets/size";

const HEIGHT = 46;

export function WindowPicker(props: {
  name: string;
  series: Series | null;
  duration: number;
  window: Span | null;
  slices: readonly number[] | null;
  onPick: (window: Span) => void;
}): JSX.Element {
  const { series, duration } = props;
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box);
  const [drag, setDrag] = useState<Span | null>(null);
  const start = useRef<number | null>(null);
  const most = Math.max(...(series?.total.high ?? []), 1);
  const x = (t: number) => (duration > 0 ? (t / duration) * width : 0);
  const path = series?.times
    .map((t, i) => `L${x(t).toFixed(1)} ${(HEIGHT - ((series.total.high[i] ?? 0) / most) * (HEIGHT - 4)).toFixed(1)}`)
    .join("");
  const timeAt = (event: PointerEvent) => {
    const { left } = (box.current as HTMLDivElement).getBoundingClientRect();
    return Math.min(duration, Math.max(0, ((event.clientX - left) / (width || 1)) * duration));
  };
  const shown = drag ?? props.window;
  return (
    <div class="picker">
      <div class="picker-head">
        <b>{props.name}</b>{" "}
        <span class="muted">{shown ? spanText(shown.from, shown.to) : "drag to choose a window"}</span>
      </div>
      <div
        class="picker-plot"
        ref={box}
        onPointerDown={(event) => {
          start.current = timeAt(event);
          (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          if (start.current === null) return;
          const t = timeAt(event);
          setDrag(snapped({ from: Math.min(start.current, t), to: Math.max(start.current, t) }, props.slices));
        }}
        onPointerUp={() => {
          start.current = null;
          if (drag && x(drag.to) - x(drag.from) > 3) props.onPick(drag);
          setDrag(null);
        }}
      >
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`${props.name}: ${shown ? spanText(shown.from, shown.to) : "no window"}`}
        >
          <path class="picker-area" d={`M0 ${HEIGHT}${path ?? ""}L${width} ${HEIGHT}Z`} />
          {shown && (
            <rect
              class="picker-window"
              x={x(shown.from)}
              width={Math.max(2, x(shown.to) - x(shown.from))}
              height={HEIGHT}
            />
          )}
        </svg>
      </div>
    </div>
  );
}
