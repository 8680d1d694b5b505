// The source view: the lines of a file with the memory that each allocates.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Hotspots, Source, SourceLine } from "../api/types";
import { bytes, count, percent, printable } from "../format";
import { Amount } from "../headline";
import { useKeys } from "../keys";
import { isFatal, useAnswer } from "../state/answers";
import { sourceFilesQuestion, sourceQuestion } from "../state/questions";
import { status } from "../state/session";
import { momentOf, state, undo, update } from "../state/state";
import { Empty, IconButton } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { tipOn } from "../widgets/tip";
import { VirtualRows } from "../widgets/virtual";
import { editorLink, largestLine, neighbour } from "./source-lines";
import { endText } from "../state/describe";
import { isRecording } from "../state/live";

export function SourceView(): JSX.Element {
  return state.value.source === "" ? <Files /> : <Lines />;
}

/** The lines of the chosen file. */
function Lines(): JSX.Element {
  const now = state.value;
  const answer = useAnswer<Source>(sourceQuestion(now));
  const { data, error, isStale } = answer;
  const [chosen, setChosen] = useState<number | null>(null);
  useEffect(() => setChosen(null), [now.source]);
  const lines = data?.lines ?? [];
  const first = useMemo(() => (data ? largestLine(data) : null), [data]);
  const current = chosen ?? first;
  const selected = lines.findIndex((line) => line.line === current);
  const most = Math.max(1, ...lines.map((line) => line.memory?.inclusive.allocated.bytes.value ?? 0));
  const focus = useMemo(() => new Set(data?.focus), [data]);
  const move = (step: 1 | -1) => {
    const line = neighbour(lines, current, step);
    if (line !== null) setChosen(line);
  };
  const editor = status.value?.editor ?? null;
  const link = editor !== null && data?.path && current !== null ? editorLink(editor, data.path, current) : null;
  const toFiles = () => update({ source: "" });
  useKeys("Source", [
    { key: "ArrowDown", does: "next line with memory", run: () => move(1) },
    { key: "ArrowUp", does: "previous line with memory", run: () => move(-1) },
    { key: "j", does: "next line with memory", run: () => move(1) },
    { key: "k", does: "previous line with memory", run: () => move(-1) },
    ...(link ? [{ key: "Enter", does: "open the line in the editor", run: () => window.open(link, "_self") }] : []),
    { key: "u", does: "undo", run: undo },
    { key: "Escape", does: "show all files", run: toFiles },
  ]);

  const isOfAll = momentOf(now) === "all";
  return (
    <div class="view">
      <div class="toolbar">
        <button type="button" class="button" onClick={toFiles} {...tipOn("Show all files (Esc)")}>
          Files
        </button>
        {data && <Title data={data} />}
        {data && <Version data={data} />}
        <span class="spring" />
        {link && (
          <a class="button" href={link}>
            Open line {current} in editor
          </a>
        )}
        <IconButton icon="up" text="Previous line with memory" hint="↑" onClick={() => move(-1)} />
        <IconButton icon="down" text="Next line with memory" hint="↓" onClick={() => move(1)} />
      </div>
      {data && <Notes data={data} />}
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : (
        <div class={`table-box source-box ${isOfAll ? "is-of-all" : ""} ${isStale ? "stale" : ""}`}>
          {data && lines.length > 0 && (
            <VirtualRows
              count={lines.length}
              selected={selected}
              margin={5}
              role="table"
              label="Source"
              head={
                <>
                  <span role="columnheader" class="number source-own" {...tipOn("Allocated by the line itself")}>
                    Own
                  </span>
                  <span
                    role="columnheader"
                    class="number"
                    {...tipOn("Allocated by the line and by the functions that it calls")}
                  >
                    With callees
                  </span>
                  {isOfAll && (
                    <>
                      <span
                        role="columnheader"
                        class="number source-moment"
                        {...tipOn("The part that is live at the peak, with callees")}
                      >
                        At peak
                      </span>
                      <span
                        role="columnheader"
                        class="number source-moment"
                        {...tipOn(`The part that is live ${endText()}, with callees`)}
                      >
                        {isRecording() ? "Now" : "At end"}
                      </span>
                    </>
                  )}
                  <span role="columnheader" class="number">
                    Line
                  </span>
                  <span role="columnheader">Source</span>
                </>
              }
              row={(index) => {
                const line = lines[index] as SourceLine;
                return (
                  <Row
                    key={line.line}
                    line={line}
                    index={index}
                    most={most}
                    isOfAll={isOfAll}
                    isSelected={index === selected}
                    isFocus={focus.has(line.line)}
                    onChoose={() => setChosen(line.line)}
                  />
                );
              }}
            />
          )}
          {data && lines.length === 0 && <Empty title="Nothing here">No line of this file has memory.</Empty>}
        </div>
      )}
    </div>
  );
}

/** The file, and its share of the selected memory. */
function Title({ data }: { data: Source }): JSX.Element {
  const { own, inclusive } = data.in_file;
  return (
    <p class="source-title">
      {data.function && <b>{printable(data.function.name)} </b>}
      <span class="mono">{printable(data.file)}</span>
      <span class="muted">
        {" "}
        whole file: {bytes(own.allocated.bytes.value)} own, {bytes(inclusive.allocated.bytes.value)} with callees (
        {percent(inclusive.allocated.bytes.value, data.total.allocated.bytes.value)})
      </span>
    </p>
  );
}

