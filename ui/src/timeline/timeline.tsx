// The timeline: memory over time, with selection of windows and points in time.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { GroupLine, Series } from "../api/types";
import { estimatedBytes, percent, seconds } from "../format";
import { useAnswer } from "../state/answers";
import type { Span } from "../state/codec";
import { patternOf } from "../state/patterns";
import { diffWindows, PLAIN_LOOK, POINTS, seriesQuestion, wholeSeriesQuestion } from "../state/questions";
import { shownScope } from "../state/scope";
import { traceFacts } from "../state/session";
import { state, update } from "../state/state";
import { inks, isDark, layerColours } from "../theme";
import { commandOf } from "../state/command";
import { copy, Empty } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { prepareCanvas, SANS, useSize } from "../widgets/size";
import { hideTip, showTip } from "../widgets/tip";
import { AXIS, drawTimeline, indexAt, largest, layerAt, type Plot, stack, timeOf, TOP, xOf } from "./draw";
import { groupName, inOrder } from "./layers";
import { Marks } from "./marks";
import { measured, tickTime, timeTicks, wallTime } from "./scale";
import { snapped } from "./snap";
import { TimelineBar } from "./toolbar";

/** Distance in pixels at which the pointer grabs an edge of the window. */
const GRIP = 6;

/** Delay before the views follow a drag. */
const REST_MS = 90;

interface Drag {
  startX: number;
  /** The fixed end of the window, in seconds. */
  anchor: number;
  isMoved: boolean;
  /** Undo reverts a whole drag at once. */
  name: string;
  timer: number;
  /** The window that is drawn. */
  target: WindowName;
}

/** A part of the state that is a window in the timeline. */
type WindowName = "window" | "before" | "after";

export interface TimelineProps {
  duration: number;
  startMicros: number;
  peak: { time: number; bytes: number } | null;
  slices: readonly number[] | null;
}

