// Compares with a trace that is dropped onto the page, or chosen in the view Compare.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { ApiError } from "./api/source";
import { bytes, printable } from "./format";
import { currentSource } from "./state/answers";
import { isRecording } from "./state/live";
import { printState, state } from "./state/state";
import { notify } from "./widgets/controls";

/** The largest file that the server receives. */
const LARGEST = 256 * 2 ** 20;

/** Long enough to be read twice. */
const NOTICE_MS = 8000;

/** True while a file is held over the page. */
const isOver = signal(false);

/** The name of the file that is being sent. */
const sending = signal<string | null>(null);

/** True if the trace can be compared with another file now. */
export function canCompareWithFile(): boolean {
  return currentSource().compareWith !== null && !isRecording();
}

/** Compares the trace with a file: the page is loaded again, with both. */
export async function compareWithFile(file: File): Promise<void> {
  const { compareWith } = currentSource();
  const say = (text: string) => notify(text, NOTICE_MS);
  if (!compareWith) return say("A report file cannot be compared with another: use heapline view NEW --against OLD");
  if (isRecording()) return say("The trace is still being recorded: compare it when the recording has ended.");
  if (file.size > LARGEST) {
    return say(`${bytes(file.size)} is too large to be sent: use heapline view NEW --against OLD`);
  }
  sending.value = file.name;
  try {
    await compareWith(file);
    const shown = { ...state.value, view: "compare", diffShape: "flame", before: null, after: null } as const;
    history.pushState(null, "", `#${printState({ ...shown, node: "", range: null })}`);
    location.reload();
  } catch (error) {
    say(error instanceof ApiError ? error.message : `Cannot read ${file.name}`);
  } finally {
    sending.value = null;
  }
}

/** Chooses a file, as dropping one does. */
export function chooseFile(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.onchange = () => {
    const [file] = input.files ?? [];
    if (file) void compareWithFile(file);
  };
  input.click();
}

/** Takes files that are dropped anywhere on the page. */
export function DropLayer(): JSX.Element | null {
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      // Otherwise the browser opens the file.
      event.preventDefault();
      isOver.value = true;
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) isOver.value = false;
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      isOver.value = false;
      const [file] = event.dataTransfer?.files ?? [];
      if (file) void compareWithFile(file);
    };
    const controller = new AbortController();
    const options = { signal: controller.signal };
    document.addEventListener("dragover", over, options);
    document.addEventListener("dragleave", leave, options);
    document.addEventListener("drop", drop, options);
    return () => controller.abort();
  }, []);
  const text =
    sending.value !== null
      ? `Reading ${printable(sending.value)}`
      : isOver.value
        ? "Drop a trace to compare with it"
        : null;
  return (
    <div role="status" aria-live="polite">
      {text !== null && <div class="drop-layer">{text}</div>}
    </div>
  );
}
