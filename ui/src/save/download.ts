/** Saves a file as the browser saves downloads. */
export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser reads it after this.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The name of a file without folders and without its ending, with nothing that file systems do not allow. */
export function stem(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
  const safe = name.replaceAll(/[^\w.-]+/g, "_").replace(/^[.-]+/, "");
  return safe.slice(0, 80) || "heapline";
}
