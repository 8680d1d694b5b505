// Icons as paths on a grid of 16.

import type { JSX } from "preact";

const PATHS = {
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  moon: "M13.5 9.6A6 6 0 1 1 6.4 2.5a4.8 4.8 0 0 0 7.1 7.1z",
  help: "M6 6a2 2 0 1 1 2.6 1.9c-.5.2-.6.6-.6 1.1M8 11.4v.1M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13z",
  info: "M8 7.2v4M8 4.8v.1M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13z",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  link: "M6.8 9.2l2.4-2.4M7.5 4.5l1.4-1.4a2.8 2.8 0 0 1 4 4L11.5 8.5M4.5 7.5L3.1 8.9a2.8 2.8 0 0 0 4 4L8.5 11.5",
  terminal: "M1.5 2.5h13v11h-13zM4 6l2 2-2 2M8 10.5h4",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l4 4",
  close: "M4 4l8 8M12 4l-8 8",
  back: "M6 3.5L2.5 7 6 10.5M2.5 7H10a3.5 3.5 0 0 1 0 7H7",
  filter: "M1.5 3h13L9.5 8.8V13l-3-1.5V8.8z",
  warn: "M8 2l6.5 12h-13zM8 6.5v3.2M8 11.8v.1",
  zoom: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l4 4M5 7h4M7 5v4",
  down: "M4 6l4 4 4-4",
  up: "M4 10l4-4 4 4",
  right: "M6 4l4 4-4 4",
  plus: "M8 3v10M3 8h10",
  download: "M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M5 23l6-8 5 4 4-10 7 14z" />
    </svg>
  );
}
