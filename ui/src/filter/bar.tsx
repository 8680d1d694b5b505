// The filter bar: a query with completion, and its errors marked.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/source";
import { bytes, printable } from "../format";
import { currentSource } from "../state/answers";
import { clausesOf, withClause } from "../state/patterns";
import { comparesWindows, layerClause, windowClause } from "../state/questions";
import { shownScope } from "../state/scope";
import { info, tells, traceFacts } from "../state/session";
import { state, update } from "../state/state";
import { Chip, Explain, IconButton } from "../widgets/controls";
import { Icon } from "../widgets/icons";
import { openMenuBelow } from "../widgets/menu";
import { Message } from "../widgets/message";
import { spanText } from "../timeline/scale";
import { quickClauses } from "./clauses";
import { type Choices, Completer, insert, useUnmatched } from "./completion";
import { OwnCodePatterns, OwnCodeSelect } from "./own-code";
import { WithoutChip } from "./peak";

/** Debounce delay for typing. */
const DELAY_MS = 120;

export function FilterBar({ error }: { error: ApiError | null }): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  const input = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState(now.where);
  const [completion, setCompletion] = useState<Choices | null>(null);
  const [chosen, setChosen] = useState(-1);
  const timer = useRef(0);
  const [completer] = useState(() => new Completer());
  // Tab was pressed before the answer arrived.
  const takesFirst = useRef(false);

  // The back button and the menus of functions change the filter too.
  useEffect(() => {
    if (draft.trim() !== now.where.trim()) setDraft(now.where);
  }, [now.where]);

  const apply = (text: string, isFinal: boolean) => {
    clearTimeout(timer.current);
    const change = () => update({ where: text, node: "" }, "filter");
    if (isFinal) change();
    else timer.current = window.setTimeout(change, DELAY_MS);
  };

  const complete = (text: string, at: number) => {
    takesFirst.current = false;
    setChosen(-1);
    void completer.complete(text, at, (choices) => {
      setCompletion(document.activeElement === input.current ? choices : null);
      const first = choices?.items[0];
      if (takesFirst.current && choices && first) accept(choices, first.text);
    });
  };

  const dismiss = () => {
    completer.cancel();
    setCompletion(null);
  };

  const accept = (choices: Choices, item: string) => {
    const { text, cursor } = insert(choices, item);
    // At once: the next key may select or type something.
    if (input.current) {
      input.current.value = text;
      input.current.focus();
      input.current.setSelectionRange(cursor, cursor);
    }
    setDraft(text);
    apply(text, false);
    complete(text, cursor);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    // Nothing can be chosen from a list that is about an earlier text.
    const choices = completer.isWaiting ? null : completion;
    const items = choices?.items ?? [];
    const item = items[chosen];
    if (event.key === "ArrowDown" && items.length > 0) setChosen((chosen + 1) % items.length);
    else if (event.key === "ArrowUp" && items.length > 0) setChosen((chosen - 1 + items.length) % items.length);
    else if (event.key === "Tab" && !event.shiftKey && draft !== "" && (choices || completer.isWaiting)) {
      if (choices) accept(choices, (item ?? items[0])?.text ?? "");
      else takesFirst.current = true;
    } else if (event.key === "Enter") {
      if (choices && item) accept(choices, item.text);
      else {
        apply(draft, true);
        dismiss();
      }
    } else if (event.key === "Escape") {
      if (completion) dismiss();
      else input.current?.blur();
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };

  const unmatched = useUnmatched(hasServer ? now.where : "");
  const clauses = clausesOf(now.where);
  const isMine = error?.body.parameter === "where" && error.body.value?.trim() === draft.trim();
  const span = isMine ? error?.body.span : null;

  return (
    <div class="filter">
      <div class={`filter-box ${isMine ? "is-wrong" : ""} ${hasServer ? "" : "is-off"}`}>
        <Icon name="filter" />
        <input
          ref={input}
          class="filter-input"
          type="text"
          spellcheck={false}
          autocomplete="off"
          role="combobox"
          aria-label="Filter"
          aria-expanded={completion !== null}
          aria-controls="completions"
          aria-invalid={isMine}
          aria-describedby="filter-error"
          disabled={!hasServer}
          placeholder={
            hasServer
              ? `Filter: inside "Parser.*" and ${tells().lifetimes ? "size >= 64KiB and lifetime > 2s" : "not live at end"}`
              : "Custom filters need the trace: heapline view TRACE"
          }
          value={draft}
          onInput={(event) => {
            const text = event.currentTarget.value;
            setDraft(text);
            apply(text, false);
            complete(text, event.currentTarget.selectionStart ?? text.length);
          }}
          onFocus={(event) => complete(draft, event.currentTarget.selectionStart ?? draft.length)}
          onBlur={dismiss}
          onKeyDown={onKeyDown}
        />
        <div id="filter-error" class="filter-error" role="alert" title={isMine ? error?.message : undefined}>
          {isMine && error && (
            <>
              {span && (
                <code>
                  {draft.slice(0, span[0])}
                  <mark>{draft.slice(span[0], Math.max(span[1], span[0] + 1)) || " "}</mark>
                  {draft.slice(Math.max(span[1], span[0] + 1))}
                </code>
              )}
              <span>
                <Message text={`${error.message}${error.body.expected ? `; expected ${error.body.expected}` : ""}`} />.
                What is shown is of the filter before.
              </span>
            </>
          )}
        </div>
        {draft !== "" && (
          <IconButton
            icon="close"
            text="Remove the filter"
            onClick={() => {
              setDraft("");
              apply("", true);
            }}
          />
        )}
        {hasServer && <kbd>w</kbd>}
        {completion && (
          <ul
            class="completions"
            id="completions"
            role="listbox"
            // Browsers let Tab stop at what can be scrolled; it is gone then.
            tabIndex={-1}
          >
            {completion.items.map((item, place) => (
              <li
                key={item.text}
                role="option"
                aria-selected={place === chosen}
                ref={(element) => {
                  if (place === chosen) element?.scrollIntoView({ block: "nearest" });
                }}
                // Before the input loses the focus.
                onPointerDown={(event) => {
                  event.preventDefault();
                  if (!completer.isWaiting) accept(completion, item.text);
                }}
              >
                <code>{printable(item.text)}</code>
                <span>{item.name ? bytes(item.name.bytes) : item.hint}</span>
                <i>{item.name?.kind}</i>
              </li>
            ))}
          </ul>
        )}
      </div>
      <div class="filter-chips">
        {hasServer && (
          <button
            type="button"
            class="button"
            onClick={(event) =>
              openMenuBelow(
                event,
                quickClauses(info.value?.duration ?? 1, tells()).map(({ text, clause }) => ({
                  text,
                  hint: clause,
                  run: () => update({ where: withClause(state.value.where, clause), node: "" }),
                })),
              )
            }
          >
            <Icon name="plus" /> Filter
          </button>
        )}
        {hasServer && <OwnCodeSelect />}
        {hasServer && <OwnCodePatterns />}
        {clauses.length > 1 &&
          clauses.map((clause, place) => (
            <Chip
              key={place}
              kind={place === 0 ? "" : "and"}
              text={clause}
              onRemove={() => update({ where: clauses.filter((_, k) => k !== place).join(" and "), node: "" })}
            />
          ))}
        {now.callers.length > 0 && (
          <Chip
            kind="layer"
            text={now.callers.map(printable).join(" ‹ ")}
            help={<code>{layerClause(now)}</code>}
            onRemove={() => update({ callers: [], node: "" })}
          />
        )}
        {now.hide.map((name, place) => (
          <Chip
            key={`h${place}`}
            kind="hidden"
            text={printable(name)}
            help={
              <div class="tip-text">
                {hasServer
                  ? "Left out of all stacks; its memory is its callers'."
                  : "Left out of the flame graph and of the tree; its memory is its callers'. A report file has tables and the timeline only as a whole."}
              </div>
            }
            onRemove={() => update({ hide: now.hide.filter((_, k) => k !== place), node: "" })}
          />
        ))}
        {now.window && !comparesWindows(now, traceFacts()) && (
          <Chip
            kind={`${now.windowOf} in`}
            text={spanText(now.window.from, now.window.to)}
            help={<code>{windowClause(now.window, now.windowOf)}</code>}
            onRemove={() => update({ window: null })}
            {...(hasServer
              ? {
                  onClick: (event: MouseEvent) =>
                    openMenuBelow(event, [
                      {
                        text: "Allocated in this window",
                        isChecked: now.windowOf === "allocated",
                        run: () => update({ windowOf: "allocated" }),
                      },
                      {
                        text: "Alive at some time in it",
                        isChecked: now.windowOf === "live",
                        run: () => update({ windowOf: "live" }),
                      },
                      {
                        text: "Collected in it",
                        isChecked: now.windowOf === "collected",
                        run: () => update({ windowOf: "collected" }),
                      },
                      "line",
                      { text: "Zoom to it", run: () => update({ zoom: now.window }) },
                      { text: "Compare: this is before", run: () => update({ before: now.window, view: "compare" }) },
                      { text: "Compare: this is after", run: () => update({ after: now.window, view: "compare" }) },
                    ]),
                }
              : {})}
          />
        )}
        {typeof now.live === "number" && typeof shownScope(now) === "number" && (
          <Chip
            kind="live at"
            text={spanText(now.live, now.live).split(" – ")[0] ?? ""}
            onRemove={() => update({ live: null })}
          />
        )}
        <WithoutChip />
        {unmatched.map((name) => (
          <span key={name} class="filter-unmatched" role="status">
            The trace has no {printable(name)}
          </span>
        ))}
        {hasServer && (
          <Explain>
            Only blocks of which this is true. The fields that this trace has are suggested as you type. Join with and,
            or, not and brackets. Names can have * and ?, /regular expressions/ are in slashes.
          </Explain>
        )}
      </div>
    </div>
  );
}
