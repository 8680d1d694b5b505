// Virtualised lists: only the visible rows are in the document.

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSize } from "./size";

export const ROW_HEIGHT = 23;
const SPARE_ROWS = 6;

/** A scrolling list of rows of the same height. `selected` is scrolled into view, with `margin` rows around it. */
export function VirtualRows(props: {
  count: number;
  selected: number;
  margin?: number;
  head: ComponentChildren;
  row: (index: number) => JSX.Element;
  role: "table" | "treegrid";
  label: string;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { height } = useSize(box);
  const [top, setTop] = useState(0);
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - SPARE_ROWS);
  const last = Math.min(props.count, Math.ceil((top + height) / ROW_HEIGHT) + SPARE_ROWS);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element || props.selected < 0) return;
    const y = props.selected * ROW_HEIGHT;
    // The header covers the height of the first row.
    const visible = element.clientHeight - 2 * ROW_HEIGHT;
    const margin = Math.min((props.margin ?? 0) * ROW_HEIGHT, visible / 2);
    if (y - margin < element.scrollTop) element.scrollTop = y - margin;
    else if (y + margin > element.scrollTop + visible) element.scrollTop = y + margin - visible;
  }, [props.selected]);

  const rows: JSX.Element[] = [];
  for (let index = first; index < last; index++) rows.push(props.row(index));
  return (
    <div
      class="rows"
      ref={box}
      role={props.role}
      aria-label={props.label}
      aria-rowcount={props.count}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="row row-head" role="row">
        {props.head}
      </div>
      <div class="rows-body" style={{ height: `${props.count * ROW_HEIGHT}px` }}>
        <div style={{ transform: `translateY(${first * ROW_HEIGHT}px)` }}>{rows}</div>
      </div>
    </div>
  );
}
