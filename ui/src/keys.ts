// Keys. Whatever is on the screen says which it understands; `?` lists them.

import { useEffect, useRef } from "preact/hooks";

export interface Binding {
  /** As `KeyboardEvent.key` has it. */
  key: string;
  does: string;
  run: () => void;
}

interface Scope {
  name: string;
  bindings: { current: readonly Binding[] };
}

const scopes: Scope[] = [];

/** The keys of a part of the page, for as long as it is there. The part added last goes first. */
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
      // Buttons and tabs have their own use for these.
      if ((event.key === "Enter" || event.key === " ") && target.closest("button, a, summary, [role=tab]")) return;
      event.preventDefault();
      binding.run();
      return;
    }
  });
}
