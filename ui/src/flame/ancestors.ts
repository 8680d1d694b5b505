// The ancestors of what is visible, as far as they are scrolled out of sight.

import { type Band, ROW, rowTop } from "./draw";
import { pathTo } from "./layout";

/** The visible part of the picture, from its upper edge. */
export interface Sight {
  top: number;
  height: number;
}

/** True if the row of a depth is out of sight on the side of the root. */
function isPassed(band: Band, depth: number, sight: Sight): boolean {
  const y = rowTop(band, depth);
  // The row of the path itself covers one.
  return band.isUp ? y + ROW > sight.top + sight.height - ROW / 2 : y < sight.top + ROW / 2;
}

/** The number of rows from the root on that are out of sight. */
function passedRows(band: Band, sight: Sight): number {
  let depth = band.folded;
  while (depth < band.layout.rows.length && isPassed(band, depth, sight)) depth += 1;
  return depth - band.folded;
}

/**
 * The ancestors that are out of sight, outermost first: those of a box, or (-1) those that everything visible has in
 * common. Null if nothing is out of sight.
 */
export function passedAncestors(band: Band, sight: Sight, box: number): number[] | null {
  const rows = passedRows(band, sight);
  if (rows === 0) return null;
  const { layout, folded } = band;
  const isOutOfSight = (node: number) => {
    const depth = layout.nodes[node]?.depth ?? 0;
    return depth >= folded && depth < folded + rows;
  };
  if (box >= 0) return pathTo(layout, box).filter(isOutOfSight);
  const common: number[] = [];
  for (let depth = folded; depth < folded + rows; depth++) {
    const row = layout.rows[depth] as Int32Array;
    const spanning = row.find((node) => spans(band, node));
    if (spanning === undefined) break;
    common.push(spanning);
  }
  return common;
}

/** True if a box is as wide as what is visible. */
function spans(band: Band, node: number): boolean {
  const slack = (band.to - band.from) * 1e-6;
  return (
    (band.layout.left[node] as number) <= band.from + slack && (band.layout.right[node] as number) >= band.to - slack
  );
}
