import type { JSX, RefObject } from "preact";
import { Icon } from "./icons";

export function SearchBox(props: {
  box: RefObject<HTMLInputElement | null>;
  placeholder: string;
  label: string;
  value: string;
  onInput: (text: string) => void;
  onEnter?: () => void;
}): JSX.Element {
  return (
    <label class="search">
      <Icon name="search" />
      <input
        ref={props.box}
        type="search"
        placeholder={props.placeholder}
        aria-label={props.label}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && props.onEnter?.()}
      />
      <kbd>/</kbd>
    </label>
  );
}
