// Allocations over time by lifetime. Clicking a cell or dragging over several sets a filter.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Heatmap } from "../api/types";
import { bytes, countShort, queryTime, seconds } from "../format";
import { withClause } from "../state/patterns";
import { state, update } from "../state/state";
import { timeTicks, tickTime } from "../timeline/scale";
import { useSize } from "../widgets/size";
import { hideTip, showTip } from "../widgets/tip";
import { endText } from "../state/describe";

const LEFT = 84;
const BOTTOM = 24;
const CELL = 15;
const GAP = 6;

interface Cell {
  time: number;
  /** The index after the last age means: live at the end. */
  age: number;
}

export function HeatmapChart({ data, hasServer }: { data: Heatmap; hasServer: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box);
  const [drag, setDrag] = useState<{ from: Cell; to: Cell } | null>(null);
  const unit = state.value.unit;
  const values = unit === "bytes" ? data.bytes : data.blocks;
  const alive = unit === "bytes" ? data.alive_bytes : data.alive_blocks;
  const times = data.times.length - 1;
  const ages = data.ages.length - 1;
  const plotWidth = Math.max(0, width - LEFT - 10);
  const cellWidth = plotWidth / Math.max(1, times);
  const height = (ages + 1) * CELL + GAP;
  const most = Math.max(1, ...values.map((column) => Math.max(...column, 0)), ...alive);
  const row = (age: number) => (age === ages ? 0 : GAP + (ages - age) * CELL);
  const valueAt = (cell: Cell) => (cell.age === ages ? alive[cell.time] : values[cell.time]?.[cell.age]) ?? 0;

  const cellAt = (event: MouseEvent): Cell | null => {
    const { left, top } = (box.current as HTMLDivElement).getBoundingClientRect();
    const time = Math.floor((event.clientX - left - LEFT) / cellWidth);
    const y = event.clientY - top;
    const age = y < CELL ? ages : ages - Math.floor((y - GAP) / CELL);
    return time >= 0 && time < times && age >= 0 && age <= ages && y >= 0 ? { time, age: Math.min(age, ages) } : null;
  };

  const onMove = (event: PointerEvent) => {
    const cell = cellAt(event);
    if (!cell) return hideTip();
    if (drag) setDrag({ from: drag.from, to: cell });
    const amount = unit === "bytes" ? bytes(valueAt(cell)) : `${countShort(valueAt(cell))} blocks`;
    showTip(
      event.clientX,
      event.clientY,
      <div>
        <strong>{amount}</strong>
        <div>
          allocated {seconds(data.times[cell.time] as number)} – {seconds(data.times[cell.time + 1] as number)}
        </div>
        <div>
          {cell.age === ages
            ? `alive ${endText()}`
            : `lived ${seconds(data.ages[cell.age] as number)} – ${seconds(data.ages[cell.age + 1] as number)}`}
        </div>
        {hasServer && <div class="muted">Click, or drag over several, to filter.</div>}
      </div>,
    );
  };

  const onUp = () => {
    if (!drag) return;
    setDrag(null);
    hideTip();
    if (!hasServer) return;
    const [t0, t1] = [Math.min(drag.from.time, drag.to.time), Math.max(drag.from.time, drag.to.time)];
    const [a0, a1] = [Math.min(drag.from.age, drag.to.age), Math.max(drag.from.age, drag.to.age)];
    update({
      window: { from: data.times[t0] as number, to: data.times[t1 + 1] as number },
      windowOf: "allocated",
      where: withClause(state.value.where, ageClause(data.ages, a0, a1)),
      live: "all",
    });
  };

  const marked = drag && {
    x: Math.min(drag.from.time, drag.to.time) * cellWidth,
    y: row(Math.max(drag.from.age, drag.to.age)),
    width: (Math.abs(drag.from.time - drag.to.time) + 1) * cellWidth,
    bottom: row(Math.min(drag.from.age, drag.to.age)) + CELL,
  };
  const ticks = timeTicks(data.times[0] ?? 0, data.times.at(-1) ?? 1, Math.max(2, Math.floor(plotWidth / 110)));
  const tickStep = ticks.length > 1 ? (ticks[1] as number) - (ticks[0] as number) : 1;
  const timeX = (t: number) =>
    ((t - (data.times[0] ?? 0)) / ((data.times.at(-1) ?? 1) - (data.times[0] ?? 0) || 1)) * plotWidth;
  return (
    <div
      class="heatmap"
      ref={box}
      onPointerDown={(event) => {
        const cell = cellAt(event);
        if (cell && event.button === 0) setDrag({ from: cell, to: cell });
      }}
      onPointerMove={onMove}
      onPointerUp={onUp}
      onPointerLeave={() => {
        setDrag(null);
        hideTip();
      }}
    >
      <svg
        width={width}
        height={height + BOTTOM}
        role="img"
        aria-label="Blocks by the time of their allocation and by their lifetime"
      >
        <text class="axis" x={LEFT - 8} y={CELL / 2} text-anchor="end" dominant-baseline="middle">
          {endText()}
        </text>
        {data.ages.slice(0, -1).map((age, k) =>
          k % 2 === 0 ? (
            <text key={k} class="axis" x={LEFT - 8} y={row(k) + CELL} text-anchor="end" dominant-baseline="middle">
              {age === 0 ? "0" : seconds(age)}
            </text>
          ) : null,
        )}
        <g transform={`translate(${LEFT} 0)`}>
          <rect class="heat-ground" width={plotWidth} height={CELL - 1} />
          <rect class="heat-ground" y={GAP + CELL} width={plotWidth} height={Math.max(0, height - CELL - GAP)} />
          {Array.from({ length: times }, (_, time) =>
            Array.from({ length: ages + 1 }, (_, age) => {
              const value = valueAt({ time, age });
              if (value <= 0) return null;
              // Amounts differ by orders of magnitude; small ones must stay visible.
              const share = 0.12 + 0.88 * Math.max(0, 1 + Math.log10(value / most) / 4);
              return (
                <rect
                  key={`${time}.${age}`}
                  class={age === ages ? "heat-alive" : "heat"}
                  x={time * cellWidth}
                  y={row(age)}
                  width={Math.max(1, cellWidth - 1)}
                  height={CELL - 1}
                  style={{ opacity: share }}
                />
              );
            }),
          )}
          {marked && (
            <rect
              class="heat-marked"
              x={marked.x}
              y={marked.y}
              width={marked.width}
              height={marked.bottom - marked.y}
            />
          )}
          {ticks.map((tick) => (
            <text key={tick} class="axis" x={timeX(tick)} y={height + 16} text-anchor={tick === 0 ? "start" : "middle"}>
              {tickTime(tick, tickStep)}
            </text>
          ))}
        </g>
      </svg>
    </div>
  );
}

/** The query for a range of rows; the last row is live at the end. */
export function ageClause(ages: readonly number[], from: number, to: number): string {
  const last = ages.length - 1;
  if (from === last) return "live at end";
  const upTo = to === last ? "" : queryTime(ages[to + 1] as number);
  const range = `lifetime in ${queryTime(ages[from] as number)}..${upTo}`;
  return to === last ? range : `${range} and not live at end`;
}
