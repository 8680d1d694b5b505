// A picture as a file: title, the picture itself, legend and origin.

import { SANS } from "../widgets/size";
import type { Inks } from "../theme";
import type { Pen, SavedPicture } from "./pictures";
import { SvgPen, type Tools } from "./svg";

/** The colours of files. They are light, whatever the theme of the page. */
const INKS: Inks = {
  ground: "#ffffff",
  text: "#25221d",
  muted: "#686157",
  line: "#e4dfd6",
  accent: "#b8480f",
  match: "#f5c542",
  matchText: "#2b2410",
};

const WIDTH = 1200;
const MARGIN = 16;
const LINE = 18;

/** Pixels of a PNG file for each unit of the picture. */
const SHARPNESS = 2;

/** The text around a picture. */
export interface Caption {
  /** The program. */
  program: string;
  /** The file and the program that wrote the picture. */
  origin: string;
}

interface LegendItem {
  fill: string;
  text: string;
  x: number;
  line: number;
}

/** Draws a picture and what is around it, and returns the height; without a pen, only that. */
function compose(picture: SavedPicture, caption: Caption, measure: (text: string) => number, pen: Pen | null): number {
  const width = WIDTH - 2 * MARGIN;
  const items = placed(picture.legend, width, measure);
  const top = MARGIN + LINE * (picture.selection === "" ? 2 : 3) + 4;
  const bottom = top + picture.height;
  const legendTop = bottom + 8;
  const height =
    legendTop + (items.length > 0 ? ((items.at(-1) as LegendItem).line + 1) * LINE + 6 : 0) + LINE + MARGIN / 2;
  if (!pen) return height;
  const write = (text: string, y: number, font: string, colour: string) => {
    pen.font = font;
    pen.fillStyle = colour;
    pen.textAlign = "left";
    pen.textBaseline = "top";
    pen.fillText(text, MARGIN, y);
  };
  pen.fillStyle = INKS.ground;
  pen.fillRect(0, 0, WIDTH, height);
  write(caption.program, MARGIN, `600 14px ${SANS}`, INKS.text);
  write(picture.title, MARGIN + LINE, `12px ${SANS}`, INKS.text);
  if (picture.selection !== "")
    write(cut(picture.selection, width, measure), MARGIN + 2 * LINE, `11px ${SANS}`, INKS.muted);
  pen.save();
  shifted(pen, MARGIN, top, (moved) => picture.draw(moved, width, INKS));
  pen.restore();
  for (const { fill, text, x, line } of items) {
    pen.fillStyle = fill;
    pen.fillRect(MARGIN + x, legendTop + line * LINE + 2, 10, 10);
    pen.font = `11px ${SANS}`;
    pen.fillStyle = INKS.text;
    pen.textBaseline = "top";
    pen.textAlign = "left";
    pen.fillText(text, MARGIN + x + 15, legendTop + line * LINE + 1);
  }
  write(caption.origin, height - LINE - MARGIN / 2 + 4, `10px ${SANS}`, INKS.muted);
  return height;
}

/** The items of a legend in lines. */
function placed(legend: SavedPicture["legend"], width: number, measure: (text: string) => number): LegendItem[] {
  let [x, line] = [0, 0];
  return legend.map(({ fill, text }) => {
    const shown = cut(text, width - 40, measure);
    const room = measure(shown) + 34;
    if (x > 0 && x + room > width) [x, line] = [0, line + 1];
    const item = { fill, text: shown, x, line };
    x += room;
    return item;
  });
}

function cut(text: string, width: number, measure: (text: string) => number): string {
  const all = measure(text);
  return all <= width ? text : `${text.slice(0, Math.max(1, Math.floor((width / all) * text.length) - 2))}…`;
}

/** Draws with a pen whose origin is elsewhere. */
function shifted(pen: Pen, left: number, top: number, draw: (pen: Pen) => void): void {
  const moves: Partial<Pen> = {
    moveTo: (x, y) => pen.moveTo(x + left, y + top),
    lineTo: (x, y) => pen.lineTo(x + left, y + top),
    rect: (x, y, w, h) => pen.rect(x + left, y + top, w, h),
    roundRect: (x: number, y: number, w: number, h: number, radius?: unknown) =>
      pen.roundRect(x + left, y + top, w, h, radius as number),
    arc: (x, y, radius, from, to) => pen.arc(x + left, y + top, radius, from, to),
    fillRect: (x, y, w, h) => pen.fillRect(x + left, y + top, w, h),
    strokeRect: (x, y, w, h) => pen.strokeRect(x + left, y + top, w, h),
    fillText: (text, x, y) => pen.fillText(text, x + left, y + top),
    strokeText: (text, x, y) => pen.strokeText(text, x + left, y + top),
  };
  draw(
    new Proxy(pen, {
      get: (_, name: keyof Pen) => {
        const moved = moves[name];
        if (moved) return moved;
        const value: unknown = pen[name];
        return typeof value === "function" ? value.bind(pen) : value;
      },
      set: (_, name, value) => Reflect.set(pen, name, value),
    }),
  );
}

/** A picture as an SVG file. */
export function svgFile(picture: SavedPicture, caption: Caption, tools: Tools): string {
  const pen = new SvgPen(tools);
  const height = compose(picture, caption, measuring(tools), pen);
  return pen.file(WIDTH, height, `${caption.program}: ${picture.title}`);
}

/** A picture as a PNG file. */
export async function pngFile(picture: SavedPicture, caption: Caption, tools: Tools): Promise<Blob> {
  const height = compose(picture, caption, measuring(tools), null);
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH * SHARPNESS;
  canvas.height = Math.ceil(height * SHARPNESS);
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("The browser cannot draw a picture of this size.");
  pen.scale(SHARPNESS, SHARPNESS);
  compose(picture, caption, measuring(tools), pen);
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("The browser cannot write a PNG file."))),
      "image/png",
    ),
  );
}

function measuring(tools: Tools): (text: string) => number {
  return (text) => tools.measure(text, `11px ${SANS}`).width;
}

/** The tools of this browser. */
export function browserTools(): Tools {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("The browser cannot draw.");
  const known = new Map<string, string>();
  return {
    measure: (text, font) => {
      context.font = font;
      return context.measureText(text);
    },
    colour: (css) => {
      let hex = known.get(css);
      if (hex === undefined) {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = css;
        context.fillRect(0, 0, 1, 1);
        const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
        hex = `#${[red, green, blue].map((part) => (part ?? 0).toString(16).padStart(2, "0")).join("")}`;
        known.set(css, hex);
      }
      return hex;
    },
  };
}
