import type { JSX } from "preact";
import type { Label } from "../api/types";
import { isNameKind, nameColour } from "../colours";
import { isDark } from "../theme";

/** A dot of the colour of a name; nothing for kinds of rows that have no colours. */
export function NameDot({ label, kind }: { label: Label; kind: string }): JSX.Element | null {
  return isNameKind(kind) ? <i class="dot" style={{ background: nameColour(label, kind, isDark.value) }} /> : null;
}
