import type { JSX } from "preact";
import type { GroupLine, Series } from "../api/types";
import { SelectionPeak } from "../filter/peak";
import { printable } from "../format";
import { currentSource, offered } from "../state/answers";
import { GROUP_NAMES } from "../state/describe";
import { POINTS, seriesQuestion } from "../state/questions";
import { tells } from "../state/session";
import { GROUPS, MEASURES, type State, state, update } from "../state/state";
import { Chip, Explain, IconButton, Select } from "../widgets/controls";
import type { LayerColours } from "./layers";
import { Legend } from "./legend";
import { tipOn } from "../widgets/tip";
import { MEASURE_HELP, MEASURE_NAMES, PROMOTION_MEASURES, spanText } from "./scale";

/** What the layers of a timeline are. */
const SPLIT_NAMES: Record<State["split"], string> = {
  branches: "branch",
  ...GROUP_NAMES,
  none: "nothing",
};

/** Controls for measure, grouping and layers. */
export function TimelineBar(props: {
  series: Series | null;
  colours: LayerColours;
  hovered: number;
  /** True if the total without the blocks of the what-if is drawn. */
  hasWithout: boolean;
  /** The state that the timeline shows. */
  shown: State;
  onHover: (layer: number) => void;
  onPick: (group: GroupLine) => void;
}): JSX.Element {
  const now = state.value;
  const measures = MEASURES.filter(
    (measure) =>
      (tells().promotions || !PROMOTION_MEASURES.has(measure)) && (tells().lifetimes || measure !== "allocation-rate"),
  );
  const isTold = (group: (typeof GROUPS)[number]) => tells().lifetimes || !["size", "age", "domain"].includes(group);
  const splits = ["branches" as const, ...GROUPS.filter(isTold), "none" as const];
  const held = (change: Partial<State>) => seriesQuestion({ ...props.shown, ...change }, POINTS);
  return (
    <div class="timeline-bar">
      <Select
        label="Measure"
        value={now.measure}
        options={offered(measures, (measure) => held({ measure })).map((value) => ({
          value,
          text: MEASURE_NAMES[value],
        }))}
        onChange={(measure) => update({ measure })}
      />
      <Explain>{MEASURE_HELP[now.measure]}</Explain>
      <Select
        label="by"
        value={now.split}
        options={offered(splits, (split) => held({ split })).map((value) => ({
          value,
          text: SPLIT_NAMES[value],
        }))}
        onChange={(split) => update({ split, callers: [], node: "" })}
      />
      {now.callers.length > 0 && (
        <nav class="crumbs" aria-label="Callers">
          <button type="button" onClick={() => update({ callers: [], node: "" })}>
            all
          </button>
          {now.callers.map((name, place) => (
            <button
              key={place}
              type="button"
              disabled={place === now.callers.length - 1}
              onClick={() => update({ callers: now.callers.slice(0, place + 1), node: "" })}
            >
              {printable(name)}
            </button>
          ))}
          <span>called by</span>
        </nav>
      )}
      {now.zoom && (
        <Chip kind="zoomed to" text={spanText(now.zoom.from, now.zoom.to)} onRemove={() => update({ zoom: null })} />
      )}
      <Legend
        groups={props.series?.groups ?? []}
        colours={props.colours}
        hovered={props.hovered}
        onHover={props.onHover}
        onPick={props.onPick}
      />
      {props.hasWithout && (
        <span
          class="without-key"
          {...tipOn("Without the memory of the what-if, if the rest of the program is unchanged")}
        >
          <i class="dash" /> without
        </span>
      )}
      <SelectionPeak />
      <IconButton
        icon="zoom"
        text={now.zoom ? "Zoom out" : "Zoom to the window"}
        isDisabled={!currentSource().hasServer || (!now.zoom && !now.window)}
        onClick={() => update({ zoom: now.zoom ? null : now.window })}
      />
      <Select
        label="Time"
        value={now.clock}
        options={[
          { value: "elapsed", text: "elapsed" },
          { value: "utc", text: "UTC" },
          { value: "local", text: "local" },
        ]}
        onChange={(clock) => update({ clock })}
      />
      <IconButton
        icon={now.folded ? "right" : "down"}
        text={now.folded ? "Show the timeline" : "Fold the timeline away"}
        hint="b"
        onClick={() => update({ folded: !now.folded })}
      />
    </div>
  );
}
