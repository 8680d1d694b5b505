// An overview of the whole flame graph, while only a part of it is visible.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Span } from "../state/codec";
import { inks, isDark } from "../theme";
import { Icon } from "../widgets/icons";
import { prepareCanvas } from "../widgets/size";
import { palette } from "./colours";
import { drawOverview } from "./overview";
import type { Picture } from "./picture";

/** The visible part, in shares of the whole. */
export interface View {
  across: Span;
  down: Span;
}

/** True once the overview was closed, until the page is loaded again. */
const isClosed = signal(false);

const WIDTH = 168;
const HEIGHT = 96;

export function Minimap(props: {
  picture: Picture;
  view: View;
  /** Moves the centre of the visible part, in shares of the whole. */
  onMove: (x: number, y: number) => void;
}): JSX.Element {
  const { picture, view } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current && prepareCanvas(canvas.current, WIDTH, HEIGHT);
    if (context) drawOverview(context, picture, palette(picture.colour, isDark.value), inks().accent, WIDTH, HEIGHT);
  }, [picture, isDark.value, isClosed.value]);
  const move = (event: PointerEvent) => {
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (place: number) => Math.min(1, Math.max(0, place));
    props.onMove(share((event.clientX - left) / WIDTH), share((event.clientY - top) / HEIGHT));
  };
  if (isClosed.value)
    return (
      <button type="button" class="minimap-open button" onClick={() => (isClosed.value = false)}>
        Overview
      </button>
    );
  const percent = (share: number) => `${(100 * share).toFixed(3)}%`;
  const size = (span: Span) => percent(span.to - span.from);
  return (
    // The arrow keys move in the flame graph itself.
    <div
      class="minimap"
      aria-hidden="true"
      style={{ width: `${WIDTH}px`, height: `${HEIGHT}px` }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        event.preventDefault();
        move(event);
      }}
      onPointerMove={(event) => event.buttons === 1 && move(event)}
    >
      <canvas ref={canvas} />
      <i
        class="minimap-view"
        style={{
          left: percent(view.across.from),
          width: size(view.across),
          top: percent(view.down.from),
          height: size(view.down),
        }}
      />
      <button
        type="button"
        class="minimap-close"
        tabIndex={-1}
        title="Close the overview"
        onPointerDown={(event) => event.stopPropagation()}
        onClick={() => (isClosed.value = true)}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}
