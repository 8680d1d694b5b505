// The columns of the table: title, sort key, cell and export.

import type { JSX } from "preact";
import type { Figures, Hotspot, Hotspots } from "../api/types";
import { bytes, countShort, estimatedBytes, percent, seconds } from "../format";
import { Amount } from "../headline";
import { scopeText } from "../state/describe";
import { isRecording } from "../state/live";
import { momentOf, type State } from "../state/state";
import { isExact } from "../state/session";

export interface Column {
  name: State["sort"];
  title: string;
  help: string;
  /** The width, as a CSS grid track. */
  width: string;
  /** Columns with a lower number are kept when there is little space. */
  rank: number;
  value: (row: Hotspot) => number;
  cell: (row: Hotspot, report: Hotspots) => JSX.Element | string;
  /** The cell in plain text. */
  text: (row: Hotspot) => string;
}

function amount(figures: Figures | null): string {
  return figures && figures.bytes.value > 0 ? bytes(figures.bytes.value) : "-";
}

/** The columns that are meaningful in this state. */
export function columns(state: State, report: Hotspots): Column[] {
  // Blocks that are live at a moment are those that live long: their lives tell little of all that a function allocates.
  const chosen = momentOf(state);
  const live = chosen === "all" ? null : scopeText(chosen).toLowerCase();
  const moment = live?.replace(/^live (at )?(the )?/, "$1") ?? "";
  const ofWhich =
    live === null ? "" : ` Only of the blocks that are ${live}: "Allocated" above the table is about all.`;
  const all: (Column | null)[] = [
    {
      name: "own",
      title: live === null ? "Own" : `Own, ${live}`,
      help: `Memory allocated by the function itself${isExact() ? "" : ", with the 95 % interval"}, and its share of the total.`,
      width: "206px",
      rank: 0,
      value: (row) => row.allocated.bytes.value,
      cell: (row, report) => (
        <span class={`amount ${row.is_noise ? "is-noise" : ""}`}>
          <i class="bar" style={{ width: `${share(row.allocated, report.total.allocated)}%` }} />
          <span>{row.allocated.bytes.value > 0 ? <Amount estimate={row.allocated.bytes} /> : "-"}</span>
          <span class="muted">{percent(row.allocated.bytes.value, report.total.allocated.bytes.value)}</span>
        </span>
      ),
      text: (row) => estimatedBytes(row.allocated.bytes),
    },
    report.rows.some((row) => row.inclusive !== null)
      ? {
          name: "inclusive",
          title: "With callees",
          help: "Memory allocated by the function and its callees.",
          width: "92px",
          rank: 1,
          value: (row) => row.inclusive?.bytes.value ?? 0,
          cell: (row) => amount(row.inclusive),
          text: (row) => amount(row.inclusive),
        }
      : null,
    chosen === "peak"
      ? null
      : {
          name: "peak",
          title: "At peak",
          help: "The part that is live at the peak of the whole program.",
          width: "84px",
          rank: 2,
          value: (row) => row.live_at_peak.bytes.value,
          cell: (row) => amount(row.live_at_peak),
          text: (row) => amount(row.live_at_peak),
        },
    chosen === "end"
      ? null
      : {
          name: "end",
          title: isRecording() ? "Now" : "At end",
          help: `The part that is live ${isRecording() ? "now" : "at the end of the trace"}.`,
          width: "84px",
          rank: 2,
          value: (row) => row.live_at_end.bytes.value,
          cell: (row) => amount(row.live_at_end),
          text: (row) => amount(row.live_at_end),
        },
    {
      name: "blocks",
      title: "Blocks",
      help: "Number of blocks allocated by the function itself.",
      width: "72px",
      rank: 3,
      value: (row) => row.allocated.blocks.value,
      cell: (row) => countShort(row.allocated.blocks.value),
      text: (row) => countShort(row.allocated.blocks.value),
    },
    report.subject.tells.sizes
      ? {
          name: "size",
          title: "Mean size",
          help: "Mean block size, header included.",
          width: "80px",
          rank: 4,
          value: (row) => row.mean_size,
          cell: (row) => (row.mean_size > 0 ? bytes(row.mean_size) : "-"),
          text: (row) => (row.mean_size > 0 ? bytes(row.mean_size) : "-"),
        }
      : null,
    report.subject.tells.lifetimes
      ? {
          name: "life",
          title: live === null ? "Median life" : `Life, ${moment}`,
          help: `Median lifetime of its blocks, from allocation to collection. >: more than half were live at the end; this is the age of the oldest.${ofWhich}`,
          width: live === null ? "88px" : "100px",
          rank: 3,
          value: (row) => row.lifetime.p50 ?? (row.allocated.samples > 0 ? Number.POSITIVE_INFINITY : -1),
          cell: life,
          text: life,
        }
      : null,
    report.subject.tells.promotions
      ? {
          name: "promoted",
          title: live === null ? "Promoted" : `Promoted, ${moment}`,
          help: `How much of what it allocates on the minor heap lives long enough to be moved to the major heap.${ofWhich}`,
          width: live === null ? "76px" : "122px",
          rank: 4,
          value: (row) => row.promoted_percent ?? -1,
          cell: (row) => (row.promoted_percent === null ? "-" : `${row.promoted_percent.toFixed(1)} %`),
          text: (row) => (row.promoted_percent === null ? "-" : `${row.promoted_percent.toFixed(1)} %`),
        }
      : null,
  ];
  return all.filter((column) => column !== null);
}

