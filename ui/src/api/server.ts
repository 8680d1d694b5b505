// Responses of the server other than reports: see docs/api.md.

/** A heap snapshot of the same run, whose page is below `snapshots/`. */
export interface ListedSnapshot {
  name: string;
  /** Microseconds since 1970 at which it was taken, if the file says it. */
  time_us: number | null;
  file_bytes: number;
}

export interface Status {
  state: "loading" | "ready" | "failed";
  version: string;
  kind: "trace" | "snapshot" | "fleet";
  trace: string;
  against: string | null;
  snapshots: ListedSnapshot[];
  /** The command that opens the files in the viewer. */
  command: string;
  /** Identifies the traces, once they are loaded. */
  identity: string | null;
  /** True if the allocation sites of blocks are known: of a snapshot, if there is a recording of its run. */
  sites: boolean;
  /** Counts the updates of a growing trace. */
  epoch: number;
  /** True while the trace is being recorded. */
  recording: boolean;
  /** True if another file is in the place of one that was loaded. */
  overwritten: boolean;
  read: number;
  size: number | null;
  error: string | null;
  /** The link that opens a line of a source file in an editor, with `{file}` and `{line}`; null if there is none. */
  editor: string | null;
}

export interface ApiErrorBody {
  code: string;
  message: string;
  parameter: string | null;
  value: string | null;
  span: [number, number] | null;
  expected: string | null;
}
