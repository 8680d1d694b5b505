// The garbage collector below the timeline: its share of the time, and the longest pauses as marks.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Gc, WorstPause } from "../api/types";
import { percent, seconds } from "../format";
import { isAwaited, useAnswer } from "../state/answers";
import { bandQuestion, PLAIN_LOOK } from "../state/questions";
import { state, update } from "../state/state";
import { inks, isDark } from "../theme";
import { indexAt, timeOf, xOf } from "../timeline/draw";
import { prepareCanvas, SANS, useSize } from "../widgets/size";
import { hideTip, showTip, tipOn } from "../widgets/tip";
import { choosePause, isChosen } from "./choose";
import { BAND, drawBand, intervalOf, marked, partsOf } from "./draw";
import { KIND_HELP, KIND_NAMES, kindColours, KINDS } from "./kinds";
import { PauseTip } from "./pause";
import { headlineText } from "./text";

export function Band(props: { duration: number; slices: readonly number[] | null }): JSX.Element {
  const now = state.value;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(box);
  // A report file has that of the whole run.
  const answer = useAnswer<Gc>(bandQuestion(props.slices ? { ...now, ...PLAIN_LOOK, where: "", zoom: null } : now));
  const { data, isStale } = answer;
  const [hovered, setHovered] = useState<number | null>(null);
  const range = now.zoom ?? { from: 0, to: Math.max(props.duration, 1e-6) };

  useEffect(() => {
    if (!canvas.current || !data || width === 0) return;
    const context = prepareCanvas(canvas.current, width, BAND);
    if (!context) return;
    const font = `10.5px ${SANS}`;
    drawBand(context, { data, range, width, top: 0, inks: inks(), isDark: isDark.value, font, hovered });
  });

  const onPointerMove = (event: PointerEvent) => {
    if (!data || data.series.times.length === 0) return;
    const { left } = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    const index = indexAt(data.series.times, timeOf({ range, width }, event.clientX - left));
    setHovered(index);
    showTip(event.clientX, event.clientY, <IntervalTip data={data} index={index} />);
  };

  return (
    <div class={`gc ${isStale && data ? "stale" : ""}`} aria-busy={isAwaited(answer)}>
      <div class="gc-band" ref={box} style={{ height: `${BAND}px` }}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={data ? `Garbage collector over time: ${headlineText(data)}` : "Garbage collector over time"}
          onPointerMove={onPointerMove}
          onPointerLeave={() => {
            setHovered(null);
            hideTip();
          }}
        />
        {data && width > 0 && props.duration > 0 && (
          <PauseMarks data={data} frame={{ range, width }} slices={props.slices} />
        )}
      </div>
      {data && <BandLegend data={data} />}
    </div>
  );
}

/** What the colours are, and the figures of the collector, which lead to its view. */
function BandLegend({ data }: { data: Gc }): JSX.Element {
  const colours = kindColours(isDark.value);
  const kinds = KINDS.filter((kind) => data.kinds.some((one) => one.kind === kind));
  return (
    <div class="gc-legend">
      <button
        type="button"
        class="gc-headline"
        aria-pressed={state.value.view === "collector"}
        onClick={() => update({ view: "collector" })}
        {...tipOn("Show the garbage collector: pauses, their causes, words promoted")}
      >
        Garbage collector: {headlineText(data)}
      </button>
      <ul>
        {kinds.map((kind) => (
          <li key={kind} {...tipOn(KIND_HELP[kind])}>
            <i class="dot" style={{ background: colours[kind] }} /> {KIND_NAMES[kind]}
          </li>
        ))}
        {data.worst.length > 0 && (
          <li>
            <i class="pause-key" /> longest pauses
          </li>
        )}
      </ul>
    </div>
  );
}

/** The share of an interval, by kind. */
function IntervalTip({ data, index }: { data: Gc; index: number }): JSX.Element {
  const { from, to } = intervalOf(data, index);
  const colours = kindColours(isDark.value);
  return (
    <div class="readout">
      <div class="readout-head">
        <span>
          {seconds(from)} – {seconds(to)}
        </span>
        <strong>{percent(data.series.collector_percent[index] ?? 0, 100)} in the collector</strong>
      </div>
      <table>
        <tbody>
          {[...partsOf(data, index)].reverse().map((part) => (
            <tr key={part.kind}>
              <td>
                <i class="dot" style={{ background: colours[part.kind] }} />
              </td>
              <td>{KIND_NAMES[part.kind]}</td>
              <td class="number">{percent(part.percent, 100)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {(data.series.longest_pause[index] ?? 0) > 0 && (
        <div class="muted">longest pause {seconds(data.series.longest_pause[index] ?? 0)}</div>
      )}
    </div>
  );
}

/** The longest pauses. Arrow keys move between them. */
function PauseMarks(props: {
  data: Gc;
  frame: { range: { from: number; to: number }; width: number };
  slices: readonly number[] | null;
}): JSX.Element {
  const { data, frame } = props;
  const now = state.value;
  const pauses = marked(data.worst, frame, (pause) => isChosen(now, pause));
  const longest = data.worst[0];
  const [focused, setFocused] = useState(-1);
  const group = useRef<HTMLDivElement>(null);
  const choose = (pause: WorstPause) => {
    const change = choosePause(now, pause, props.slices);
    if (change) update(change);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const buttons = [...(group.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const next = Math.max(0, Math.min(buttons.length - 1, at + step));
    setFocused(next);
    buttons[next]?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  // One of them takes part in the order of the tab key: that which had the focus, or the longest.
  const reached = pauses[focused] ? focused : Math.max(0, pauses.indexOf(longest as WorstPause));
  return (
    <div role="group" aria-label="Longest pauses" ref={group} onKeyDown={onKeyDown}>
      {pauses.map((pause, k) => {
        const x = xOf(frame, pause.start + pause.length / 2);
        const hint =
          props.slices?.length === 0 ? "" : isChosen(now, pause) ? "Click to deselect it." : "Click to select it.";
        return (
          <button
            key={`${pause.start} ${pause.domain}`}
            type="button"
            class={`pause-mark ${isChosen(now, pause) ? "is-on" : ""}`}
            style={{ left: `${Math.max(6, Math.min(frame.width - 6, x))}px` }}
            aria-label={`Pause of ${seconds(pause.length)} at ${seconds(pause.start)}`}
            aria-pressed={isChosen(now, pause)}
            tabIndex={k === reached ? 0 : -1}
            onClick={() => choose(pause)}
            {...tipOn(<PauseTip pause={pause} hasSeveral={data.domains.length > 1} hint={hint} />)}
          />
        );
      })}
    </div>
  );
}
