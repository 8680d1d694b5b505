import type { JSX } from "preact";

/** The cell with a bar from the middle: to the right if something grew, to the left if it shrank. */
export function DiffBar(props: {
  change: number;
  /** The change that spans half of the cell. */
  largest: number;
}): JSX.Element {
  const width = `${(50 * Math.abs(props.change)) / props.largest}%`;
  return (
    <span role="cell" class="diff-bar">
      {props.change > 0 ? (
        <i class="is-up" style={{ left: "50%", width }} />
      ) : (
        <i class="is-down" style={{ right: "50%", width }} />
      )}
    </span>
  );
}
