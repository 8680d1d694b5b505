// A single block: its life and its stack.

import type { JSX } from "preact";
import type { BlockRow } from "../api/types";
import { bytes, count, estimatedBytes, seconds } from "../format";
import { tells } from "../state/session";
import { IconButton } from "../widgets/controls";
import { NameText } from "./table";
import { endText } from "../state/describe";

/** The heap of a block, and the one that it was promoted to. */
export function heapText(row: BlockRow): string {
  return row.promoted === null ? row.heap : `${row.heap} → major`;
}

/** The lifetime of a block; of one that is live at the end, a lower bound. */
export function lifetimeText(row: BlockRow): string {
  return `${row.is_live ? "> " : ""}${seconds(row.lifetime)}`;
}

export function BlockDetails(props: {
  block: BlockRow;
  onFunction: (name: string) => void;
  onClose: () => void;
}): JSX.Element {
  const { block } = props;
  const facts: [name: string, value: string | null][] = [
    ["Size", bytes(block.size)],
    ["Represents", estimatedBytes(block.bytes)],
    ["Samples", block.samples > 1 ? count(block.samples) : null],
    ["Merged blocks", block.sampled_blocks > 1 ? count(block.sampled_blocks) : null],
    ["Allocated at", seconds(block.allocated)],
    ["Promoted at", block.promoted === null ? null : seconds(block.promoted)],
    ["Collected at", block.collected === null ? `live ${endText()}` : seconds(block.collected)],
    ["Lifetime", lifetimeText(block)],
    ["Heap", tells().promotions ? heapText(block) : null],
    ["Domain", String(block.domain)],
  ];
  return (
    <aside class="block-details" aria-label="The selected block" tabIndex={0}>
      <div class="block-head">
        <h2>Selected block</h2>
        <IconButton icon="close" text="Close" hint="Esc" onClick={props.onClose} />
      </div>
      <dl>
        {facts.map(
          ([name, value]) =>
            value !== null && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
      <h3>Stack, innermost first</h3>
      {block.stack.length === 0 && <p class="muted">Not known.</p>}
      <ol>
        {block.stack.map((label, k) => (
          <li key={k}>
            <button type="button" class="block-frame name has-place" onClick={() => props.onFunction(label.name)}>
              <NameText label={label} />
            </button>
          </li>
        ))}
      </ol>
    </aside>
  );
}
