// Small controls that several views share.

import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { Icon, type IconName } from "./icons";
import { tipOn } from "./tip";

interface Option<T extends string> {
  value: T;
  text: string;
  help?: string;
}

/** A few choices side by side; perhaps none of them is chosen. */
export function Segmented<T extends string>(props: {
  label: string;
  value: T | null;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
}): JSX.Element {
  return (
    <div class="segmented" role="radiogroup" aria-label={props.label}>
      {props.options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === props.value}
          onClick={() => props.onChange(option.value)}
          {...(option.help ? tipOn(option.help) : {})}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}

/** One of many choices. */
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

/** Something that is in force and can be taken back. */
export function Chip(props: {
  kind: string;
  text: string;
  help?: ComponentChildren;
  onRemove: () => void;
  onClick?: (event: MouseEvent) => void;
}): JSX.Element {
  return (
    <span class="chip" {...(props.help ? tipOn(props.help) : {})}>
      {props.kind !== "" && <span class="chip-kind">{props.kind}</span>}
      {props.onClick ? (
        <button type="button" class="chip-text" onClick={props.onClick}>
          {props.text}
        </button>
      ) : (
        <span class="chip-text">{props.text}</span>
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

/** A question mark that explains. */
export function Explain({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <button type="button" class="explain" aria-label="What is this?" {...tipOn(<div class="tip-text">{children}</div>)}>
      ?
    </button>
  );
}

/** What a view says when it has nothing to show. */
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

/** Says something for a moment. */
export function notify(text: string): void {
  notice.value = text;
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => {
    notice.value = null;
  }, 2600);
}

export function NoticeLayer(): JSX.Element {
  return (
    <div class="notice-layer" role="status" aria-live="polite">
      {notice.value && <div class="notice">{notice.value}</div>}
    </div>
  );
}

/** Copies, and says so. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(`Copied ${what}`);
  } catch {
    // Not allowed, as in pages from disk: the old way.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    notify(isDone ? `Copied ${what}` : "The browser does not allow copying");
  }
}
