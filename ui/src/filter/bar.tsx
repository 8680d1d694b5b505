// The filter bar: a query with completion, and its errors marked.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/source";
import { question } from "../api/question";
import type { Completion } from "../api/types";
import { bytes } from "../format";
import { ask, currentSource } from "../state/answers";
import { clausesOf, quoted, withClause } from "../state/patterns";
import { windowClause } from "../state/questions";
import { info, tells } from "../state/session";
import { state, update } from "../state/state";
import { Chip, Explain, IconButton } from "../widgets/controls";
import { Icon } from "../widgets/icons";
import { openMenuBelow } from "../widgets/menu";
import { spanText } from "../timeline/scale";
import { quickClauses } from "./clauses";
import { suggest, type Suggestion } from "./complete";

const NAMES = 20;

interface Choices {
  /** The part of the text that is replaced. */
  from: number;
  to: number;
  items: (Suggestion & { kind: string })[];
}

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
  const abort = useRef<AbortController | null>(null);

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
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    const { from, to, words, names } = suggest(text, at, tells());
    const show = (found: Choices["items"]) => {
      const items = [...words.map((word) => ({ ...word, kind: "" })), ...found];
      setCompletion(items.length > 0 && document.activeElement === input.current ? { from, to, items } : null);
      setChosen(-1);
    };
    if (!names) return show([]);
    ask<Completion>(question("complete", { kind: names.kind, q: names.part, rows: NAMES }), mine.signal).then(
      ({ report }) =>
        mine.signal.aborted ||
        show(
          report.names.map(({ name, bytes: amount }) => ({
            text: quoted(name),
            detail: bytes(amount),
            kind: report.kind,
          })),
        ),
      () => mine.signal.aborted || show([]),
    );
  };

  const accept = (text: string) => {
    if (!completion) return;
    const next = `${draft.slice(0, completion.from)}${text} ${draft.slice(completion.to).trimStart()}`;
    const at = completion.from + text.length + 1;
    setDraft(next);
    apply(next, false);
    complete(next, at);
    requestAnimationFrame(() => {
      input.current?.focus();
      input.current?.setSelectionRange(at, at);
    });
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const items = completion?.items ?? [];
    const item = items[chosen];
    if (event.key === "ArrowDown" && items.length > 0) setChosen((chosen + 1) % items.length);
    else if (event.key === "ArrowUp" && items.length > 0) setChosen((chosen - 1 + items.length) % items.length);
    else if (event.key === "Tab" && items.length > 0 && !event.shiftKey && draft !== "")
      accept((item ?? items[0])?.text ?? "");
    else if (event.key === "Enter") {
      if (item) accept(item.text);
      else {
        apply(draft, true);
        setCompletion(null);
      }
    } else if (event.key === "Escape") {
      if (completion) setCompletion(null);
      else input.current?.blur();
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };

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
          onBlur={() => {
            abort.current?.abort();
            setCompletion(null);
          }}
          onKeyDown={onKeyDown}
        />
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
          <ul class="completions" id="completions" role="listbox">
            {completion.items.map((item, place) => (
              <li
                key={item.text + item.kind}
                role="option"
                aria-selected={place === chosen}
                ref={(element) => {
                  if (place === chosen) element?.scrollIntoView({ block: "nearest" });
                }}
                // Before the input loses the focus.
                onPointerDown={(event) => {
                  event.preventDefault();
                  accept(item.text);
                }}
              >
                <code>{item.text}</code>
                <span>{item.detail}</span>
                <i>{item.kind}</i>
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
        {clauses.length > 1 &&
          clauses.map((clause, place) => (
            <Chip
              key={place}
              kind={place === 0 ? "" : "and"}
              text={clause}
              onRemove={() => update({ where: clauses.filter((_, k) => k !== place).join(" and "), node: "" })}
            />
          ))}
        {now.window && (
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
        {typeof now.live === "number" && (
          <Chip
            kind="live at"
            text={spanText(now.live, now.live).split(" – ")[0] ?? ""}
            onRemove={() => update({ live: "peak" })}
          />
        )}
        {hasServer && (
          <Explain>
            Only blocks of which this is true. Fields: {tells().sizes && "size, "}
            {tells().lifetimes && "lifetime, collected, "}
            {tells().promotions && "promoted, heap, "}
            {tells().lanes && "domain, "}allocated, live at, inside (any function of the stack), site, file, module,
            line. Join with and, or, not and brackets. Names can have * and ?, /regular expressions/ are in slashes.
          </Explain>
        )}
      </div>
      <div id="filter-error" class="filter-error" role="alert">
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
              {error.message}
              {error.body.expected ? `; expected ${error.body.expected}` : ""}
            </span>
          </>
        )}
      </div>
    </div>
  );
}
