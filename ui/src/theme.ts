// Light or dark theme: follows the system unless the user chooses. Used by canvases; everything else is CSS.

import { computed, effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const STORED = "heapline-theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(STORED);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    // Pages opened from disk may have no storage.
    return "system";
  }
}

const system = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system?.matches ?? false);
system?.addEventListener("change", (event) => {
  systemIsDark.value = event.matches;
});

export const theme = signal<Theme>(stored());
export const isDark = computed(() => theme.value === "dark" || (theme.value === "system" && systemIsDark.value));

/** Applies the theme to the document. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
  });
}

export function toggleTheme(): void {
  theme.value = isDark.value ? "light" : "dark";
  try {
    localStorage.setItem(STORED, theme.value);
  } catch {
    // Then the choice lasts as long as the page.
  }
}

/** The colours for canvases, read from the style sheet. */
export interface Inks {
  ground: string;
  text: string;
  muted: string;
  line: string;
  accent: string;
  match: string;
  matchText: string;
}

const known = new Map<boolean, Inks>();

export function inks(): Inks {
  let found = known.get(isDark.value);
  if (!found) {
    // Variables are only resolved to a colour that canvases accept when they are the colour of an element.
    const probe = document.createElement("span");
    document.body.append(probe);
    const ink = (name: string) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    found = {
      ground: ink("panel"),
      text: ink("text"),
      muted: ink("muted"),
      line: ink("line"),
      accent: ink("accent"),
      match: ink("match"),
      matchText: ink("match-text"),
    };
    probe.remove();
    known.set(isDark.value, found);
  }
  return found;
}
