// An amount over versions or days, with a line for each series.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { count } from "../format";
import { RUN_PROPERTIES, state, update } from "../state/state";
import { Empty, Select } from "../widgets/controls";
import { valueTicks } from "../timeline/scale";
import { useSize } from "../widgets/size";
import { tipOn } from "../widgets/tip";
import { changePercent } from "../views/diff-rows";
import { amountText, changeText, groupText, meanText, verdictText } from "./rows";
import type { Point, Trend, TrendSeries } from "./types";

/** Series that are drawn; the table has all. */
const DRAWN = 12;
const MARGIN = { left: 70, right: 16, top: 12, bottom: 28 };
const HEIGHT = 260;

export function TrendView({ data, isStale }: { data: Trend | null; isStale: boolean }): JSX.Element {
  const now = state.value;
  const options = RUN_PROPERTIES.map((value) => ({ value, text: value }));
  const isEmpty = data?.series.every((series) => series.points.length === 0);
  return (
    <div class="view">
      <div class="toolbar">
        <Select label="Over" value={now.over} options={options} onChange={(over) => update({ over })} />
        <Select
          label="A line for each"
          value={now.seriesBy}
          options={[...options, { value: "none" as const, text: "(all runs)" }]}
          onChange={(seriesBy) => update({ seriesBy })}
        />
        {data && (
          <span class="muted">
            {data.tested === 0
              ? "Not tested: run-to-run variation needs two runs at each point."
              : `${count(data.tested)} steps tested, ${count(data.significant)} significant. ± is the 95 % interval of the mean per run.`}
          </span>
        )}
      </div>
      {isEmpty ? (
        <Empty title="No runs, or none that match" />
      ) : data ? (
        <div class={`fleet-trend ${isStale ? "stale" : ""}`}>
          <Chart data={data} />
          <div class="fleet-tables">
            {data.series.map((series, k) => (
              <SeriesTable key={k} data={data} series={series} place={k} />
            ))}
          </div>
        </div>
      ) : (
        <p class="view-note muted" role="status">
          Asking all runs …
        </p>
      )}
    </div>
  );
}

function Chart({ data }: { data: Trend }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box);
  const drawn = data.series.slice(0, DRAWN);
  const names = inOrder(drawn);
  const [plotWidth, plotHeight] = [
    Math.max(0, width - MARGIN.left - MARGIN.right),
    HEIGHT - MARGIN.top - MARGIN.bottom,
  ];
  const points = drawn.flatMap((series) => series.points);
  const largest = Math.max(...points.map((point) => point.mean + point.error), 1);
  const step = plotWidth / Math.max(1, names.length);
  // Series are drawn beside each other: those that are alike would hide each other's errors.
  const apart = Math.min(8, step / (2 * Math.max(1, drawn.length)));
  const middle = (name: string) => (names.indexOf(name) + 0.5) * step;
  const x = (name: string, place: number) => middle(name) + (place - (drawn.length - 1) / 2) * apart;
  const y = (amount: number) => plotHeight * (1 - Math.max(0, amount) / largest);
  const ticks = valueTicks(data.unit === "bytes" ? "live-bytes" : "live-blocks", largest, 5);
  const every = Math.max(1, Math.ceil((names.length * 64) / Math.max(1, plotWidth)));
  return (
    <div class="chart" ref={box}>
      <svg width={width} height={HEIGHT} role="img" aria-label={`Mean per run over ${data.over}`}>
        <g transform={`translate(${MARGIN.left} ${MARGIN.top})`}>
          {ticks.map((tick) => (
            <g key={tick}>
              <line class="grid-line" x2={plotWidth} y1={y(tick)} y2={y(tick)} />
              <text class="axis" x={-8} y={y(tick)} text-anchor="end" dominant-baseline="middle">
                {tick === 0 ? "0" : amountText(data.unit, tick)}
              </text>
            </g>
          ))}
          {names.map((name, k) =>
            k % every === 0 ? (
              <text key={name} class="axis" x={middle(name)} y={plotHeight + 18} text-anchor="middle">
                {name || "(none)"}
              </text>
            ) : null,
          )}
          {drawn.map((series, k) => (
            <g key={k} class="fleet-line" style={{ "--hue": hue(k) }}>
              <path
                d={series.points
                  .map((point, first) => `${first === 0 ? "M" : "L"}${x(point.name, k)} ${y(point.mean)}`)
                  .join("")}
              />
              {series.points.map((point) => (
                <g key={point.name} {...tipOn(<PointTip data={data} series={series} point={point} />)}>
                  <line
                    x1={x(point.name, k)}
                    x2={x(point.name, k)}
                    y1={y(point.mean - point.error)}
                    y2={y(point.mean + point.error)}
                  />
                  <circle
                    class={point.step?.is_significant ? "is-significant" : ""}
                    cx={x(point.name, k)}
                    cy={y(point.mean)}
                    r={point.step?.is_significant ? 5 : 3.5}
                  />
                </g>
              ))}
            </g>
          ))}
        </g>
      </svg>
      {data.series.length > DRAWN && (
        <p class="view-note muted">
          The chart has the first {DRAWN} of {count(data.series.length)} series.
        </p>
      )}
    </div>
  );
}

