// The menu that saves what the page shows.

import type { JSX } from "preact";
import { basename } from "../app";
import { printable } from "../format";
import { currentSource, shownEpoch } from "../state/answers";
import { info, status, tells, traceFacts, isExact } from "../state/session";
import { state } from "../state/state";
import { copy, notify } from "../widgets/controls";
import { Icon } from "../widgets/icons";
import { type MenuItem, openMenu, openMenuBelow } from "../widgets/menu";
import { tipOn } from "../widgets/tip";
import { browserTools, type Caption, pngFile, svgFile } from "./compose";
import { download, stem } from "./download";
import { type PictureName, pictureOf } from "./pictures";
import { exportAddress, FORMATS, reportAddress, reportState } from "./requests";

const PICTURES: readonly { name: PictureName; text: string }[] = [
  { name: "flame", text: "Flame graph" },
  { name: "timeline", text: "Timeline" },
];

export function SaveButton(): JSX.Element {
  return (
    <button
      type="button"
      class="button save-button"
      aria-haspopup="menu"
      onClick={(event) => {
        const { left, bottom } = event.currentTarget.getBoundingClientRect();
        openMenuBelow(
          event,
          items((more) => openMenu(left, bottom + 4, more)),
        );
      }}
      {...tipOn("Save a picture, the selection for another tool, or a report file")}
    >
      <Icon name="download" /> Save
    </button>
  );
}

/** The items of the menu. `open` opens another menu at the same place. */
function items(open: (items: MenuItem[]) => void): (MenuItem | "line")[] {
  const pictures = PICTURES.filter(({ name }) => pictureOf(name) !== null).flatMap(({ name, text }) => [
    { text: `${text} as SVG`, run: () => run(() => savePicture(name, "svg")) },
    { text: `${text} as PNG`, run: () => run(() => savePicture(name, "png")) },
  ]);
  const { files } = currentSource();
  const none = { text: "There is no picture on the screen", isDisabled: true, run: () => {} };
  if (!files) return pictures.length > 0 ? pictures : [none];
  const save = (path: string) => run(async () => download(...(await fetched(path))));
  const copyCommand = (path: string) =>
    run(async () => void copy((await files.command(path, shownEpoch())) ?? "", "the command"));
  // Other formats have no times.
  const formats = FORMATS.filter(({ format }) => (format !== "firefox" && format !== "perfetto") || tells().lifetimes);
  const address = (format: (typeof FORMATS)[number]["format"]) => exportAddress(state.value, traceFacts(), format);
  return [
    ...pictures,
    ...(pictures.length > 0 ? ["line" as const] : []),
    ...formats.map(({ format, text }) => ({
      text: `Selection for ${text}`.replace("for collapsed", "as collapsed"),
      run: () => save(address(format)),
    })),
    "line",
    {
      text: "Report file of this state",
      run: () => {
        notify("Writing the report file …", 60_000);
        const { isLess } = reportState(state.value);
        run(async () => {
          download(...(await fetched(reportAddress(state.value))));
          notify(isLess ? "Saved. The report file has no filters of its own: it shows the whole trace." : "Saved");
        });
      },
    },
    "line",
    {
      text: "Copy as command …",
      run: () =>
        open([
          ...formats.map(({ format, text }) => ({ text: `For ${text}`, run: () => copyCommand(address(format)) })),
          { text: "Report file", run: () => copyCommand(reportAddress(state.value)) },
        ]),
    },
  ];

  async function fetched(path: string): Promise<[Blob, string]> {
    const file = await files?.get(path, shownEpoch());
    if (!file) throw new Error("The server has no such file.");
    return [file.content, file.name];
  }
}

/** Does something that may fail, and says why if it does. */
function run(work: () => Promise<void>): void {
  work().catch((error: unknown) => notify(error instanceof Error ? error.message : String(error), 8000));
}

async function savePicture(name: PictureName, kind: "svg" | "png"): Promise<void> {
  const picture = pictureOf(name);
  if (!picture) return;
  const trace = status.value?.trace ?? "";
  const caption: Caption = {
    program: printable(basename(info.value?.trace.executable_name ?? "")) || "Unknown program",
    origin: printable(`Heapline ${status.value?.version ?? ""}, ${trace}.${isExact() ? "" : " ±: 95 % interval."}`),
  };
  const tools = browserTools();
  const content =
    kind === "svg"
      ? new Blob([svgFile(picture, caption, tools)], { type: "image/svg+xml" })
      : await pngFile(picture, caption, tools);
  download(content, `${stem(trace)}-${name}.${kind}`);
}
