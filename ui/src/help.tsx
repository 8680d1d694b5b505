// Help: what the page shows and which keys it knows.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { keyList } from "./keys";
import { IconButton } from "./widgets/controls";

const isOpen = signal(false);

export function openHelp(): void {
  isOpen.value = true;
}

const KEY_NAMES: Record<string, string> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
};

export function HelpDialog(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen.value]);
  const close = () => {
    isOpen.value = false;
  };
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-label="Help"
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      {isOpen.value && (
        <div class="help-body" tabIndex={-1} autofocus>
          <div class="help-head">
            <h2>Help</h2>
            <IconButton icon="close" text="Close" hint="Esc" onClick={close} />
          </div>
          <div class="help-columns">
            <div>
              <h3>What the numbers are</h3>
              <p>
                The program was <b>sampled</b>: each word it allocated had the same small chance of being recorded.
                Amounts are estimates, and ± is where the truth lies with a probability of 95 %. What has an error as
                large as itself cannot be told from noise and is drawn faint.
              </p>
              <p>
                <b>Allocated</b> counts all memory, dead or alive. <b>Live at the peak</b> is what was alive when the
                program took most, <b>live at the end</b> what was never found dead. Choose one above the timeline:
                every view then shows only that.
              </p>
              <p>
                <b>Own</b> is what a function allocates itself, <b>total</b> includes what is allocated by functions it
                calls. What is too small to show is put together as <b>other</b>, never left out.
              </p>
              <h3>What to do with the mouse</h3>
              <p>
                <b>Timeline</b>: drag over a window of time to see only what was allocated in it; click a layer to split
                it by its callers; click the axis or a flag to see what was alive then. <b>Flame graph</b>: click to
                zoom, right click for more. <b>Heat map</b>: click a cell to see only its blocks.
              </p>
              <p>Everything is in the address: reload, share or go back, nothing is lost.</p>
            </div>
            <div>
              {[...keyList()]
                .sort((a, b) => Number(b.name === "Everywhere") - Number(a.name === "Everywhere"))
                .map(({ name, bindings }) => (
                  <section key={name}>
                    <h3>{name}</h3>
                    <dl class="key-list">
                      {bindings.map(({ key, does }) => (
                        <>
                          <dt>
                            <kbd>{KEY_NAMES[key] ?? key}</kbd>
                          </dt>
                          <dd>{does}</dd>
                        </>
                      ))}
                    </dl>
                  </section>
                ))}
              <h3>On the timeline</h3>
              <dl class="key-list">
                <dt>
                  <kbd>←</kbd> <kbd>→</kbd>
                </dt>
                <dd>move through time (with Shift faster)</dd>
                <dt>
                  <kbd>[</kbd> <kbd>]</kbd>
                </dt>
                <dd>set the start and the end of a window</dd>
                <dt>
                  <kbd>Enter</kbd>
                </dt>
                <dd>look at what is alive then</dd>
              </dl>
            </div>
          </div>
        </div>
      )}
    </dialog>
  );
}
