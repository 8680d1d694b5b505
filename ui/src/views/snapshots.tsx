// Heap snapshots that were taken while the trace was recorded.

import type { JSX } from "preact";
import { status } from "../state/session";

export function SnapshotsView(): JSX.Element {
  return (
    <div class="view">
      <p class="view-note muted">
        Heap snapshots of this run, the oldest first. A trace says where memory was allocated, a snapshot who keeps it
        alive.
      </p>
      <ul class="snapshot-list">
        {status.value?.snapshots.map((name) => (
          <li key={name}>
            <a href={`snapshots/${encodeURIComponent(name)}/`}>{name}</a>
          </li>
        ))}
      </ul>
    </div>
  );
}
