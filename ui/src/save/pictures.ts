// The pictures on the screen that can be saved. Each part of the page that draws one registers it while it is mounted.

import { useEffect, useRef } from "preact/hooks";
import type { Inks } from "../theme";

/** The part of a canvas' context that pictures are drawn with: files are written by a second implementation of it. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | "fillStyle"
  | "strokeStyle"
  | "globalAlpha"
  | "lineWidth"
  | "lineJoin"
  | "font"
  | "textAlign"
  | "textBaseline"
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "closePath"
  | "rect"
  | "roundRect"
  | "arc"
  | "fill"
  | "stroke"
  | "clip"
  | "save"
  | "restore"
  | "setLineDash"
  | "fillRect"
  | "strokeRect"
  | "fillText"
  | "strokeText"
  | "measureText"
>;

/** A picture to be saved. It is always light, because it may be printed. */
export interface SavedPicture {
  /** Its content, with the total and its error. */
  title: string;
  height: number;
  /** The selection in the syntax of queries; empty if it is everything. */
  selection: string;
  legend: readonly { fill: string; text: string }[];
  draw: (pen: Pen, width: number, inks: Inks) => void;
}

export type PictureName = "flame" | "timeline";

const shown = new Map<PictureName, () => SavedPicture | null>();

/** Offers a picture to be saved while a part of the page is mounted. `make` returns null while there is none. */
export function usePicture(name: PictureName, make: () => SavedPicture | null): void {
  const current = useRef(make);
  current.current = make;
  useEffect(() => {
    shown.set(name, () => current.current());
    return () => {
      shown.delete(name);
    };
  }, [name]);
}

/** The picture on the screen, if it is there. */
export function pictureOf(name: PictureName): SavedPicture | null {
  return shown.get(name)?.() ?? null;
}
