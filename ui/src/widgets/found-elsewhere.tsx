import type { JSX } from "preact";
import { bytes, count, printable } from "../format";
import { type Everywhere } from "../state/everywhere";
import { withClause } from "../state/patterns";
import { state, update } from "../state/state";

/**
 * What the engine has found of a search that a view shows nothing of, with a button that selects it. `missing` says why the view
 * shows none of it.
 */
export function FoundElsewhere({ found, missing }: { found: Everywhere; missing: string }): JSX.Element {
  if (found.total.samples === 0) return <>not in this trace</>;
  const [name] = found.names;
  const what = found.names.length === 1 && name !== undefined ? printable(name) : `${count(found.names.length)} names`;
  const amount = `${bytes(found.total.bytes.value)} inside ${found.names.length === 0 ? "matches" : what}`;
  const text = `${amount}, ${found.isOutside ? "not in this selection" : missing}`;
  const select = () =>
    found.isOutside
      ? update({ where: found.clause, callers: [], window: null, live: "all", node: "", range: null })
      : update({ where: withClause(state.value.where, found.clause), node: "", range: null });
  return (
    <>
      <span class="found-text" title={text}>
        {text}
      </span>{" "}
      <button type="button" class="link" title={found.clause} onClick={select}>
        {found.isOutside ? "Whole run" : "Filter by it"}
      </button>
    </>
  );
}
