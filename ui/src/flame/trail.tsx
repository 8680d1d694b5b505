import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { printable } from "../format";
import { tipOn } from "../widgets/tip";

/** A row with the ancestors of what is visible, which are scrolled out of sight: a click zooms to one. */
export function Trail(props: {
  /** The names of ancestors, outermost first; the first is everything. */
  names: readonly string[];
  isAtBottom: boolean;
  onLeave: () => void;
  onChoose: (place: number) => void;
}): JSX.Element {
  const box = useRef<HTMLElement>(null);
  // The nearest ancestors are at the end.
  useLayoutEffect(() => {
    if (box.current) box.current.scrollLeft = box.current.scrollWidth;
  });
  return (
    <nav
      class={`trail ${props.isAtBottom ? "is-at-bottom" : ""}`}
      aria-label="Ancestors out of sight"
      ref={box}
      onMouseLeave={props.onLeave}
    >
      {props.names.map((name, place) => (
        <button key={place} type="button" onClick={() => props.onChoose(place)} {...tipOn(printable(name))}>
          {printable(name)}
        </button>
      ))}
    </nav>
  );
}
