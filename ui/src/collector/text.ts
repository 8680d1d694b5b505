// The sentences about the garbage collector, like those of crates/text/src/gc.rs.

import type { Gc, PausePiece, WorstPause } from "../api/types";
import { bytes, count, percent, plural, seconds } from "../format";
import { PHASE_NAMES, PIECE_NAMES } from "./kinds";

/** Pieces of a pause that are named. */
const PIECES = 3;

/** Words as an amount of memory. */
export function wordBytes({ subject }: Pick<Gc, "subject">, words: number): string {
  return bytes(words * subject.word_bytes);
}

/** A rate of words; empty if no time has passed. */
export function wordRate(report: Gc, words: number): string {
  const time = report.words ? report.words.to - report.words.from : 0;
  return time > 0 ? `${wordBytes(report, words / time)}/s` : "";
}

export function headlineText(report: Gc): string {
  const { collector, pauses, words } = report;
  const parts = [`${percent(collector.percent, 100)} of the time`];
  if (pauses.max !== null) parts.push(`longest pause ${seconds(pauses.max)}`);
  const rate = words ? wordRate(report, words.promoted) : "";
  if (rate !== "") parts.push(`${rate} promoted`);
  return parts.join(", ");
}

/** True if a report is about a part of the run. */
export function isWindow({ from, to, subject }: Gc): boolean {
  return from > 0 || to + 1e-6 < subject.duration;
}

/** How often the collector ran. */
export function countsText(report: Gc): string {
  const { counts, from, to, pauses } = report;
  const time = isWindow(report) ? `from ${seconds(from)} to ${seconds(to)}` : `in ${seconds(to)}`;
  if (!counts) return `${plural(pauses.count, "pause")} ${time}.`;
  const parts = [
    plural(counts.minor_collections, "minor collection"),
    plural(counts.major_collections, "major collection"),
    ...(counts.forced_major_collections > 0 ? [`${count(counts.forced_major_collections)} forced`] : []),
    ...(counts.compactions > 0 ? [plural(counts.compactions, "compaction")] : []),
  ];
  return `${parts.join(", ")} ${time}. Times and counts are exact.`;
}

/** What the figures do not include. */
export function lossTexts({ missing_collections, refused_collections }: Gc): string[] {
  return [
    ...((missing_collections ?? 0) > 0
      ? [
          `${plural(missing_collections ?? 0, "minor collection")} that the runtime counted are missing from the recording: times and pauses are without them.`,
        ]
      : []),
    ...(refused_collections > 0
      ? [`${plural(refused_collections, "collection")} with impossible times are left out.`]
      : []),
  ];
}

/** The origin of the words. */
export function wordsNote(report: Gc): string {
  const { words, audit } = report;
  if (!words) return "Words allocated and promoted: unknown, since the runtime's counters are missing or inconsistent.";
  if (audit?.disagrees)
    return "The samples disagree with the runtime's counters by more than their error: figures of other views are off by as much.";
  const until = words.is_complete || isWindow(report) ? "" : ` up to ${seconds(words.to)}, when they were last read`;
  return `Counted by the runtime${until}, so they are exact.${audit ? " The samples agree with them." : ""}`;
}

function pieceText(pause: WorstPause, { kind, phase, length }: PausePiece): string {
  const name = `${PIECE_NAMES[kind]}${phase ? ` (${PHASE_NAMES[phase]})` : ""}`;
  return pause.pieces.length === 1 && pause.hidden_pieces === 0 ? name : `${name} ${seconds(length)}`;
}

/** The work of a pause: `minor collection 1.2 ms, major slice (mark) 3.4 ms`. */
export function piecesText(pause: WorstPause): string {
  const parts = pause.pieces.slice(0, PIECES).map((piece) => pieceText(pause, piece));
  const hidden = Math.max(0, pause.pieces.length - PIECES) + pause.hidden_pieces;
  return [...parts, ...(hidden > 0 ? [`and ${count(hidden)} more`] : [])].join(", ");
}

/** When a pause began. Pauses are short, so this is more exact than other times. */
export function startText({ start }: Pick<WorstPause, "start">): string {
  return `${start.toFixed(3)} s`;
}

/** The waits of domains for each other; null if there were none. */
export function stopsText({ stops }: Gc): string | null {
  const worst = stops?.worst_gathering;
  if (!stops || !worst) return null;
  return (
    `A minor collection stops all domains: ${plural(stops.lengths.count, "collection")} did, in which they waited ` +
    `${seconds(stops.waited)} for the last one to arrive, all together. The longest wait was ${seconds(worst.gathering)} ` +
    `at ${startText(worst)}, for domain ${worst.arrived_last}.`
  );
}
