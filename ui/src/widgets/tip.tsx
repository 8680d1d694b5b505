// A tooltip shared by the whole page, kept inside the window.

import { effect, signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { state } from "../state/state";

interface Tip {
  x: number;
  y: number;
  content: ComponentChildren;
}

const tip = signal<Tip | null>(null);

/** Shows a tooltip beside a point of the window. */
export function showTip(x: number, y: number, content: ComponentChildren): void {
  tip.value = { x, y, content };
}

export function hideTip(): void {
  tip.value = null;
}

/** Hides the tooltip when what it is about may be elsewhere: the page has changed, or was scrolled. */
export function followTips(): void {
  effect(() => {
    void state.value;
    hideTip();
  });
  window.addEventListener("scroll", hideTip, { capture: true, passive: true });
  window.addEventListener("blur", hideTip);
}

export function TipLayer(): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  const shown = tip.value;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !shown) return;
    const { width, height } = element.getBoundingClientRect();
    const room = { x: document.documentElement.clientWidth, y: document.documentElement.clientHeight };
    const x = shown.x + 14 + width > room.x ? Math.max(4, shown.x - 14 - width) : shown.x + 14;
    const y = shown.y + 16 + height > room.y ? Math.max(4, shown.y - 10 - height) : shown.y + 16;
    element.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  });
  if (!shown) return null;
  return (
    <div class="tip" ref={box} role="tooltip">
      {shown.content}
    </div>
  );
}

/** The attributes of an element that shows a tooltip on hover and keyboard focus. */
export function tipOn(
  content: ComponentChildren,
): Record<"onMouseEnter" | "onFocus" | "onMouseLeave" | "onBlur", (event: Event) => void> {
  const beside = (event: Event) => {
    const { left, bottom } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    showTip(left - 10, bottom - 8, content);
  };
  return { onMouseEnter: beside, onFocus: beside, onMouseLeave: hideTip, onBlur: hideTip };
}