export function Timeline(props: TimelineProps): JSX.Element {
  const now = state.value;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, height } = useSize(box);
  // A report file has the layers with all functions.
  const answer = useAnswer<Series>(seriesQuestion(props.slices ? { ...now, ...PLAIN_LOOK } : now, POINTS));
  const { data, isStale, error } = answer;
  const series = useMemo(() => data && inOrder(data, now.split), [data, now.split]);
  const command = commandOf(answer);
  const isFiltered = now.where.trim() !== "" || now.callers.length > 0;
  const whole = useAnswer<Series>(isFiltered ? wholeSeriesQuestion(now, POINTS) : null).data;
  // Leaks are about the end, and comparisons about windows or whole traces.
  const hasMoments = !props.slices && now.view !== "leaks" && now.view !== "compare";
  const [hovered, setHovered] = useState<{ index: number; layer: number } | null>(null);
  const [brush, setBrush] = useState<{ target: WindowName; span: Span } | null>(null);
  const drag = useRef<Drag | null>(null);

  const range = now.zoom ?? { from: 0, to: Math.max(props.duration, 1e-6) };
  const tops = useMemo(() => (series ? stack(series) : []), [series]);
  const colours = layerColours(isDark.value);
  const scope = shownScope(now);
  const compared = now.view === "compare" ? diffWindows(now, traceFacts()) : null;
  // What is live at the end of a window is not live at the end of the run.
  const moment =
    compared || scope === "all" || props.duration === 0
      ? null
      : scope === "peak"
        ? (props.peak?.time ?? null)
        : scope === "end"
          ? props.duration
          : scope;
  const windows: { name: WindowName; text: string; span: Span }[] = (
    compared
      ? [
          { name: "before" as const, text: "before", span: compared.before as Span | null },
          { name: "after" as const, text: "after", span: compared.after },
        ]
      : [{ name: "window" as const, text: "", span: now.window }]
  )
    .map((one) => (brush?.target === one.name ? { ...one, span: brush.span } : one))
    .filter((one): one is { name: WindowName; text: string; span: Span } => one.span !== null);
  const frame = { range, width };

  useEffect(() => {
    if (!canvas.current || !series || width === 0) return;
    const context = prepareCanvas(canvas.current, width, height);
    if (!context) return;
    const times = timeTicks(range.from, range.to, Math.max(2, Math.floor(width / 110)));
    const step = times.length > 1 ? (times[1] as number) - (times[0] as number) : range.to - range.from;
    const plot: Plot = {
      series,
      whole: isFiltered && whole && whole.measure === series.measure ? whole : null,
      measure: series.measure as Plot["measure"],
      range,
      width,
      height,
      colours: colours.fills,
      other: colours.other,
      inks: inks(),
      font: `11px ${SANS}`,
      ticks: times.map((at) => ({
        at,
        text:
          now.clock === "elapsed" ? tickTime(at, step) : wallTime(props.startMicros, at, step, now.clock === "local"),
      })),
      windows,
      hovered,
      moment,
    };
    drawTimeline(context, plot, tops);
  });

  const place = (event: PointerEvent | MouseEvent) => {
    const { left, top } = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };

  const pointAt = (x: number, y: number) => {
    if (!series || series.times.length === 0) return null;
    const index = indexAt(series.times, timeOf(frame, x));
    const most = largest(series, whole);
    const bottom = height - AXIS;
    const value = ((bottom - y) / (bottom - TOP)) * most;
    return { index, layer: y > bottom || value < 0 || series.groups.length === 0 ? -1 : layerAt(tops, index, value) };
  };

  /** The window whose edge is at a place, and its other edge. */
  const windowEdgeAt = (x: number): { target: WindowName; anchor: number } | null => {
    const isAt = (t: number) => Math.abs(xOf(frame, t) - x) < GRIP;
    for (const { name, span } of windows) {
      if (isAt(span.from)) return { target: name, anchor: span.to };
      if (isAt(span.to)) return { target: name, anchor: span.from };
    }
    return null;
  };

  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const { x } = place(event);
    // A report file has one comparison.
    if (compared && props.slices) return;
    const fresh = { target: compared ? (event.shiftKey ? "before" : "after") : "window", anchor: timeOf(frame, x) };
    const { target, anchor } = windowEdgeAt(x) ?? (fresh as { target: WindowName; anchor: number });
    drag.current = { startX: x, anchor, isMoved: false, name: `drag ${event.timeStamp}`, timer: 0, target };
    canvas.current?.setPointerCapture(event.pointerId);
    hideTip();
  };

  const onPointerMove = (event: PointerEvent) => {
    const { x, y } = place(event);
    const active = drag.current;
    if (active) {
      if (Math.abs(x - active.startX) > 4) active.isMoved = true;
      if (active.isMoved) {
        const t = timeOf(frame, x);
        const window = snapped({ from: Math.min(active.anchor, t), to: Math.max(active.anchor, t) }, props.slices);
        setBrush({ target: active.target, span: window });
        setHovered(null);
        // The views follow as soon as the pointer rests.
        clearTimeout(active.timer);
        active.timer = self.setTimeout(() => update({ [active.target]: window }, active.name), REST_MS);
      }
      return;
    }
    if (canvas.current)
      canvas.current.style.cursor = windowEdgeAt(x) ? "ew-resize" : y > height - AXIS ? "pointer" : "crosshair";
    const point = pointAt(x, y);
    setHovered(point);
    if (point && series)
      showTip(event.clientX, event.clientY, <Readout series={series} point={point} colours={colours} />);
  };

  const onPointerUp = (event: PointerEvent) => {
    const active = drag.current;
    drag.current = null;
    if (!active) return;
    clearTimeout(active.timer);
    if (active.isMoved && brush) update({ [brush.target]: brush.span }, active.name);
    else if (!active.isMoved) onClick(place(event));
    setBrush(null);
  };

  const onClick = ({ x, y }: { x: number; y: number }) => {
    const point = pointAt(x, y);
    if (!point || !series) return;
    const group = series.groups[point.layer];
    if (group && drillable(group)) drillInto(group);
    else if (hasMoments) update({ live: Number(timeOf(frame, x).toFixed(6)) });
  };

  const drillable = (group: GroupLine) =>
    !props.slices &&
    !group.is_other &&
    ["function", "site", "module", "file", "crate"].includes(now.split) &&
    !group.label.name.startsWith("(");

  const drillInto = (group: GroupLine) => {
    hideTip();
    update({ callers: [...now.callers, patternOf(group.label.name)] });
  };

  const onContextMenu = (event: MouseEvent) => {
    event.preventDefault();
    const { x, y } = place(event);
    const point = pointAt(x, y);
    const t = Number(timeOf(frame, x).toFixed(6));
    const group = point ? series?.groups[point.layer] : undefined;
    openMenu(event.clientX, event.clientY, [
      { text: `What is alive at ${seconds(t)}`, isDisabled: !hasMoments, run: () => update({ live: t }) },
      "line",
      ...(group && drillable(group)
        ? [{ text: `Callers of ${group.label.name}`, run: () => drillInto(group) }, "line" as const]
        : []),
      {
        text: "Zoom to the window",
        isDisabled: !now.window || props.slices !== null,
        run: () => update({ zoom: now.window }),
      },
      { text: "Zoom out", isDisabled: !now.zoom, run: () => update({ zoom: null }) },
      { text: "Remove the window", isDisabled: !now.window, run: () => update({ window: null }) },
      "line",
      {
        text: "Copy as command",
        isDisabled: command === null,
        run: () => command !== null && void copy(command, "the command"),
      },
    ]);
  };

  /** Sets an edge of a window; with Shift, of the one before if two are compared. */
  const setEdge = (key: string, t: number): boolean => {
    const isStart = key === "[" || key === "{";
    if (!isStart && key !== "]" && key !== "}") return false;
    if (compared && props.slices) return true;
    const target: WindowName = !compared ? "window" : key === "{" || key === "}" ? "before" : "after";
    const span = windows.find(({ name }) => name === target)?.span ?? { from: 0, to: props.duration };
    const next = isStart ? { from: t, to: span.to } : { from: span.from, to: t };
    if (next.from < next.to) update({ [target]: snapped(next, props.slices) });
    return true;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (!series || series.times.length === 0) return;
    const last = series.times.length - 1;
    const index = hovered?.index ?? last;
    const t = series.times[index] as number;
    const step = event.shiftKey ? 20 : 1;
    if (event.key === "ArrowLeft") setHovered({ index: Math.max(0, index - step), layer: -1 });
    else if (event.key === "ArrowRight") setHovered({ index: Math.min(last, index + step), layer: -1 });
    else if (event.key === "Enter" && hasMoments) update({ live: t });
    else if (!setEdge(event.key, t)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const spoken =
    hovered && series
      ? `${seconds(series.times[hovered.index] ?? 0)}: ${measured(series.measure as Plot["measure"], series.total.values[hovered.index] ?? 0)}`
      : "";

  return (
    <section class={`timeline panel ${now.folded ? "is-folded" : ""}`} aria-label="Memory over time">
      <TimelineBar
        series={series}
        colours={colours}
        hovered={hovered?.layer ?? -1}
        hasServer={props.slices === null}
        onHover={(layer) =>
          setHovered(layer < 0 ? null : { index: hovered?.index ?? (series?.times.length ?? 1) - 1, layer })
        }
        onPick={(group) => drillable(group) && drillInto(group)}
      />
      <div class={`plot ${isStale && series ? "stale" : ""}`} ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label="Memory over time. Left and right move through time, Enter selects memory live at that time, [ and ] set the start and the end of a window."
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerLeave={() => {
            setHovered(null);
            hideTip();
          }}
          onDblClick={() => now.zoom && update({ zoom: null })}
          onContextMenu={onContextMenu}
          onKeyDown={onKeyDown}
          onBlur={() => setHovered(null)}
        />
        {props.peak && props.duration > 0 && width > 0 && (
          <Marks frame={frame} peak={props.peak} duration={props.duration} isCompared={compared !== null} />
        )}
        {error && !series && <Empty title={error.message} />}
        {props.duration === 0 && <Empty title="No time passed in this trace" />}
        <span class="spoken" aria-live="polite">
          {spoken}
        </span>
      </div>
    </section>
  );
}

function Readout(props: {
  series: Series;
  point: { index: number; layer: number };
  colours: { fills: string[]; other: string };
}): JSX.Element {
  const { series, point, colours } = props;
  const measure = series.measure as Plot["measure"];
  const total = series.total.values[point.index] ?? 0;
  const error = series.error[point.index];
  const high = series.total.high[point.index] ?? total;
  const rows = series.groups
    .map((group, layer) => ({ group, layer, value: group.values[point.index] ?? 0 }))
    .filter((row) => row.value > 0)
    .sort((a, b) => b.value - a.value)
    .slice(0, 8);
  if (point.layer >= 0 && !rows.some((row) => row.layer === point.layer)) {
    const group = series.groups[point.layer] as GroupLine;
    rows.push({ group, layer: point.layer, value: group.values[point.index] ?? 0 });
  }
  const amount =
    measure === "live-bytes" && error
      ? estimatedBytes({ value: total, error, low: 0, high: 0 })
      : measured(measure, total);
  return (
    <div class="readout">
      <div class="readout-head">
        <span>{seconds(series.times[point.index] ?? 0)}</span>
        <strong>{amount}</strong>
      </div>
      {high > total * 1.005 && <div class="readout-note">up to {measured(measure, high)} since the point before</div>}
      <table>
        <tbody>
          {rows.map(({ group, layer, value }) => (
            <tr key={layer} class={layer === point.layer ? "is-hovered" : ""}>
              <td>
                <i
                  class="dot"
                  style={{ background: group.is_other ? colours.other : colours.fills[layer % colours.fills.length] }}
                />
              </td>
              <td class="readout-name">{groupName(group)}</td>
              <td class="number">{measured(measure, value)}</td>
              <td class="number muted">{percent(value, total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
