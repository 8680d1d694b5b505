// Help: explains the page and lists its keys.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { keyList } from "./keys";
import { fleet, info, isExact } from "./state/session";
import { IconButton } from "./widgets/controls";
import { endText } from "./state/describe";

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
              {fleet.value ? <FleetHelp /> : <FileHelp />}
              <p>The URL contains the whole state: reload, share it, or go back.</p>
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
              {info.value && <TimelineKeys />}
            </div>
          </div>
        </div>
      )}
    </dialog>
  );
}

/** About traces and heap snapshots. */
function FileHelp(): JSX.Element {
  return (
    <>
      <h3>Numbers</h3>
      <p>
        {isExact() ? (
          "Every block was recorded: amounts are exact."
        ) : (
          <>
            The program was <b>sampled</b>: each allocated word had the same small probability of being recorded.
            Amounts are estimates; ± is the 95 % interval. Dimmed rows are within the sampling error.
          </>
        )}
      </p>
      <p>
        <b>Allocated</b> counts all memory, dead or live. <b>Live at the peak</b> is the memory that was live when the
        program used most, <b>live {endText()}</b> the memory that was not freed. Select one above the timeline to
        restrict all views to it.
      </p>
      <p>
        <b>Own</b> is the memory allocated by a function itself, <b>total</b> includes its callees. Small entries are
        merged into <b>other</b>.
      </p>
      <h3>Mouse</h3>
      <p>
        <b>Timeline</b>: drag to select memory allocated in a time window (in Compare: the window after, with Shift the
        one before; elsewhere with Ctrl the second of two windows to compare); click anywhere to select memory live at
        that time; click the name of a layer to see only its memory, by branch or by caller. <b>Flame graph</b>: click
        to zoom in on a box, turn the wheel with Ctrl to zoom anywhere, drag to pan, right click for more.{" "}
        <b>Heat map</b>: click a cell to select its blocks.
      </p>
    </>
  );
}

/** About datasets of many runs. */
function FleetHelp(): JSX.Element {
  return (
    <>
      <h3>Numbers</h3>
      <p>
        Amounts are <b>means per run</b>; ± is the 95 % interval of the mean, with run-to-run variation and sampling
        error. A group counts as 0 in runs that do not have it.
      </p>
      <p>
        <b>Real</b> are changes that pass Welch's t-test on the values of the runs, adjusted for the number of groups at
        a false discovery rate of 5 %. Dimmed rows are within run-to-run variation. Nothing is tested where a side has
        one run only.
      </p>
      <p>
        <b>Regressions</b> compares the newest version of each service to the one before, and lists what grew
        significantly. <b>Compare versions</b> lists all changes between two versions.
      </p>
      <h3>Selection</h3>
      <p>
        <b>Sites</b> takes a query, such as <code>module = "Parser*" and not function = "main"</code>, <b>Runs</b> a
        condition in SQL on the columns of the table runs, such as <code>host = 'a7' and not damaged</code>. Both take
        effect with Enter.
      </p>
    </>
  );
}

function TimelineKeys(): JSX.Element {
  return (
    <>
      <h3>On the timeline</h3>
      <dl class="key-list">
        <dt>
          <kbd>←</kbd> <kbd>→</kbd>
        </dt>
        <dd>move through time (with Shift faster)</dd>
        <dt>
          <kbd>[</kbd> <kbd>]</kbd>
        </dt>
        <dd>set the start and the end of a window (with Shift of the one before, in Compare)</dd>
        <dt>
          <kbd>Enter</kbd>
        </dt>
        <dd>select memory live at that time</dd>
      </dl>
    </>
  );
}
