import type { JSX } from "preact";
import { isDark } from "../theme";
import { type ColourMode, legend, palette } from "./colours";

/** The legend of a colour mode, if it has one. */
export function ColourLegend({ mode }: { mode: ColourMode }): JSX.Element | null {
  const key = legend(mode, palette(mode, isDark.value));
  return (
    key && (
      <span class="legend">
        {key.low}
        <span class="legend-ramp">
          {key.fills.map((fill, k) => (
            <i key={k} style={{ background: fill }} />
          ))}
        </span>
        {key.high}
      </span>
    )
  );
}
