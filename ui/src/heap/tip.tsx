import type { JSX } from "preact";
import type { DominatorNode, HeapAmount } from "../api/types";
import { bytes, count, percent, printable } from "../format";
import { KIND_NAMES } from "./kinds";

/** The tooltip of a node of the dominator tree. */
export function ValueTip({ node, total }: { node: DominatorNode; total: HeapAmount }): JSX.Element {
  const isMerged = node.kind === null;
  return (
    <div class="frame-tip">
      <div class="frame-tip-name">
        {isMerged ? `other: ${count(node.values)} more, each too small to show` : printable(node.name)}
      </div>
      {node.place && <div class="frame-tip-place">{printable(node.place)}</div>}
      <dl>
        {node.kind !== null && (
          <>
            <dt>Kind</dt>
            <dd>{KIND_NAMES[node.kind]}</dd>
          </>
        )}
        <dt>Retained</dt>
        <dd>
          {bytes(node.retained.bytes)} <span class="muted">{percent(node.retained.bytes, total.bytes)}</span>
        </dd>
        <dt>Blocks</dt>
        <dd>{count(node.retained.blocks)}</dd>
        {!isMerged && (
          <>
            <dt>Own</dt>
            <dd>{node.own.bytes > 0 ? bytes(node.own.bytes) : <span class="muted">nothing</span>}</dd>
          </>
        )}
        {!isMerged && node.values > 1 && (
          <>
            <dt>Values</dt>
            <dd>{count(node.values)}</dd>
          </>
        )}
      </dl>
    </div>
  );
}
