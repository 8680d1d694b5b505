// Keyboard shortcuts. Each part of the page registers its own; `?` lists them.

import { useEffect, useRef } from "preact/hooks";

export interface Binding {
  /** The value of `KeyboardEvent.key`. */
  key: string;
  does: string;
  run: () => void;
}

interface Scope {
  name: string;
  bindings: { current: readonly Binding[] };
}

const scopes: Scope[] = [];

/** Registers the keys of a part of the page while it is mounted. The part added last has priority. */
export function useKeys(name: string, bindings: readonly Binding[]): void {
  const current = useRef(bindings);
  current.current = bindings;
  useEffect(() => {
    const scope = { name, bindings: current };
    scopes.push(scope);
    return () => {
      scopes.splice(scopes.indexOf(scope), 1);
    };
  }, [name]);
}

export function keyList(): { name: string; bindings: readonly Binding[] }[] {
  return scopes.map((scope) => ({ name: scope.name, bindings: scope.bindings.current }));
}

export function followKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open], [role=menu]")) return;
    const target = event.target as HTMLElement;
    if (target.closest("input, textarea, select") && event.key !== "Escape") return;
    for (const scope of [...scopes].reverse()) {
      const binding = scope.bindings.current.find((one) => one.key === event.key);
      if (!binding) continue;
      // Buttons and tabs handle these keys themselves.
      if ((event.key === "Enter" || event.key === " ") && target.closest("button, a, summary, [role=tab]")) return;
      event.preventDefault();
      binding.run();
      return;
    }
  });
}
