// The canvas of the flame graph: drawing, hovering, zooming, keys.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TreeNode } from "./tree";
import { bytes, percent } from "../format";
import { type Binding, useKeys } from "../keys";
import { usePicture } from "../save/pictures";
import { canUndo, state, undo, update } from "../state/state";
import { inks, isDark } from "../theme";
import { copy } from "../widgets/controls";
import { openMenu } from "../widgets/menu";
import { prepareCanvas, useSize } from "../widgets/size";
import { hideTip, showTip } from "../widgets/tip";
import type { NodeTools } from "./actions";
import { passedAncestors } from "./ancestors";
import type { Span } from "../state/codec";
import { legend, palette } from "./colours";
import { type Band, changeText, depthAt, fullName, ROW, rowTop } from "./draw";
import { FoldTip } from "./fold-tip";
import { neighbour, nodeAt } from "./layout";
import { Minimap } from "./minimap";
import { lookOf, paint } from "./paint";
import { moved, zoomedAround } from "./pan";
import { bandOf, locate, nameOf, type Picture, zoomedPicture } from "./picture";
import { type Found, outermost } from "./search";
import { Trail } from "./trail";

const ANIMATION_MS = 160;

/** Delay before a gesture is in the URL. */
const REST_MS = 150;

/** Pixels that the pointer moves before it drags. */
const DRAG = 4;

/** Rows of a saved picture: browsers limit the height of images. */
const SAVED_ROWS = 350;

const NOT_MARKED = { hovered: -1, selected: -1 };
/** There is no room for an overview beside boxes in windows of this width. */
const NARROW = 500;

interface Place {
  part: number;
  node: number;
}

