// Changes of retained memory between two heap snapshots.

import type { JSX } from "preact";
import type { HeapDiff } from "../api/types";
import { bytes, count, printable, signedCount } from "../format";
import { isFatal, useAnswer } from "../state/answers";
import { status } from "../state/session";
import { Empty } from "../widgets/controls";
import { DiffBar } from "../widgets/diff-bar";
import { Problem } from "../widgets/problem";
import { diffQuestion } from "./questions";

export function CompareSnapshotsView(): JSX.Element {
  const answer = useAnswer<HeapDiff>(diffQuestion);
  const { data, error } = answer;
  if (error && isFatal(answer)) return <Problem error={error} />;
  if (!data) return <div class="view" />;
  const change = data.after.total.bytes - data.before.total.bytes;
  const largest = Math.max(...data.rows.map((row) => Math.abs(row.bytes)), 1);
  return (
    <div class="view">
      <div class="compare">
        <div class="compare-total">
          <span>
            <span class="muted">before ({status.value?.against})</span> {bytes(data.before.total.bytes)},{" "}
            {count(data.before.total.blocks)} blocks
          </span>
          <span>
            <span class="muted">after</span> {bytes(data.after.total.bytes)}, {count(data.after.total.blocks)} blocks
          </span>
          <span>
            <span class="muted">change</span> <b>{signedBytes(change)}</b>
          </span>
          <span class="muted">Values are compared by the names on their way from a root. The figures are exact.</span>
        </div>
        {data.rows.length === 0 ? (
          <Empty title="No changes" />
        ) : (
          <div class="diff-list" role="table" aria-label="Changes of retained memory">
            <div class="diff heap-diff diff-head" role="row">
              <span role="columnheader" class="number">
                Change
              </span>
              <span role="columnheader">
                <span class="spoken">Bar</span>
              </span>
              <span role="columnheader" class="number">
                Before
              </span>
              <span role="columnheader" class="number">
                After
              </span>
              <span role="columnheader" class="number">
                Blocks
              </span>
              <span role="columnheader">Path</span>
            </div>
            {data.rows.map((row, k) => {
              return (
                <div key={k} class="diff heap-diff" role="row">
                  <span role="cell" class="number">
                    {signedBytes(row.bytes)}
                  </span>
                  <DiffBar change={row.bytes} largest={largest} />
                  <span role="cell" class="number muted">
                    {bytes(row.before.bytes)}
                  </span>
                  <span role="cell" class="number muted">
                    {bytes(row.after.bytes)}
                  </span>
                  <span role="cell" class="number muted">
                    {signedCount(row.blocks)}
                  </span>
                  <span role="cell" class="diff-path">
                    {row.path.map((step, k) => (
                      <span key={k} class="step-text">
                        {printable(step.name)}
                        {step.place && <span class="place">{printable(step.place)}</span>}
                      </span>
                    ))}
                    {row.is_own && <span class="muted"> (itself)</span>}
                  </span>
                </div>
              );
            })}
            {data.hidden_rows > 0 && <p class="view-note muted">{count(data.hidden_rows)} more rows.</p>}
          </div>
        )}
      </div>
    </div>
  );
}

function signedBytes(n: number): string {
  return n > 0 ? `+${bytes(n)}` : bytes(n);
}
