import type { JSX } from "preact";
import { changePercent } from "../views/diff-rows";
import { chanceText } from "../views/significance";
import { count, estimatedBytes, estimatedChange } from "../format";
import { TipHead } from "./frame-tip";
import type { TreeNode } from "./tree";

/** The tooltip of a box of a comparison. */
export function ChangeTip({ node }: { node: TreeNode }): JSX.Element | null {
  const { change } = node;
  if (!change) return null;
  const percent = change.before.value > 0 ? (100 * change.change.value) / change.before.value : null;
  const [before, after] = change.samples;
  return (
    <div class="frame-tip">
      <TipHead node={node} />
      <dl>
        <dt>Before</dt>
        <dd>{before > 0 ? estimatedBytes(change.before) : <span class="muted">nothing</span>}</dd>
        <dt>After</dt>
        <dd>{after > 0 ? estimatedBytes(change.after) : <span class="muted">nothing</span>}</dd>
        <dt>Change</dt>
        <dd>
          {change.isReal ? (change.change.value > 0 ? "▲ " : "▼ ") : ""}
          {estimatedChange(change.change)} <span class="muted">{percentText(percent)}</span>
        </dd>
        <dt>Samples</dt>
        <dd>
          {count(before)} before, {count(after)} after
        </dd>
      </dl>
      <div class={change.isReal ? "muted" : "frame-tip-note"}>{chanceText(change.isReal, change.p)}</div>
    </div>
  );
}

function percentText(percent: number | null): string {
  return percent === null ? changePercent(percent) : `${changePercent(percent)} %`;
}