export function FlameCanvas(props: {
  picture: Picture;
  /** The question that the picture is the answer to: with another one it is scrolled to its start. */
  of: string | null;
  found: (Found | null)[];
  /** Counts how often the next match of the search was asked for. */
  jumps: number;
  isBottomUp: boolean;
  tools: NodeTools;
  describe: string;
  /** The title of the saved picture, and the selection that it shows. */
  caption: string;
  selection: string;
}): JSX.Element {
  const { picture } = props;
  const now = state.value;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, height } = useSize(scroller);
  const [hovered, setHovered] = useState<Place | null>(null);
  const [selected, setSelected] = useState<Place | null>(null);
  const selectedName = useRef("");
  const [top, setTop] = useState(0);
  const zoomed = useMemo(() => locate(picture, now.node), [picture, now.node]);
  const ranges = useAnimatedRanges(picture, zoomed);
  const [gesture, setGesture] = useState<{ range: Span | null } | null>(null);
  const rest = useRef(0);
  const tipFrame = useRef(0);
  const drag = useRef<{ x: number; y: number; isMoved: boolean } | null>(null);
  const contentHeight = Math.max(picture.rows * ROW + 4, 0);
  // Flames grow from the bottom.
  const isStanding = picture.parts.length === 1 && picture.parts[0]?.isUp === true;
  const offset = isStanding ? Math.max(0, height - contentHeight) : 0;

  // At once: the next key may select a box of the new picture.
  useLayoutEffect(() => {
    // The numbers of boxes are those of the picture before, their names are not.
    const same = locate(picture, selectedName.current);
    setSelected(same && nodeOf(same).depth >= (picture.parts[same.part]?.folded ?? 0) ? same : null);
    setHovered(null);
    hideTip();
  }, [picture]);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    if (picture.parts.length > 1) element.scrollTop = Math.max(0, picture.bar.row * ROW - element.clientHeight / 3);
    else if (isStanding) element.scrollTop = element.scrollHeight;
    setTop(element.scrollTop);
  }, [props.of, isStanding]);

  // The width of a zoomed graph is not everything: it has its own amount and share.
  const shown =
    zoomed && picture.parts.length === 1
      ? zoomedPicture(picture, picture.parts[zoomed.part]?.layout.nodes[zoomed.node] as TreeNode, now.unit)
      : picture;

  const bands = picture.parts.map((part, k): Band => {
    const band = bandOf(part, props.found[k] ?? null, -1, offset);
    const free = gesture ? gesture.range : now.range;
    const range = k === 0 && (gesture || free) ? (free ?? { from: 0, to: 1 }) : ranges[k];
    return range ? { ...band, from: range.from, to: range.to } : band;
  });

  useEffect(() => {
    if (!canvas.current || width === 0 || height === 0) return;
    const context = prepareCanvas(canvas.current, width, height);
    if (!context) return;
    const marks = (k: number) => ({
      hovered: hovered?.part === k ? hovered.node : -1,
      selected: selected?.part === k ? selected.node : -1,
    });
    const look = lookOf(picture.colour, now.unit, isDark.value, inks());
    paint(context, shown, bands, { width, height, top, offset }, look, marks);
  });

  usePicture("flame", () => {
    const rows = Math.min(picture.rows, SAVED_ROWS);
    const key = legend(picture.colour, palette(picture.colour, false));
    return {
      title: `${props.caption}${rows < picture.rows ? `; the first ${rows} of ${picture.rows} rows` : ""}`,
      height: rows * ROW,
      selection: props.selection,
      legend: key
        ? key.fills.map((fill, k) => ({
            fill,
            text: k === 0 ? key.low : k === key.fills.length - 1 ? key.high : "",
          }))
        : [],
      draw: (pen, width, inks) => {
        // Flames stand on the last row.
        const top = isStanding ? (picture.rows - rows) * ROW : 0;
        const flat = bands.map((band) => ({ ...band, base: band.base - offset }));
        const look = lookOf(picture.colour, now.unit, false, inks);
        paint(pen, shown, flat, { width, height: rows * ROW, top, offset: 0 }, look, () => NOT_MARKED);
      },
    };
  });

  /** The box at a place, or the number of the bar. */
  const placeAt = (event: MouseEvent): Place | number | null => {
    const bounds = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const y = event.clientY - bounds.top + top;
    const row = Math.floor((y - offset) / ROW);
    const bar = row - picture.bar.row;
    if (bar >= 0 && bar < picture.bar.texts.length) return bar;
    for (const [part, band] of bands.entries()) {
      const depth = depthAt(band, y);
      if (depth < 0) continue;
      const node = nodeAt(band.layout, depth, band.from + (x / width) * (band.to - band.from));
      if (node >= 0) return { part, node };
    }
    return null;
  };

  /** The first box that is drawn: in preorder, what is folded comes before. */
  const first: Place = { part: 0, node: picture.parts[0]?.folded ?? 0 };
  const nodeOf = (place: Place): TreeNode => picture.parts[place.part]?.layout.nodes[place.node] as TreeNode;
  const zoomTo = (place: Place | null) =>
    update({ node: place ? nameOf(picture, place.part, place.node) : "", range: null });

  /** Shows a part of the width at once, and has it in the URL when the gesture rests. */
  const show = (range: Span | null) => {
    setGesture({ range });
    setHovered(null);
    hideTip();
    clearTimeout(rest.current);
    rest.current = window.setTimeout(() => {
      update({ range, ...(range === null ? { node: "" } : {}) }, "range");
      setGesture(null);
    }, REST_MS);
  };

  const onWheel = (event: WheelEvent) => {
    const band = bands[0];
    if (!band || width === 0) return;
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      const { left } = (canvas.current as HTMLCanvasElement).getBoundingClientRect();
      const place = band.from + ((event.clientX - left) / width) * (band.to - band.from);
      show(zoomedAround(band, place, Math.exp(event.deltaY / 300)));
    } else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY) && band.to - band.from < 1) {
      show(moved(band, (across / width) * (band.to - band.from)));
    } else return;
    event.preventDefault();
  };

  const onPointerMove = (event: PointerEvent) => {
    const active = drag.current;
    const [band, element] = [bands[0], scroller.current];
    if (!active || !band || !element || event.buttons !== 1) return;
    const [dx, dy] = [event.clientX - active.x, event.clientY - active.y];
    if (!active.isMoved && Math.hypot(dx, dy) < DRAG) return;
    if (!active.isMoved) canvas.current?.setPointerCapture(event.pointerId);
    drag.current = { x: event.clientX, y: event.clientY, isMoved: true };
    element.scrollTop -= dy;
    if (band.to - band.from < 1) show(moved(band, (-dx / width) * (band.to - band.from)));
  };

  const onMouseMove = (event: MouseEvent) => {
    if (drag.current?.isMoved && event.buttons === 1) return;
    const place = placeAt(event);
    if (place === null || typeof place === "number") {
      setHovered(null);
      if (place !== null && place === picture.fold?.bar)
        showTip(event.clientX, event.clientY, <FoldTip {...picture.fold} />);
      else hideTip();
      return;
    }
    setHovered(place);
    const isBottomUp = props.isBottomUp || place.part === 1;
    showTip(event.clientX, event.clientY, props.tools.tip(nodeOf(place), place.node, isBottomUp));
  };

  const onClick = (event: MouseEvent) => {
    const place = placeAt(event);
    // The second click of a double click would zoom out again.
    if (event.detail > 1 || drag.current?.isMoved) return;
    if (place !== null && place === picture.fold?.bar) update({ unfolded: true });
    else if (typeof place === "number") zoomTo(null);
    else if (place) {
      setSelected(place);
      const isZoomed = zoomed && zoomed.part === place.part && zoomed.node === place.node;
      zoomTo(isZoomed ? null : place);
    }
  };

  const onContextMenu = (event: MouseEvent) => {
    event.preventDefault();
    const place = placeAt(event);
    if (place === null || typeof place === "number") return;
    setSelected(place);
    const node = nodeOf(place);
    openMenu(
      event.clientX,
      event.clientY,
      [
        { text: "Zoom in", hint: "z", run: () => zoomTo(place) },
        ...props.tools.menu(node, place.node),
        "line",
        { text: "Undo", hint: "u", isDisabled: !canUndo(), run: undo },
      ],
      fullName(node),
    );
  };

  const move = (way: "up" | "down" | "left" | "right") => {
    const from = selected ?? zoomed;
    if (!from) return select(nodeOf(first) ? first : null);
    const isUp = picture.parts[from.part]?.isUp ?? false;
    const layout = picture.parts[from.part]?.layout;
    if (!layout) return;
    const kin = way === "left" || way === "right" ? way : (way === "down") !== isUp ? "child" : "parent";
    const node = neighbour(layout, from.node, kin);
    const isFolded = node >= 0 && (layout.nodes[node] as TreeNode).depth < (picture.parts[from.part]?.folded ?? 0);
    if (isFolded) return;
    if (node >= 0) select({ part: from.part, node });
    // Past the focus, to its other side.
    else if (kin === "parent" && picture.parts.length > 1) {
      const other = { part: 1 - from.part, node: 0 };
      if (picture.parts[other.part]?.layout.nodes.length) select(other);
    }
  };

  const select = (place: Place | null) => {
    setSelected(place);
    // The keys are now about this box, wherever the mouse rests.
    setHovered(null);
    hideTip();
    cancelAnimationFrame(tipFrame.current);
    const element = scroller.current;
    const band = place && bands[place.part];
    if (!element || !place || !band) return;
    const y = rowTop(band, nodeOf(place).depth);
    // The row next to it may be covered by the ancestors.
    if (y - ROW < element.scrollTop) element.scrollTop = y - ROW;
    else if (y + 2 * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = y + 2 * ROW - element.clientHeight;
    // Scrolling hides tips before the next frame.
    tipFrame.current = requestAnimationFrame(() => {
      const bounds = canvas.current?.getBoundingClientRect();
      if (!bounds) return;
      const [left, right] = [band.layout.left[place.node] as number, band.layout.right[place.node] as number];
      const middle = ((left + right) / 2 - band.from) / (band.to - band.from);
      const x = bounds.left + Math.min(1, Math.max(0, middle)) * bounds.width;
      const isBottomUp = props.isBottomUp || place.part === 1;
      const tip = props.tools.tip(nodeOf(place), place.node, isBottomUp);
      showTip(x, bounds.top + y - element.scrollTop + ROW / 2, tip);
    });
  };

  useLayoutEffect(() => {
    const [match, part] = [props.found[0], picture.parts[0]];
    if (props.jumps === 0 || !match || !part) return;
    const matches = outermost(part.layout.nodes, match);
    const node = matches[(props.jumps - 1) % matches.length];
    if (node !== undefined) select({ part: 0, node });
  }, [props.jumps]);

  // The box that the mouse or the keyboard has moved to last.
  const chosen = hovered ?? selected;
  const bindings: Binding[] = [
    { key: "ArrowDown", does: "down a row", run: () => move("down") },
    { key: "ArrowUp", does: "up a row", run: () => move("up") },
    { key: "ArrowLeft", does: "to the left", run: () => move("left") },
    { key: "ArrowRight", does: "to the right", run: () => move("right") },
    { key: "Enter", does: "zoom in on the selected box", run: () => selected && zoomTo(selected) },
    { key: "z", does: "zoom in on the selected box, or the one pointed at", run: () => chosen && zoomTo(chosen) },
    ...props.tools.actions.map((action) => ({
      key: action.key,
      does: action.text.toLowerCase(),
      run: () => {
        if (chosen && nodeOf(chosen).kind !== "other") action.run(nodeOf(chosen), chosen.node);
      },
    })),
    { key: "c", does: "copy the name", run: () => chosen && void copy(nodeOf(chosen).label.name, "the name") },
  ];
  useKeys("Flame graph", bindings);

  const spoken = selected && nodeOf(selected);
  selectedName.current = selected ? nameOf(picture, selected.part, selected.node) : selectedName.current;
  const [band] = bands;
  // The box that the mouse or the keyboard is at tells whose ancestors; without one, those of everything visible.
  const passed =
    band && height > 0 ? passedAncestors(band, { top, height }, chosen?.part === 0 ? chosen.node : -1) : null;
  const isPartial = band !== undefined && (contentHeight > height + 1 || band.to - band.from < 1);
  return (
    <>
      <div class="flame-scroller" ref={scroller} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        <div class="flame-sticky">
          <canvas
            ref={canvas}
            tabIndex={0}
            role="application"
            aria-label={`${props.describe}. Arrow keys move, Enter zooms in, ? lists all keys. The tab Tree has the same as text.`}
            onWheel={onWheel}
            onPointerDown={(event) => {
              drag.current = { x: event.clientX, y: event.clientY, isMoved: false };
            }}
            onPointerMove={onPointerMove}
            onMouseMove={onMouseMove}
            onMouseLeave={(event) => {
              // On the way to an ancestor, it is still about that box.
              if (!(event.relatedTarget instanceof Element && event.relatedTarget.closest(".trail"))) setHovered(null);
              hideTip();
            }}
            onBlur={() => {
              cancelAnimationFrame(tipFrame.current);
              hideTip();
            }}
            onClick={onClick}
            onContextMenu={onContextMenu}
            onFocus={() => !selected && picture.parts[0]?.layout.nodes.length && setSelected(zoomed ?? first)}
          />
        </div>
        <div style={{ height: `${Math.max(0, contentHeight - height)}px` }} />
        <span class="spoken" aria-live="polite">
          {spoken &&
            `${fullName(spoken)}: ${bytes(spoken.total.bytes.value)}, ${percent(spoken.total[now.unit].value, picture.total[now.unit].value)}${changeText(spoken)}`}
        </span>
      </div>
      {passed && (
        <Trail
          names={[picture.bar.texts.join(" › "), ...passed.map((node) => nodeOf({ part: 0, node }).label.name)]}
          isAtBottom={isStanding}
          onLeave={() => setHovered(null)}
          onChoose={(place) => {
            const node = place === 0 ? null : { part: 0, node: passed[place - 1] as number };
            zoomTo(node);
            if (node) select(node);
            else if (scroller.current) scroller.current.scrollTop = isStanding ? contentHeight : picture.bar.row * ROW;
          }}
        />
      )}
      {isPartial && width > NARROW && (
        <Minimap
          picture={picture}
          view={{
            across: { from: band.from, to: band.to },
            down: { from: (top - offset) / contentHeight, to: Math.min(1, (top - offset + height) / contentHeight) },
          }}
          onMove={(x, y) => {
            if (scroller.current) scroller.current.scrollTop = y * contentHeight - height / 2;
            if (band.to - band.from < 1) show(moved(band, x - (band.from + band.to) / 2));
          }}
        />
      )}
    </>
  );
}

