// The timeline: memory over time, with selection of windows and points in time.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { GroupLine, Series } from "../api/types";
import { Band } from "../collector/band";
import { reserved } from "../colours";
import { seconds } from "../format";
import { currentSource, isAwaited, useAnswer } from "../state/answers";
import type { Span } from "../state/codec";
import { patternOf, withClause } from "../state/patterns";
import { usePicture } from "../save/pictures";
import { selectionText } from "../save/requests";
import {
  comparedWith,
  diffWindows,
  PLAIN_LOOK,
  POINTS,
  scope as selected,
  seriesQuestion,
  wholeSeriesQuestion,
  withoutSeriesQuestion,
} from "../state/questions";
import { chooseMoment, shownScope } from "../state/scope";
import { info, traceFacts } from "../state/session";
import { type State, state, update } from "../state/state";
import { type Inks, inks, isDark } from "../theme";
import { commandOf } from "../state/command";
import { copy, Empty, notify } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { prepareCanvas, SANS, useSize } from "../widgets/size";
import { hideTip, showTip } from "../widgets/tip";
import {
  AXIS,
  drawTimeline,
  indexAt,
  largest,
  largestIndex,
  layerAt,
  type Plot,
  stack,
  timeOf,
  TOP,
  xOf,
} from "./draw";
import { groupName, inOrder, type LayerColours, layerColours } from "./layers";
import { Marks } from "./marks";
import { Readout } from "./readout";
import { estimated, MEASURE_NAMES, measured, tickTime, timeTicks, wallTime } from "./scale";
import { snapped } from "./snap";
import { TimelineBar } from "./toolbar";

/** Distance in pixels at which the pointer grabs an edge of the window. */
const GRIP = 6;

