// The trace that the page shows, once it is known.

import { signal } from "@preact/signals";
import type { Status } from "../api/server";
import type { Info } from "../api/types";
import { currentSource } from "./answers";
import type { TraceFacts } from "./questions";

export const status = signal<Status | null>(null);
export const info = signal<Info | null>(null);

/** Whether the source tells when blocks were allocated and died. Snapshots do not. */
export function tellsLifetimes(): boolean {
  return info.value?.tells.lifetimes ?? true;
}

/** Whether the source tells promotions: native programs have no minor and major heap. */
export function tellsPromotions(): boolean {
  return info.value?.tells.promotions ?? false;
}

export function traceFacts(): TraceFacts {
  return {
    duration: info.value?.duration ?? 0,
    slices: currentSource().slices,
    hasOther: status.value?.against != null,
  };
}