function life(row: Hotspot): string {
  if (row.allocated.samples === 0) return "-";
  return row.lifetime.p50 === null ? `> ${seconds(row.oldest ?? 0)}` : seconds(row.lifetime.p50);
}

function share(part: Figures, whole: Figures): number {
  return whole.bytes.value > 0 ? (100 * part.bytes.value) / whole.bytes.value : 0;
}

/** Sorts the rows of a report file, which has them in one order. */
export function sorted(
  rows: readonly Hotspot[],
  all: readonly Column[],
  sort: State["sort"],
  ascending: boolean,
): Hotspot[] {
  const sign = ascending ? 1 : -1;
  if (sort === "name") return [...rows].sort((a, b) => -sign * (a.label.name < b.label.name ? -1 : 1));
  const column = all.find((one) => one.name === sort) ?? all[0];
  if (!column) return [...rows];
  return [...rows].sort((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    return x === y ? 0 : x < y ? -sign : sign;
  });
}

/** Exports the rows. */
export function exported(rows: readonly Hotspot[], all: readonly Column[], how: "text" | "csv" | "json"): string {
  if (how === "json") return JSON.stringify(rows, null, 2);
  if (how === "csv") {
    const head =
      "name,place,own_bytes,own_error,inclusive_bytes,peak_bytes,end_bytes,blocks,mean_size,median_life_s,promoted_percent";
    const lines = rows.map((row) =>
      [
        csvWord(row.label.name),
        csvWord(row.label.place ?? ""),
        row.allocated.bytes.value,
        row.allocated.bytes.error,
        row.inclusive?.bytes.value ?? "",
        row.live_at_peak.bytes.value,
        row.live_at_end.bytes.value,
        row.allocated.blocks.value,
        row.mean_size,
        row.lifetime.p50 ?? "",
        row.promoted_percent ?? "",
      ].join(","),
    );
    return [head, ...lines, ""].join("\n");
  }
  const cells = [
    [...all.map((column) => column.title), "Name"],
    ...rows.map((row) => [
      ...all.map((column) => column.text(row)),
      row.label.place ? `${row.label.name} (${row.label.place})` : row.label.name,
    ]),
  ];
  const widths = all.map((_, k) => Math.max(...cells.map((line) => (line[k] as string).length)));
  return cells
    .map((line) => line.map((text, k) => (k < widths.length ? text.padStart(widths[k] as number) : text)).join("  "))
    .join("\n");
}

/** A field of CSV. Names must not look like formulas to a spreadsheet. */
export function csvWord(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
