// Heap snapshots that were taken while the trace was recorded.

import type { JSX } from "preact";
import { bytes, seconds } from "../format";
import { info, status } from "../state/session";

export function SnapshotsView(): JSX.Element {
  const started = info.value?.trace.start_time_us ?? 0;
  /** The time in the run, if both files tell theirs. */
  const taken = (time: number | null) => (time === null || started === 0 ? "unknown" : seconds((time - started) / 1e6));
  return (
    <div class="view">
      <p class="view-note muted">
        Heap snapshots of this run, the oldest first. A trace says where memory was allocated, a snapshot who keeps it
        alive.
      </p>
      <table class="snapshot-list">
        <thead>
          <tr>
            <th>Snapshot</th>
            <th>Taken at</th>
            <th>File</th>
          </tr>
        </thead>
        <tbody>
          {status.value?.snapshots.map(({ name, time_us, file_bytes }) => (
            <tr key={name}>
              <td>
                <a href={`snapshots/${encodeURIComponent(name)}/`}>{name}</a>
              </td>
              <td>{taken(time_us)}</td>
              <td>{bytes(file_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