/** Animates the visible range of each tree towards the zoomed one. */
function useAnimatedRanges(picture: Picture, zoomed: Place | null): { from: number; to: number }[] {
  const goal = picture.parts.map((part, k) =>
    zoomed?.part === k
      ? { from: part.layout.left[zoomed.node] as number, to: part.layout.right[zoomed.node] as number }
      : { from: 0, to: 1 },
  );
  const [shown, setShown] = useState({ picture, ranges: goal });
  const last = useRef(shown.ranges);
  if (shown.picture !== picture) last.current = goal;
  const name = zoomed ? `${zoomed.part}.${zoomed.node}` : "";

  useEffect(() => {
    const isStill = shown.picture !== picture || matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isStill) {
      last.current = goal;
      setShown({ picture, ranges: goal });
      return;
    }
    const from = last.current;
    const start = performance.now();
    let request = requestAnimationFrame(function step(time) {
      const share = Math.min(1, Math.max(0, (time - start) / ANIMATION_MS));
      const eased = 1 - (1 - share) ** 3;
      const ranges = goal.map((to, k) => {
        const before = from[k] ?? to;
        return share === 1
          ? to
          : { from: before.from + (to.from - before.from) * eased, to: before.to + (to.to - before.to) * eased };
      });
      last.current = ranges;
      setShown({ picture, ranges });
      if (share < 1) request = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(request);
  }, [picture, name]);

  return shown.picture === picture ? shown.ranges : goal;
}
