// Context menus and menus of buttons. One is open at a time.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { printable } from "../format";
import { hideTip } from "./tip";

export interface MenuItem {
  text: string;
  /** The key that does the same without the menu, or a note. */
  hint?: string | undefined;
  isChecked?: boolean;
  isDisabled?: boolean;
  run: () => void;
}

interface OpenMenu {
  x: number;
  y: number;
  title: string | null;
  items: readonly (MenuItem | "line")[];
  /** The element that had the focus before, and gets it back. */
  opener: Element | null;
}

const menu = signal<OpenMenu | null>(null);

export function openMenu(x: number, y: number, items: OpenMenu["items"], title: string | null = null): void {
  hideTip();
  menu.value = { x, y, title, items, opener: document.activeElement };
}

/** Opens a menu below a button. */
export function openMenuBelow(event: Event, items: OpenMenu["items"]): void {
  const { left, bottom } = (event.currentTarget as HTMLElement).getBoundingClientRect();
  openMenu(left, bottom + 4, items);
}

export function closeMenu(): void {
  const opener = menu.value?.opener;
  menu.value = null;
  if (opener instanceof HTMLElement) opener.focus({ preventScroll: true });
}

export function MenuLayer(): JSX.Element | null {
  const shown = menu.value;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !shown) return;
    const { width, height } = element.getBoundingClientRect();
    const x = Math.max(4, Math.min(shown.x, innerWidth - width - 8));
    const y = shown.y + height > innerHeight - 8 ? Math.max(4, innerHeight - height - 8) : shown.y;
    element.style.left = `${x}px`;
    element.style.top = `${y}px`;
    element.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
  }, [shown]);
  useEffect(() => {
    if (!shown) return;
    const away = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) menu.value = null;
    };
    document.addEventListener("pointerdown", away, true);
    window.addEventListener("blur", closeMenu);
    return () => {
      document.removeEventListener("pointerdown", away, true);
      window.removeEventListener("blur", closeMenu);
    };
  }, [shown]);
  if (!shown) return null;

  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(box.current?.querySelectorAll<HTMLElement>("button:not(:disabled)") ?? [])];
    const place = buttons.indexOf(document.activeElement as HTMLElement);
    const move = (to: number) => buttons.at(to % buttons.length)?.focus();
    event.stopPropagation();
    if (event.key === "ArrowDown") move(place + 1);
    else if (event.key === "ArrowUp") move(place - 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(-1);
    else if (event.key === "Escape" || event.key === "Tab") closeMenu();
    else {
      // The key of an item works in the menu too.
      const item = shown.items.find((one) => one !== "line" && one.hint === event.key && !one.isDisabled);
      if (!item || item === "line") return;
      closeMenu();
      item.run();
    }
    event.preventDefault();
  };

  return (
    <div class="menu" role="menu" ref={box} onKeyDown={onKeyDown} onContextMenu={(event) => event.preventDefault()}>
      {shown.title && <div class="menu-title">{printable(shown.title)}</div>}
      {shown.items.map((item, place) =>
        item === "line" ? (
          <hr key={place} />
        ) : (
          <button
            key={place}
            type="button"
            role={item.isChecked === undefined ? "menuitem" : "menuitemcheckbox"}
            aria-checked={item.isChecked}
            disabled={item.isDisabled}
            onClick={() => {
              closeMenu();
              item.run();
            }}
          >
            <span class="menu-check">{item.isChecked ? "✓" : ""}</span>
            <span>{printable(item.text)}</span>
            {item.hint && <kbd>{item.hint}</kbd>}
          </button>
        ),
      )}
    </div>
  );
}
