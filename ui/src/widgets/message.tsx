import type { JSX } from "preact";

/** A message of the engine, which quotes words in backticks as terminals show them. */
export function Message({ text }: { text: string }): JSX.Element {
  return <>{text.split("`").map((part, k) => (k % 2 === 1 ? <code key={k}>{part}</code> : part))}</>;
}
