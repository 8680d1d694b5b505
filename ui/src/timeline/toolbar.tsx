import type { JSX } from "preact";
import type { GroupLine, Series } from "../api/types";
import { printable } from "../format";
import { GROUP_NAMES } from "../state/describe";
import { tells } from "../state/session";
import { GROUPS, MEASURES, state, update } from "../state/state";
import { Chip, Explain, IconButton, Select } from "../widgets/controls";
import { Legend } from "./legend";
import { MEASURE_HELP, MEASURE_NAMES, PROMOTION_MEASURES, spanText } from "./scale";

/** Controls for measure, grouping and layers. */
export function TimelineBar(props: {
  series: Series | null;
  colours: { fills: string[]; other: string };
  hovered: number;
  hasServer: boolean;
  onHover: (layer: number) => void;
  onPick: (group: GroupLine) => void;
}): JSX.Element {
  const now = state.value;
  const measures = MEASURES.filter(
    (measure) =>
      (tells().promotions || !PROMOTION_MEASURES.has(measure)) && (tells().lifetimes || measure !== "allocation-rate"),
  );
  const isTold = (group: (typeof GROUPS)[number]) => tells().lifetimes || !["size", "age", "domain"].includes(group);
  const splits = props.hasServer
    ? [...GROUPS.filter(isTold), "none" as const]
    : GROUPS.filter((one) => one !== "size" && one !== "age" && isTold(one));
  return (
    <div class="timeline-bar">
      <Select
        label="Measure"
        value={now.measure}
        options={measures.map((value) => ({ value, text: MEASURE_NAMES[value] }))}
        onChange={(measure) => update({ measure })}
      />
      <Explain>{MEASURE_HELP[now.measure]}</Explain>
      <Select
        label="by"
        value={now.split}
        options={splits.map((value) => ({ value, text: value === "none" ? "nothing" : GROUP_NAMES[value] }))}
        onChange={(split) => update({ split, callers: [] })}
      />
      {now.callers.length > 0 && (
        <nav class="crumbs" aria-label="Callers">
          <button type="button" onClick={() => update({ callers: [] })}>
            all
          </button>
          {now.callers.map((name, place) => (
            <button
              key={place}
              type="button"
              disabled={place === now.callers.length - 1}
              onClick={() => update({ callers: now.callers.slice(0, place + 1) })}
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
      <IconButton
        icon="zoom"
        text={now.zoom ? "Zoom out" : "Zoom to the window"}
        isDisabled={!props.hasServer || (!now.zoom && !now.window)}
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
