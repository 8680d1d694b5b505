// The size of the major heap over time.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Gc } from "../api/types";
import { bytes, percent, seconds } from "../format";
import { indexAt } from "../timeline/draw";
import { tickTime, timeTicks, valueTicks } from "../timeline/scale";
import { useSize } from "../widgets/size";
import { hideTip, showTip } from "../widgets/tip";

const HEIGHT = 170;
const MARGIN = { left: 62, right: 12, top: 8, bottom: 24 };

/** A point of the curve, in bytes. */
export interface HeapPoint {
  time: number;
  heap: number;
  used: number;
}

/** The points at which the size is known. */
export function heapPoints({ series, subject }: Pick<Gc, "series" | "subject">): HeapPoint[] {
  return series.times.flatMap((time, k) => {
    const heap = series.heap_words?.[k] ?? null;
    const free = series.free_words?.[k] ?? 0;
    return heap === null ? [] : [{ time, heap: heap * subject.word_bytes, used: (heap - free) * subject.word_bytes }];
  });
}

/** The heap, and the part of it that is in use. */
export function HeapChart({ data }: { data: Gc }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box);
  const [at, setAt] = useState<number | null>(null);
  const points = heapPoints(data);
  const plotWidth = Math.max(0, width - MARGIN.left - MARGIN.right);
  const plotHeight = HEIGHT - MARGIN.top - MARGIN.bottom;
  const most = Math.max(1, ...points.map(({ heap }) => heap));
  const length = data.to - data.from;
  const x = (time: number) => (length > 0 ? ((time - data.from) / length) * plotWidth : 0);
  const y = (value: number) => (1 - value / most) * plotHeight;
  const line = (value: (point: HeapPoint) => number) =>
    points
      .map((point, k) => `${k === 0 ? "M" : "L"}${x(point.time).toFixed(1)} ${y(value(point)).toFixed(1)}`)
      .join("");
  const area = (path: string) =>
    `${path}L${x(points.at(-1)?.time ?? 0).toFixed(1)} ${plotHeight}L${x(points[0]?.time ?? 0).toFixed(1)} ${plotHeight}Z`;
  const heap = line((point) => point.heap);
  const used = line((point) => point.used);
  const times = timeTicks(data.from, data.to, Math.max(2, Math.floor(plotWidth / 90)));
  const step = (times[1] ?? 1) - (times[0] ?? 0);
  const onMove = (event: MouseEvent) => {
    const { left } = (event.currentTarget as SVGElement).getBoundingClientRect();
    const time = data.from + ((event.clientX - left - MARGIN.left) / (plotWidth || 1)) * length;
    const index = indexAt(
      points.map((point) => point.time),
      time,
    );
    const point = points[index];
    if (!point) return;
    setAt(index);
    showTip(
      event.clientX,
      event.clientY,
      <div>
        <strong>{bytes(point.heap)}</strong> at {seconds(point.time)}
        <div class="muted">
          {bytes(point.used)} in use, {percent(point.heap - point.used, point.heap)} free
        </div>
      </div>,
    );
  };
  const pointed = at === null ? undefined : points[at];
  return (
    <div class="chart" ref={box}>
      <svg
        width={width}
        height={HEIGHT}
        role="img"
        aria-label="Size of the major heap over time"
        onMouseMove={onMove}
        onMouseLeave={() => {
          setAt(null);
          hideTip();
        }}
      >
        <g transform={`translate(${MARGIN.left} ${MARGIN.top})`}>
          {valueTicks("live-bytes", most, 4).map((tick) => (
            <g key={tick}>
              <line class="grid-line" x2={plotWidth} y1={y(tick)} y2={y(tick)} />
              <text class="axis" x={-8} y={y(tick)} text-anchor="end" dominant-baseline="middle">
                {tick === 0 ? "0" : bytes(tick)}
              </text>
            </g>
          ))}
          {times.map((time) => (
            <text key={time} class="axis" x={x(time)} y={plotHeight + 16} text-anchor="middle">
              {tickTime(time, step)}
            </text>
          ))}
          {points.length > 0 && (
            <>
              <path class="heap-area" d={area(heap)} />
              <path class="heap-used" d={area(used)} />
              <path class="heap-line" d={heap} />
            </>
          )}
          <line class="axis-line" x2={plotWidth} y1={plotHeight} y2={plotHeight} />
          {pointed && <circle class="curve-point" cx={x(pointed.time)} cy={y(pointed.heap)} r={3.5} />}
        </g>
      </svg>
    </div>
  );
}