function PointTip({ data, series, point }: { data: Trend; series: TrendSeries; point: Point }): JSX.Element {
  return (
    <div class="tip-text">
      <strong>
        {groupText(series.group)} {point.name}
      </strong>
      <div>
        {meanText(data.unit, point)}, mean of {count(point.runs)} {point.runs === 1 ? "run" : "runs"}
      </div>
      {point.step && (
        <>
          <div>{changeText(data.unit, point.step)} since the one before</div>
          <div>{verdictText(point.step)}</div>
        </>
      )}
    </div>
  );
}

function SeriesTable(props: { data: Trend; series: TrendSeries; place: number }): JSX.Element {
  const { data, series, place } = props;
  const name = groupText(series.group) || "All runs";
  return (
    <table class="fleet-series" style={{ "--hue": hue(place) }}>
      <caption>
        {place < DRAWN && <i class="fleet-dot" />} {name}
      </caption>
      <thead>
        <tr>
          <th scope="col">{data.over}</th>
          <th scope="col" class="number">
            Runs
          </th>
          <th scope="col" class="number">
            Mean per run
          </th>
          <th scope="col" class="number">
            Change
          </th>
          <th scope="col" class="number">
            %
          </th>
          <th scope="col">Real?</th>
        </tr>
      </thead>
      <tbody>
        {series.points.map((point) => (
          <tr key={point.name} class={point.step?.is_significant ? "" : "is-chance"}>
            <th scope="row">{point.name || "(none)"}</th>
            <td class="number muted">{count(point.runs)}</td>
            <td class="number">{meanText(data.unit, point)}</td>
            <td class="number">{point.step && changeText(data.unit, point.step)}</td>
            <td class="number muted">{point.step && changePercent(point.step.percent)}</td>
            <td>
              {point.step && (
                <span
                  class={`verdict ${point.step.is_significant ? "is-real" : ""}`}
                  {...tipOn(<div class="tip-text">{verdictText(point.step)}</div>)}
                >
                  {point.step.p === null ? "○ not tested" : point.step.is_significant ? "● real" : "○ chance"}
                </span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The names of all points. Each series has its own in order, and may lack some. */
export function inOrder(series: readonly TrendSeries[]): string[] {
  const names: string[] = [];
  for (const { points } of series) {
    let place = 0;
    for (const { name } of points) {
      const known = names.indexOf(name);
      if (known < 0) names.splice(place, 0, name);
      place = Math.max(place, known < 0 ? place : known) + 1;
    }
  }
  return names;
}

/** Hues that are far from each other for neighbours. */
function hue(place: number): number {
  return (255 + place * 137.5) % 360;
}
