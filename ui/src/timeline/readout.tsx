// The values at a point of the timeline.

import type { JSX } from "preact";
import type { GroupLine, Series } from "../api/types";
import { percent, seconds } from "../format";
import { indexAt, type Plot } from "./draw";
import { groupName, type LayerColours } from "./layers";
import { estimated, measured } from "./scale";

export function Readout(props: {
  series: Series;
  /** The total without the blocks of the what-if. */
  without: Series | null;
  point: { index: number; layer: number };
  colours: LayerColours;
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
  const amount = estimated(measure, total, error ?? 0);
  return (
    <div class="readout">
      <div class="readout-head">
        <span>{seconds(series.times[point.index] ?? 0)}</span>
        <strong>{amount}</strong>
      </div>
      {props.without && (
        <div class="readout-without">
          <i class="dash" /> without it{" "}
          {measured(
            measure,
            props.without.total.values[indexAt(props.without.times, series.times[point.index] ?? 0)] ?? 0,
          )}
        </div>
      )}
      {high > total * 1.005 && <div class="readout-note">up to {measured(measure, high)} since the point before</div>}
      <table>
        <tbody>
          {rows.map(({ group, layer, value }) => (
            <tr key={layer} class={layer === point.layer ? "is-hovered" : ""}>
              <td>
                <i class="dot" style={{ background: group.is_other ? colours.other : colours.fills[layer] }} />
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
