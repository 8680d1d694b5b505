// Responses of the server other than reports: see docs/api.md.

export interface Status {
  state: "loading" | "ready" | "failed";
  version: string;
  trace: string;
  against: string | null;
  /** The command that opens the traces in the viewer. */
  command: string;
  /** Identifies the traces, once they are loaded. */
  identity: string | null;
  /** Counts the updates of a growing trace. */
  epoch: number;
  /** True while the trace is being recorded. */
  recording: boolean;
  read: number;
  size: number | null;
  error: string | null;
}

export interface ApiErrorBody {
  code: string;
  message: string;
  parameter: string | null;
  value: string | null;
  span: [number, number] | null;
  expected: string | null;
}
