// Lines of a source file: those with memory, and links to them.

import type { Source, SourceLine } from "../api/types";

/** The line to begin with: the one of the request with most memory, or that of the file. */
export function largestLine({ lines, focus }: Pick<Source, "lines" | "focus">): number | null {
  const amount = (line: SourceLine) => line.memory?.inclusive.allocated.bytes.value ?? 0;
  const asked = new Set(focus);
  const meant = focus.length > 0 ? lines.filter((line) => asked.has(line.line)) : lines;
  let best: SourceLine | null = null;
  for (const line of meant) if (!best || amount(line) > amount(best)) best = line;
  return best?.line ?? null;
}

/** The next line with memory, or the previous one; null if there is none. */
export function neighbour(lines: readonly SourceLine[], from: number | null, step: 1 | -1): number | null {
  const after = lines.filter((line) => line.memory && (from === null || (line.line - from) * step > 0));
  return (step > 0 ? after[0] : after.at(-1))?.line ?? null;
}

/** The link that opens a line in an editor. The template is that of the user: see `heapline view --editor`. */
export function editorLink(template: string, path: string, line: number): string {
  const file = path.split("/").map(encodeURIComponent).join("/");
  // `vscode://file/{file}` means one slash; `x://{file}` needs its own.
  const joined = file.startsWith("/") ? template.replace(/([^/])\/\{file\}/g, "$1{file}") : template;
  return joined.replaceAll("{file}", () => file).replaceAll("{line}", String(line));
}
