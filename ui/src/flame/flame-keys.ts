import type { RefObject } from "preact";
import type { Binding } from "../keys";
import { state, undo, update } from "../state/state";
import { hideTip } from "../widgets/tip";

/** The keys of all flame graphs. `leave` is done by Escape if there is no search and no zoom to end. */
export function flameKeys(
  box: RefObject<HTMLInputElement | null>,
  leave?: { does: string; run: () => void },
): Binding[] {
  const now = state.value;
  return [
    { key: "/", does: "search", run: () => box.current?.focus() },
    { key: "t", does: "icicles or flames", run: () => update({ shape: now.shape === "icicle" ? "flame" : "icicle" }) },
    { key: "u", does: "undo", run: undo },
    {
      key: "Escape",
      does: `back: zoom out, end the search${leave ? `, ${leave.does}` : ""}`,
      run: () => {
        hideTip();
        if (document.activeElement === box.current) box.current?.blur();
        if (now.search !== "") update({ search: "" });
        else if (now.node !== "" || now.range) update({ node: "", range: null });
        else leave?.run();
      },
    },
  ];
}

/** The key of flame graphs of stacks that share frames. */
export function foldKey(): Binding {
  return {
    key: "m",
    does: "fold or unfold the frames that all stacks share",
    run: () => update({ unfolded: !state.value.unfolded }),
  };
}