/** The height of a saved chart. */
const SAVED_HEIGHT = 320;

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
  /** If the window is compared with another at once: the state before. */
  compares: State | null;
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
  const shown: State = props.slices ? { ...now, ...PLAIN_LOOK } : now;
  const answer = useAnswer<Series>(seriesQuestion(shown, POINTS));
  const { data, isStale, error } = answer;
  const series = useMemo(() => data && inOrder(data, now.split), [data, now.split]);
  const command = commandOf(answer);
  // A layer on its own has the scale of the layer.
  const isFiltered = now.where.trim() !== "" && now.callers.length === 0;
  const whole = useAnswer<Series>(isFiltered ? wholeSeriesQuestion(now, POINTS) : null).data;
  const compared = now.view === "compare" ? diffWindows(now, traceFacts()) : null;
  const isWhatIf = currentSource().hasServer && compared === null && now.callers.length === 0;
  const withoutData = useAnswer<Series>(isWhatIf ? withoutSeriesQuestion(now, POINTS) : null).data;
  const without = withoutData?.measure === data?.measure ? withoutData : null;
  // Leaks are about the end, and comparisons about windows or whole traces.
  const hasMoments = !props.slices && now.view !== "leaks" && now.view !== "compare";
  const [hovered, setHovered] = useState<{ index: number; layer: number } | null>(null);
  const [brush, setBrush] = useState<{ target: WindowName; span: Span } | null>(null);
  const drag = useRef<Drag | null>(null);

  const range = now.zoom ?? { from: 0, to: Math.max(props.duration, 1e-6) };
  const tops = useMemo(() => (series ? stack(series) : []), [series]);
  const colours = useMemo(
    () => layerColours(series?.groups ?? [], now, isDark.value),
    [series, now.split, now.callers, isDark.value, reserved.value],
  );
  const scope = shownScope(now);
  // What is live at the end of a window is not live at the end of the run.
  const moment =
    compared || scope === null || scope === "all" || props.duration === 0
      ? null
      : scope === "peak"
        ? (props.peak?.time ?? null)
        : scope === "end"
          ? props.duration
          : scope;
  // A report file has one comparison, and few windows or none.
  const hasWindows = !props.slices || (!compared && props.slices.length > 0);
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

  /** The chart in some size and colours. */
  const plotOf = (
    series: Series,
    size: { width: number; height: number },
    look: { colours: LayerColours; inks: Inks; hovered: Plot["hovered"] },
  ): Plot => {
    const times = timeTicks(range.from, range.to, Math.max(2, Math.floor(size.width / 110)));
    const step = times.length > 1 ? (times[1] as number) - (times[0] as number) : range.to - range.from;
    return {
      ...size,
      series,
      whole: isFiltered && whole && whole.measure === series.measure ? whole : null,
      without,
      measure: series.measure as Plot["measure"],
      range,
      colours: look.colours.fills,
      other: look.colours.other,
      inks: look.inks,
      font: `11px ${SANS}`,
      ticks: times.map((at) => ({
        at,
        text:
          now.clock === "elapsed" ? tickTime(at, step) : wallTime(props.startMicros, at, step, now.clock === "local"),
      })),
      windows,
      hovered: look.hovered,
      moment,
    };
  };

  useEffect(() => {
    if (!canvas.current || !series || width === 0) return;
    const context = prepareCanvas(canvas.current, width, height);
    if (!context) return;
    const look = { colours, inks: inks(), hovered };
    drawTimeline(context, plotOf(series, { width, height }, look), tops);
  });

  usePicture("timeline", () => {
    if (!series || now.folded) return null;
    const measure = series.measure as Plot["measure"];
    const colours = layerColours(series.groups, now, false);
    const most = largestIndex(series.total.high);
    return {
      title: `${MEASURE_NAMES[measure]} over time: at most ${estimated(measure, series.total.high[most] ?? 0, series.error[most] ?? 0)}`,
      height: SAVED_HEIGHT,
      // Windows and points in time are marked, and do not cut the chart.
      selection: selectionText(now, selected({ ...now, live: "all", window: null }).where),
      legend: [
        ...series.groups.map((group, layer) => ({
          fill: group.is_other ? colours.other : (colours.fills[layer] as string),
          text: groupName(group),
        })),
        ...(without ? [{ fill: inks().accent, text: `dashed: without ${now.without.join(" or ")}` }] : []),
      ],
      draw: (pen, width, inks) => {
        drawTimeline(pen, plotOf(series, { width, height: SAVED_HEIGHT }, { colours, inks, hovered: null }), tops);
      },
    };
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
    // With Ctrl, the second of two windows.
    const compares = !props.slices && (event.ctrlKey || event.metaKey) ? now : null;
    const fresh = {
      target: compares ? "after" : compared ? (event.shiftKey ? "before" : "after") : "window",
      anchor: timeOf(frame, x),
    } as const;
    const { target, anchor } = (compares ? null : windowEdgeAt(x)) ?? fresh;
    drag.current = { startX: x, anchor, isMoved: false, name: `drag ${event.timeStamp}`, timer: 0, target, compares };
    canvas.current?.setPointerCapture(event.pointerId);
    hideTip();
  };

  /** The change of a drag: windows that are compared are shown at once. */
  const dragged = ({ target, compares }: Drag, span: Span): Partial<State> =>
    compares ? comparedWith(compares, span, props.duration) : { [target]: span };

  const onPointerMove = (event: PointerEvent) => {
    const { x, y } = place(event);
    const active = drag.current;
    if (active) {
      if (Math.abs(x - active.startX) > 4) active.isMoved = true;
      if (active.isMoved && hasWindows) {
        const t = timeOf(frame, x);
        const window = snapped({ from: Math.min(active.anchor, t), to: Math.max(active.anchor, t) }, props.slices);
        setBrush({ target: active.target, span: window });
        setHovered(null);
        // The views follow as soon as the pointer rests.
        clearTimeout(active.timer);
        active.timer = self.setTimeout(() => update(dragged(active, window), active.name), REST_MS);
      }
      return;
    }
    if (canvas.current)
      canvas.current.style.cursor = !hasWindows ? "default" : windowEdgeAt(x) ? "ew-resize" : "crosshair";
    const point = pointAt(x, y);
    setHovered(point);
    if (point && series)
      showTip(
        event.clientX,
        event.clientY,
        <Readout series={series} without={without} point={point} colours={colours} />,
      );
  };

  const onPointerUp = (event: PointerEvent) => {
    const active = drag.current;
    drag.current = null;
    if (!active) return;
    clearTimeout(active.timer);
    if (active.isMoved && brush) update(dragged(active, brush.span), active.name);
    else if (!active.isMoved) onClick(place(event));
    setBrush(null);
  };

  /** A click chooses a point in time, wherever it is; layers are chosen by their names. */
  const onClick = ({ x }: { x: number }) => {
    if (hasMoments) update(chooseMoment(now, Number(timeOf(frame, x).toFixed(6))));
    else if (props.slices) notify("A report file has the memory live at the peak and at the end: click their flags.");
  };

  const drillable = (group: GroupLine) =>
    !props.slices &&
    !group.is_other &&
    ["branches", "function", "site", "module", "file", "crate"].includes(now.split) &&
    !group.label.name.startsWith("(");

  const drillInto = (group: GroupLine) => {
    hideTip();
    const { query } = group;
    if (query !== undefined) update({ where: withClause(now.where, query), node: "" });
    else update({ callers: [...now.callers, patternOf(group.label.name)], node: "" });
  };

  const onContextMenu = (event: MouseEvent) => {
    event.preventDefault();
    const { x, y } = place(event);
    const point = pointAt(x, y);
    const t = Number(timeOf(frame, x).toFixed(6));
    const group = point ? series?.groups[point.layer] : undefined;
    openMenu(event.clientX, event.clientY, [
      { text: `What is alive at ${seconds(t)}`, isDisabled: !hasMoments, run: () => update(chooseMoment(now, t)) },
      "line",
      ...(group && drillable(group)
        ? [
            {
              text: `Only ${group.label.name}${group.query === undefined ? ", by caller" : ""}`,
              run: () => drillInto(group),
            },
            "line" as const,
          ]
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
    if (!hasWindows) return true;
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
    else if (event.key === "Enter" && hasMoments) update(chooseMoment(now, t));
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
        hasWithout={without !== null}
        shown={shown}
        onHover={(layer) =>
          setHovered(layer < 0 ? null : { index: hovered?.index ?? (series?.times.length ?? 1) - 1, layer })
        }
        onPick={(group) => drillable(group) && drillInto(group)}
      />
      <div class={`plot ${isStale && series ? "stale" : ""}`} aria-busy={isAwaited(answer)} ref={box}>
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
        {error && !series && <Empty title={error.body.parameter === "where" ? "" : error.message} />}
        {props.duration === 0 && <Empty title="No time passed in this trace" />}
        <span class="spoken" aria-live="polite">
          {spoken}
        </span>
      </div>
      {info.value?.has_collections && <Band duration={props.duration} slices={props.slices} />}
    </section>
  );
}