/** Says if the file may be another version than the one that was recorded. */
function Version({ data }: { data: Source }): JSX.Element | null {
  const last = data.lines.at(-1)?.line ?? 0;
  const isShorter = data.line_count !== null && last > data.line_count;
  if (!isShorter && !data.is_newer) return null;
  const help = isShorter
    ? "The file has fewer lines than when the program was built: it is another version."
    : "The file was changed after the recording started: lines may have moved.";
  return (
    <span class="source-version" role="note" {...tipOn(help)}>
      {isShorter ? "Another version" : "Changed since the recording"}
    </span>
  );
}

/** Notes on the text of the file. */
function Notes({ data }: { data: Source }): JSX.Element | null {
  const notes = [
    ...(data.problem ? [`The text is not shown: ${printable(data.problem)}.`] : []),
    ...(data.without_line
      ? [`${bytes(data.without_line.inclusive.allocated.bytes.value)} of this file have no known line.`]
      : []),
  ];
  if (notes.length === 0 && data.other_files.length === 0) return null;
  return (
    <div class="source-notes" role="note">
      {notes.join(" ")}
      {data.other_files.length > 0 && (
        <>
          {" "}
          Functions of this name are also in{" "}
          {data.other_files.map((file) => (
            <button type="button" class="link" key={file} onClick={() => update({ source: file })}>
              {printable(file)}
            </button>
          ))}
        </>
      )}
    </div>
  );
}

function Row(props: {
  line: SourceLine;
  index: number;
  most: number;
  isOfAll: boolean;
  isSelected: boolean;
  isFocus: boolean;
  onChoose: () => void;
}): JSX.Element {
  const { line, isOfAll } = props;
  const memory = line.memory;
  const classes = [
    "row",
    ...(memory ? ["has-memory"] : []),
    ...(memory?.is_noise ? ["is-noise"] : []),
    ...(props.isFocus ? ["is-focus"] : []),
    ...(props.isSelected ? ["is-selected"] : []),
  ];
  const share = memory ? memory.inclusive.allocated.bytes.value / props.most : 0;
  return (
    <div
      class={classes.join(" ")}
      role="row"
      aria-rowindex={props.index + 1}
      aria-selected={props.isSelected}
      onClick={props.onChoose}
    >
      <span role="cell" class="number source-own">
        {memory && memory.own.allocated.bytes.value > 0 && <Amount estimate={memory.own.allocated.bytes} />}
      </span>
      <span role="cell" class="number source-share" style={{ "--share": `${100 * share}%` }}>
        {memory && bytes(memory.inclusive.allocated.bytes.value)}
      </span>
      {isOfAll && (
        <>
          <span role="cell" class="number source-moment">
            {memory && live(memory.inclusive.live_at_peak.bytes.value)}
          </span>
          <span role="cell" class="number source-moment">
            {memory && live(memory.inclusive.live_at_end.bytes.value)}
          </span>
        </>
      )}
      <span role="cell" class="number source-number">
        {line.line}
      </span>
      <span role="cell" class="source-text">
        {line.text !== null && printable(line.text.replaceAll("\t", "    "))}
      </span>
    </div>
  );
}

function live(amount: number | null): string {
  return amount === 0 ? "" : bytes(amount ?? Number.NaN);
}

/** All files, to choose one. */
function Files(): JSX.Element {
  const answer = useAnswer<Hotspots>(sourceFilesQuestion(state.value));
  const { data, error, isStale } = answer;
  const [selected, setSelected] = useState(-1);
  const rows = data?.rows ?? [];
  const move = (to: number) => setSelected(Math.max(0, Math.min(rows.length - 1, to)));
  const show = (index: number) => {
    const row = rows[index];
    if (row) update({ source: row.label.name });
  };
  useKeys("Source", [
    { key: "ArrowDown", does: "down a row", run: () => move(selected + 1) },
    { key: "ArrowUp", does: "up a row", run: () => move(selected - 1) },
    { key: "j", does: "down a row", run: () => move(selected + 1) },
    { key: "k", does: "up a row", run: () => move(selected - 1) },
    { key: "Enter", does: "show the lines of the file", run: () => show(selected) },
  ]);
  return (
    <div class="view">
      <div class="toolbar">
        <span class="muted">
          {data && `${count(rows.length + data.hidden_rows)} files. Choose one to see its lines.`}
        </span>
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : (
        <div class={`table-box source-files ${isStale ? "stale" : ""}`}>
          {data && rows.length > 0 && (
            <VirtualRows
              count={rows.length}
              selected={selected}
              role="table"
              label="Files"
              head={
                <>
                  <span role="columnheader" class="number">
                    Own
                  </span>
                  <span role="columnheader" class="number">
                    With callees
                  </span>
                  <span role="columnheader">File</span>
                </>
              }
              row={(index) => {
                const row = rows[index];
                return (
                  <div
                    key={index}
                    class={`row ${index === selected ? "is-selected" : ""}`}
                    role="row"
                    aria-rowindex={index + 1}
                    aria-selected={index === selected}
                    onClick={() => show(index)}
                  >
                    <span role="cell" class="number">
                      {row && <Amount estimate={row.allocated.bytes} />}
                    </span>
                    <span role="cell" class="number">
                      {row?.inclusive && bytes(row.inclusive.bytes.value)}
                    </span>
                    <span role="cell" class="name mono">
                      {printable(row?.label.name ?? "")}
                    </span>
                  </div>
                );
              }}
            />
          )}
          {data && rows.length === 0 && <Empty title="Nothing here">No sampled block is in this selection.</Empty>}
        </div>
      )}
    </div>
  );
}
