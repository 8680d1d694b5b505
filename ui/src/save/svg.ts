// Writes an SVG file by the calls that draw on a canvas.

import { SANS } from "../widgets/size";
import type { Pen } from "./pictures";

/** Digits after the point: more are not visible. */
const round = (n: number) => String(Math.round(n * 100) / 100);

/** Text as part of XML. What XML cannot contain is left out. */
export function xml(text: string): string {
  return text
    .replaceAll(
      /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      "",
    )
    .replaceAll(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] as string);
}

interface Style {
  fillStyle: string;
  strokeStyle: string;
  globalAlpha: number;
  lineWidth: number;
  font: string;
  dash: readonly number[];
  clip: string;
}

/** The properties that a canvas context and a file need of others: measured text, and colours that all programs know. */
export interface Tools {
  measure: (text: string, font: string) => TextMetrics;
  colour: (css: string) => string;
}

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "#000";
  strokeStyle: Pen["strokeStyle"] = "#000";
  globalAlpha = 1;
  lineWidth = 1;
  lineJoin: CanvasLineJoin = "miter";
  font = "";
  textAlign: CanvasTextAlign = "left";
  textBaseline: CanvasTextBaseline = "alphabetic";
  private dash: readonly number[] = [];
  private clipName = "";
  private clips = 0;
  private path = "";
  private readonly saved: Style[] = [];
  private readonly out: string[] = [];

  constructor(private readonly tools: Tools) {}

  /** The file. */
  file(width: number, height: number, title: string): string {
    const size = `width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}"`;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${xml(SANS)}" role="img" xml:space="preserve">`,
      `<title>${xml(title)}</title>`,
      ...this.out,
      "</svg>",
      "",
    ].join("\n");
  }

  beginPath(): void {
    this.path = "";
  }

  moveTo(x: number, y: number): void {
    this.path += `M${round(x)} ${round(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.path += `${this.path === "" ? "M" : "L"}${round(x)} ${round(y)}`;
  }

  closePath(): void {
    this.path += "Z";
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path += `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}Z`;
  }

  /** Corners are not round in files. */
  roundRect(x: number, y: number, width: number, height: number): void {
    this.rect(x, y, width, height);
  }

  /** A whole circle. */
  arc(x: number, y: number, radius: number): void {
    const r = round(radius);
    this.path += `M${round(x - radius)} ${round(y)}a${r} ${r} 0 1 0 ${round(2 * radius)} 0a${r} ${r} 0 1 0 ${round(-2 * radius)} 0Z`;
  }

  fill(): void {
    this.put(`<path d="${this.path}" ${this.filled()}/>`);
  }

  stroke(): void {
    const join = this.lineJoin === "round" ? ' stroke-linejoin="round"' : "";
    this.put(`<path d="${this.path}" ${this.stroked()}${join}/>`);
  }

  clip(): void {
    this.clips += 1;
    this.clipName = `clip${this.clips}`;
    this.out.push(`<clipPath id="${this.clipName}"><path d="${this.path}"/></clipPath>`);
  }

  save(): void {
    const { fillStyle, strokeStyle, globalAlpha, lineWidth, font, dash, clipName } = this;
    this.saved.push({
      fillStyle: fillStyle as string,
      strokeStyle: strokeStyle as string,
      globalAlpha,
      lineWidth,
      font,
      dash,
      clip: clipName,
    });
  }

  restore(): void {
    const style = this.saved.pop();
    if (!style) return;
    const { clip, ...rest } = style;
    Object.assign(this, rest);
    this.clipName = clip;
  }

  setLineDash(dash: Iterable<number>): void {
    this.dash = [...dash];
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.put(`<rect ${this.box(x, y, width, height)} ${this.filled()}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.put(`<rect ${this.box(x, y, width, height)} ${this.stroked()}/>`);
  }

  fillText(text: string, x: number, y: number): void {
    this.text(text, x, y, this.filled());
  }

  strokeText(text: string, x: number, y: number): void {
    this.text(text, x, y, `${this.stroked()} stroke-linejoin="round"`);
  }

  measureText(text: string): TextMetrics {
    return this.tools.measure(text, this.font);
  }

  private text(text: string, x: number, y: number, paint: string): void {
    const { weight, size } = fontOf(this.font);
    const anchor = { center: "middle", right: "end" }[this.textAlign as string];
    // Not all programs know baselines.
    const drop = { middle: 0.35, top: 0.8, bottom: -0.2 }[this.textBaseline as string] ?? 0;
    const place = `x="${round(x)}" y="${round(y + drop * size)}"`;
    const bold = weight === "400" ? "" : ` font-weight="${weight}"`;
    const align = anchor ? ` text-anchor="${anchor}"` : "";
    this.put(`<text ${place} font-size="${size}"${bold}${align} ${paint}>${xml(text)}</text>`);
  }

  private box(x: number, y: number, width: number, height: number): string {
    return `x="${round(x)}" y="${round(y)}" width="${round(Math.max(0, width))}" height="${round(Math.max(0, height))}"`;
  }

  private filled(): string {
    const alpha = this.globalAlpha < 1 ? ` fill-opacity="${round(this.globalAlpha)}"` : "";
    return `fill="${this.tools.colour(this.fillStyle as string)}"${alpha}`;
  }

  private stroked(): string {
    const alpha = this.globalAlpha < 1 ? ` stroke-opacity="${round(this.globalAlpha)}"` : "";
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    const colour = this.tools.colour(this.strokeStyle as string);
    return `fill="none" stroke="${colour}" stroke-width="${round(this.lineWidth)}"${alpha}${dash}`;
  }

  private put(element: string): void {
    this.out.push(this.clipName === "" ? element : `<g clip-path="url(#${this.clipName})">${element}</g>`);
  }
}

/** The weight and the size of a font such as `600 11.5px Inter, sans-serif`. Files have one family. */
function fontOf(font: string): { weight: string; size: number } {
  const match = /^(?:(\d+) )?([\d.]+)px /.exec(font);
  return { weight: match?.[1] ?? "400", size: Number(match?.[2] ?? 12) };
}
