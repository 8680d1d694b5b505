import type { JSX } from "preact";
import type { Figures } from "../api/types";
import type { TreeNode } from "./tree";
import { bytes, count, estimatedBytes, estimatedCount, percent, printable, seconds } from "../format";
import type { Unit } from "./layout";
import { isRecording } from "../state/live";

/** The tooltip of a box. */
export function FrameTip(props: {
  node: TreeNode;
  total: Figures;
  unit: Unit;
  isExact: boolean;
  isBottomUp: boolean;
}): JSX.Element {
  const { node, total, unit } = props;
  const { details } = node;
  const share = percent(node.total[unit].value, total[unit].value);
  const growth = details.live_at_end - details.live_at_half;
  const isNoise = !props.isExact && node.total.bytes.error >= node.total.bytes.value;
  const meanSize = node.total.blocks.value > 0 ? node.total.bytes.value / node.total.blocks.value : null;
  return (
    <div class="frame-tip">
      <TipHead node={node} />
      <dl>
        <dt>Total</dt>
        <dd>
          {estimatedBytes(node.total.bytes)} <span class="muted">{share}</span>
        </dd>
        {node.kind === "call" && !props.isBottomUp && (
          <>
            <dt>Own</dt>
            <dd>{node.own.value > 0 ? estimatedBytes(node.own) : <span class="muted">nothing</span>}</dd>
          </>
        )}
        <dt>Blocks</dt>
        <dd>{estimatedCount(node.total.blocks)}</dd>
        {meanSize !== null && (
          <>
            <dt>Mean size</dt>
            <dd>{bytes(meanSize)}</dd>
          </>
        )}
        {details.lifetime !== null && (
          <>
            <dt>Mean life</dt>
            <dd>{seconds(details.lifetime)}</dd>
          </>
        )}
        {details.promoted > 0 && (
          <>
            <dt>Promoted</dt>
            <dd>
              {bytes(details.promoted)}{" "}
              <span class="muted">{percent(details.promoted, node.total.bytes.value)} of it</span>
            </dd>
          </>
        )}
        {(details.live_at_end > 0 || details.live_at_half > 0) && (
          <>
            <dt>{isRecording() ? "Now" : "At the end"}</dt>
            <dd>
              {bytes(details.live_at_end)}{" "}
              <span class="muted">
                {growth >= 0 ? "+" : ""}
                {bytes(growth)} since half-way
              </span>
            </dd>
          </>
        )}
        <dt>Samples</dt>
        <dd>{count(node.total.samples)}</dd>
      </dl>
      {isNoise && <div class="frame-tip-note">Within the sampling error.</div>}
    </div>
  );
}

/** The name and the place of a box. */
export function TipHead({ node }: { node: TreeNode }): JSX.Element {
  return (
    <>
      <div class="frame-tip-name">
        {node.kind === "other"
          ? `other: ${count(node.others)} more, each too small to show`
          : printable(node.label.name)}
      </div>
      {node.label.place && <div class="frame-tip-place">{printable(node.label.place)}</div>}
    </>
  );
}
