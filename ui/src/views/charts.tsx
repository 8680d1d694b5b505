// Charts of distributions, as SVG: few shapes, sharp text, accessible to screen readers.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Bin } from "../api/types";
import { bytes, countShort, percent, seconds } from "../format";
import { useSize } from "../widgets/size";
import { hideTip, showTip } from "../widgets/tip";

const MARGIN = { left: 56, right: 12, top: 10, bottom: 26 };

interface ChartBox {
  box: { current: HTMLDivElement | null };
  width: number;
  height: number;
  plotWidth: number;
  plotHeight: number;
}

function useChart(height: number): ChartBox {
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box);
  return {
    box,
    width,
    height,
    plotWidth: Math.max(0, width - MARGIN.left - MARGIN.right),
    plotHeight: height - MARGIN.top - MARGIN.bottom,
  };
}

/** Round values for an axis, from 0 up. */
function steps(largest: number): number[] {
  if (!(largest > 0)) return [0];
  const power = 10 ** Math.floor(Math.log10(largest));
  const step = largest / power >= 5 ? power * 2 : largest / power >= 2 ? power : power / 2;
  return Array.from({ length: Math.floor(largest / step) + 1 }, (_, k) => k * step);
}

/** A histogram with logarithmic bins. */
export function Histogram(props: {
  bins: readonly Bin[];
  unit: "bytes" | "blocks";
  isLog: boolean;
  label: string;
  edge: (value: number) => string;
  onPick: ((bin: Bin) => void) | null;
}): JSX.Element {
  const chart = useChart(210);
  const { bins, unit } = props;
  const amount = unit === "bytes" ? bytes : countShort;
  const largest = Math.max(...bins.map((bin) => bin[unit]), 0);
  const total = bins.reduce((sum, bin) => sum + bin[unit], 0);
  const least = Math.min(...bins.map((bin) => bin[unit]).filter((value) => value > 0));
  const floor = props.isLog ? Math.log10(Math.max(1, least)) - 0.5 : 0;
  const share = (value: number) => {
    if (!props.isLog) return largest > 0 ? value / largest : 0;
    return value > 0
      ? Math.max(0.02, (Math.log10(Math.max(1, value)) - floor) / (Math.log10(largest) - floor || 1))
      : 0;
  };
  const ticks = props.isLog
    ? logSteps(largest, floor)
    : steps(unit === "bytes" ? largest / unitOf(largest) : largest).map(
        (tick) => tick * (unit === "bytes" ? unitOf(largest) : 1),
      );
  const step = chart.plotWidth / Math.max(1, bins.length);
  const every = Math.max(1, Math.ceil(46 / step));
  return (
    <div class="chart" ref={chart.box}>
      <svg width={chart.width} height={chart.height} role="img" aria-label={props.label}>
        <g transform={`translate(${MARGIN.left} ${MARGIN.top})`}>
          {ticks.map((tick) => {
            const y = chart.plotHeight * (1 - share(tick));
            return (
              <g key={tick}>
                <line class="grid-line" x2={chart.plotWidth} y1={y} y2={y} />
                <text class="axis" x={-8} y={y} text-anchor="end" dominant-baseline="middle">
                  {tick === 0 ? "0" : amount(tick)}
                </text>
              </g>
            );
          })}
          {bins.map((bin, k) => {
            const height = chart.plotHeight * share(bin[unit]);
            const isTurned = props.onPick !== null && bin.sampled > 0;
            return (
              <g
                key={k}
                class={`bin ${isTurned ? "is-active" : ""}`}
                onClick={() => isTurned && props.onPick?.(bin)}
                onMouseMove={(event) =>
                  showTip(
                    event.clientX,
                    event.clientY,
                    <div class="bin-tip">
                      <strong>
                        {props.edge(bin.low)} – {props.edge(bin.high)}
                      </strong>
                      <div>
                        {bytes(bin.bytes)} in {countShort(bin.blocks)} blocks
                      </div>
                      <div class="muted">
                        {percent(bin[unit], total)} of {unit}, {countShort(bin.sampled)} sampled
                      </div>
                      {isTurned && <div class="muted">Click to see only these.</div>}
                    </div>,
                  )
                }
                onMouseLeave={hideTip}
              >
                <rect class="bin-ground" x={k * step} width={step} height={chart.plotHeight} />
                <rect
                  class="bin-bar"
                  x={k * step + 1}
                  width={Math.max(1, step - 2)}
                  y={chart.plotHeight - height}
                  height={height}
                  rx={2}
                />
              </g>
            );
          })}
          <line class="axis-line" x2={chart.plotWidth} y1={chart.plotHeight} y2={chart.plotHeight} />
          {bins.map((bin, k) =>
            k % every === 0 ? (
              <text
                key={k}
                class="axis"
                x={k * step}
                y={chart.plotHeight + 16}
                text-anchor={k === 0 ? "start" : "middle"}
              >
                {props.edge(bin.low)}
              </text>
            ) : null,
          )}
        </g>
      </svg>
    </div>
  );
}

