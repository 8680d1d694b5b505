import type { JSX } from "preact";

/** Further views have no number key. */
const LAST_KEY = 9;

/** The tabs of views, with the number keys that choose them. */
export function Tabs<T extends string>(props: {
  views: readonly T[];
  names: Record<T, string>;
  /** The number key of the first. */
  firstKey: number;
  view: T;
  onChoose: (view: T) => void;
}): JSX.Element {
  const { views, view } = props;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const next = views[(views.indexOf(view) + step + views.length) % views.length] as T;
    props.onChoose(next);
    document.getElementById(`tab-${next}`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={onKeyDown}>
      {views.map((name, k) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === view}
          aria-controls="view"
          tabIndex={name === view ? 0 : -1}
          onClick={() => props.onChoose(name)}
        >
          {props.names[name]}
          {props.firstKey + k <= LAST_KEY && <kbd>{props.firstKey + k}</kbd>}
        </button>
      ))}
    </div>
  );
}

/** The number keys that choose views. */
export function viewKeys<T extends string>(
  views: readonly T[],
  names: Record<T, string>,
  firstKey: number,
  choose: (view: T) => void,
): { key: string; does: string; run: () => void }[] {
  return views.slice(0, LAST_KEY + 1 - firstKey).map((view, k) => ({
    key: String(firstKey + k),
    does: names[view].toLowerCase(),
    run: () => {
      choose(view);
      document.getElementById("view")?.focus({ preventScroll: true });
    },
  }));
}
