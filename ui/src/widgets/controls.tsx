// Small shared controls.

import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { Icon, type IconName } from "./icons";
import { tipOn } from "./tip";

interface Option<T extends string> {
  value: T;
  text: string;
  help?: string;
}

/** Arrow keys move to another button of a radio group, and choose it. */
export function moveInRadioGroup(event: KeyboardEvent): void {
  const forward = event.key === "ArrowRight" || event.key === "ArrowDown";
  if (!forward && event.key !== "ArrowLeft" && event.key !== "ArrowUp") return;
  const group = event.currentTarget as HTMLElement;
  const buttons = [...group.querySelectorAll<HTMLElement>("[role=radio]:not(:disabled)")];
  const place = buttons.indexOf(event.target as HTMLElement);
  if (place < 0) return;
  const next = buttons[(place + (forward ? 1 : -1) + buttons.length) % buttons.length];
  next?.focus();
  next?.click();
  event.preventDefault();
  event.stopPropagation();
}

/** A row of toggle buttons; possibly none is selected. */
export function Segmented<T extends string>(props: {
  label: string;
  value: T | null;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
}): JSX.Element {
  const isNone = !props.options.some((option) => option.value === props.value);
  return (
    <div class="segmented" role="radiogroup" aria-label={props.label} onKeyDown={moveInRadioGroup}>
      {props.options.map((option, place) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === props.value}
          tabIndex={option.value === props.value || (isNone && place === 0) ? 0 : -1}
          onClick={() => props.onChange(option.value)}
          {...(option.help ? tipOn(option.help) : {})}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}

/** A drop-down list. */
export function Select<T extends string>(props: {
  label: string;
  value: T;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
}): JSX.Element {
  return (
    <label class="select">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as T)}>
        {props.options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Check(props: {
  text: string;
  value: boolean;
  help?: string;
  onChange: (value: boolean) => void;
}): JSX.Element {
  return (
    <label class="check" {...(props.help ? tipOn(props.help) : {})}>
      <input type="checkbox" checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      {props.text}
    </label>
  );
}

export function IconButton(props: {
  icon: IconName;
  text: string;
  hint?: string;
  isDisabled?: boolean;
  children?: ComponentChildren;
  onClick: (event: MouseEvent) => void;
}): JSX.Element {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={props.text}
      disabled={props.isDisabled}
      onClick={props.onClick}
      {...tipOn(
        <>
          {props.text} {props.hint && <kbd>{props.hint}</kbd>}
        </>,
      )}
    >
      <Icon name={props.icon} />
      {props.children}
    </button>
  );
}

/** A chip for something that is active and can be removed. */
export function Chip(props: {
  kind: string;
  text: string;
  help?: ComponentChildren;
  onRemove: () => void;
  onClick?: (event: MouseEvent) => void;
}): JSX.Element {
  const body = (
    <>
      {props.kind !== "" && <span class="chip-kind">{props.kind}</span>}
      <span class="chip-text">{props.text}</span>
    </>
  );
  return (
    <span class="chip" {...(props.help ? tipOn(props.help) : {})}>
      {props.onClick ? (
        <button type="button" class="chip-body" onClick={props.onClick}>
          {body}
        </button>
      ) : (
        <span class="chip-body">{body}</span>
      )}
      <button
        type="button"
        class="chip-close"
        aria-label={`Remove ${props.kind} ${props.text}`}
        onClick={props.onRemove}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}

/** A question mark with an explanation. */
export function Explain({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <button type="button" class="explain" aria-label="What is this?" {...tipOn(<div class="tip-text">{children}</div>)}>
      ?
    </button>
  );
}

/** The message of a view that has nothing to show. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

const notice = signal<string | null>(null);
let noticeTimer = 0;

/** Shows a short notification. */
export function notify(text: string, ms = 2600): void {
  notice.value = text;
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => {
    notice.value = null;
  }, ms);
}

export function NoticeLayer(): JSX.Element {
  return (
    <div class="notice-layer" role="status" aria-live="polite">
      {notice.value && <div class="notice">{notice.value}</div>}
    </div>
  );
}

/** Copies to the clipboard, and shows a notification. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(`Copied ${what}`);
  } catch {
    // The clipboard API is not available in pages opened from disk: fall back to execCommand.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    notify(isDone ? `Copied ${what}` : "The browser does not allow copying");
  }
}
