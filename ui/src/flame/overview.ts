// Draws a whole flame graph small: rows as lines, without names.

import type { Palette } from "../colours";
import { firstRightOf } from "./layout";
import type { Picture } from "./picture";

export function drawOverview(
  context: CanvasRenderingContext2D,
  picture: Picture,
  colours: Palette,
  accent: string,
  width: number,
  height: number,
): void {
  const row = height / Math.max(1, picture.rows);
  // Rows may be thinner than a pixel: then not all of them are drawn.
  const every = Math.max(1, Math.floor(0.5 / row));
  context.globalAlpha = 0.35;
  context.fillStyle = accent;
  context.fillRect(0, picture.bar.row * row, width, Math.max(0.5, picture.bar.texts.length * row));
  context.globalAlpha = 1;
  for (const part of picture.parts) {
    const { layout } = part;
    for (let depth = part.folded; depth < layout.rows.length; depth += every) {
      const place = depth - part.folded;
      const y = (part.isUp ? part.baseRow - place - 1 : part.baseRow + place) * row;
      const boxes = layout.rows[depth] as Int32Array;
      // From the first box that ends after what is drawn already: a hundred thousand boxes are drawn in as many steps as
      // there are pixels.
      for (let x = 0; x < width; ) {
        const node = boxes[firstRightOf(layout, boxes, x / width)];
        if (node === undefined) break;
        const from = Math.max(x, (layout.left[node] as number) * width);
        const to = Math.max(from + 0.5, (layout.right[node] as number) * width);
        context.fillStyle = colours.fills[part.colours[node] as number] as string;
        context.fillRect(from, y, to - from, Math.max(0.5, row * every));
        x = to;
      }
    }
  }
}
