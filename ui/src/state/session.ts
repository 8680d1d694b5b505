// The trace, heap snapshot or dataset that the page shows, once it is known.

import { signal } from "@preact/signals";
import type { Status } from "../api/server";
import type { Capabilities, HeapSubject, Info } from "../api/types";
import type { VersionRuns } from "../fleet/types";
import type { TraceFacts } from "./questions";

export const status = signal<Status | null>(null);
export const info = signal<Info | null>(null);
/** True while the details of the recording are shown. */
export const showDetails = signal(false);
export const heap = signal<HeapSubject | null>(null);
/** The versions of a dataset. */
export const fleet = signal<readonly VersionRuns[] | null>(null);

/** Taken for granted until the trace is known. */
const ALL: Capabilities = { lifetimes: true, promotions: false, gc_parameters: false, lanes: true, sizes: true };

/** The properties that the source tells. Snapshots have no lifetimes, native programs no promotions. */
export function tells(): Capabilities {
  return info.value?.tells ?? ALL;
}

/** True if every block was recorded, so that figures have no sampling error. */
export function isExact(): boolean {
  return heap.value !== null || (info.value?.is_exact === true && !traceFacts().hasOther);
}

export function traceFacts(): TraceFacts {
  return {
    duration: info.value?.duration ?? 0,
    hasOther: status.value?.against != null,
  };
}