function unitOf(largest: number): number {
  return 1024 ** Math.max(0, Math.floor(Math.log(Math.max(1, largest)) / Math.log(1024)));
}

function logSteps(largest: number, floor: number): number[] {
  if (!(largest > 0)) return [];
  const ticks: number[] = [];
  for (let power = Math.max(0, Math.ceil(floor)); 10 ** power <= largest; power++) ticks.push(10 ** power);
  const every = Math.ceil(ticks.length / 5);
  return ticks.filter((_, k) => k % every === 0);
}

/** The share of blocks that live longer than an age, on a log axis of time. */
export function Survival(props: { points: readonly { age: number; alive: number }[]; duration: number }): JSX.Element {
  const chart = useChart(210);
  const [at, setAt] = useState<{ age: number; alive: number } | null>(null);
  const positive = props.points.filter((point) => point.age > 0);
  const first = Math.log10(Math.max(1e-6, (positive[0]?.age ?? 1e-6) / 2));
  const last = Math.log10(Math.max(props.duration, 1e-5));
  const x = (age: number) =>
    Math.min(1, Math.max(0, (Math.log10(Math.max(age, 1e-9)) - first) / (last - first || 1))) * chart.plotWidth;
  const y = (alive: number) => (1 - alive) * chart.plotHeight;
  let path = `M0 ${y(1)}`;
  for (const point of positive) path += `H${x(point.age).toFixed(1)}V${y(point.alive).toFixed(1)}`;
  path += `H${chart.plotWidth}`;
  const decades: number[] = [];
  for (let power = Math.ceil(first); power <= last; power++) decades.push(10 ** power);
  const onMove = (event: MouseEvent) => {
    const { left } = (event.currentTarget as SVGElement).getBoundingClientRect();
    const share = (event.clientX - left - MARGIN.left) / (chart.plotWidth || 1);
    const age = 10 ** (first + Math.min(1, Math.max(0, share)) * (last - first));
    const point = positive.findLast((one) => one.age <= age) ?? { age: 0, alive: 1 };
    setAt({ age, alive: point.alive });
    showTip(
      event.clientX,
      event.clientY,
      `${(100 * point.alive).toFixed(1)} % of the blocks live longer than ${seconds(age)}`,
    );
  };
  return (
    <div class="chart" ref={chart.box}>
      <svg
        width={chart.width}
        height={chart.height}
        role="img"
        aria-label="Share of blocks that live longer than a given time"
        onMouseMove={onMove}
        onMouseLeave={() => {
          setAt(null);
          hideTip();
        }}
      >
        <g transform={`translate(${MARGIN.left} ${MARGIN.top})`}>
          {[0, 0.25, 0.5, 0.75, 1].map((tick) => (
            <g key={tick}>
              <line class="grid-line" x2={chart.plotWidth} y1={y(tick)} y2={y(tick)} />
              <text class="axis" x={-8} y={y(tick)} text-anchor="end" dominant-baseline="middle">
                {100 * tick} %
              </text>
            </g>
          ))}
          {decades.map((decade) => (
            <g key={decade}>
              <line class="grid-line" x1={x(decade)} x2={x(decade)} y2={chart.plotHeight} />
              <text class="axis" x={x(decade)} y={chart.plotHeight + 16} text-anchor="middle">
                {seconds(decade)}
              </text>
            </g>
          ))}
          <path class="curve-area" d={`${path}V${chart.plotHeight}H0Z`} />
          <path class="curve" d={path} />
          {at && <circle class="curve-point" cx={x(at.age)} cy={y(at.alive)} r={3.5} />}
        </g>
      </svg>
    </div>
  );
}
