// A whole flame graph: its trees, and the bars that span the width.

import { SANS } from "../widgets/size";
import { bytes, countShort } from "../format";
import type { Inks } from "../theme";
import type { Pen } from "../save/pictures";
import { type ColourMode, palette } from "./colours";
import { type Band, cutOff, drawBand, fitted, type Look, ROW } from "./draw";
import type { Unit } from "./layout";
import type { Picture } from "./picture";

export function lookOf(colour: ColourMode, unit: Unit, isDark: boolean, inks: Inks): Look {
  return {
    palette: palette(colour, isDark),
    ground: inks.ground,
    outline: inks.text,
    accent: inks.accent,
    match: inks.match,
    matchText: inks.matchText,
    font: `11.5px ${SANS}`,
    figure: ({ total }) => (unit === "bytes" ? bytes(total.bytes.value) : countShort(total.blocks.value)),
  };
}

/** Draws a flame graph. `top` is the scroll offset, `offset` the empty space above it. */
export function paint(
  context: Pen,
  picture: Picture,
  bands: readonly Band[],
  view: { width: number; height: number; top: number; offset: number },
  look: Look,
  marks: (part: number) => { hovered: number; selected: number },
): void {
  bands.forEach((band, k) => drawBand(context, band, view, look, marks(k)));
  const isFocus = picture.parts.length > 1;
  picture.bar.texts.forEach((text, k) => {
    const y = (picture.bar.row + k) * ROW + view.offset - view.top;
    const isFold = k === picture.fold?.bar;
    context.fillStyle = look.accent;
    context.globalAlpha = isFocus ? 0.9 : isFold ? 0.07 : 0.14;
    context.fillRect(0, y, view.width - 1, ROW - 1);
    context.globalAlpha = 1;
    context.fillStyle = isFocus ? look.ground : look.outline;
    context.font = `${isFold ? 400 : 600} 11.5px ${SANS}`;
    context.textBaseline = "middle";
    const room = view.width - 10;
    context.fillText(isFold ? cutOff(context, text, room) : fitted(context, text, room), 5, y + ROW / 2);
  });
}
