// What looks like waste in a heap snapshot.

import type { JSX } from "preact";
import type { Finding, Findings } from "../api/types";
import { bytes, count, printable } from "../format";
import { isFatal, useAnswer } from "../state/answers";
import { patternOf } from "../state/patterns";
import { Empty } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { tipOn } from "../widgets/tip";
import { showWhy } from "./actions";
import { findingsQuestion } from "./questions";

/** In the words of crates/text/src/heap/findings.rs. */
const SECTIONS: readonly { of: (report: Findings) => Finding; title: string; what: string }[] = [
  { of: (report) => report.duplicate_strings, title: "Duplicate strings", what: "would be saved by one copy of each" },
  {
    of: (report) => report.sparse_tables,
    title: "Hash tables with fewer bindings than half of their buckets",
    what: "are empty buckets",
  },
  {
    of: (report) => report.sparse_buffers,
    title: "Buffers that use less than half of their memory",
    what: "are unused",
  },
  {
    of: (report) => report.continuations,
    title: "Continuations that wait to be resumed",
    what: "are retained by them",
  },
  {
    of: (report) => report.finalisers,
    title: "Memory that only finalisers keep alive",
    what: "would be freed without them",
  },
  {
    of: (report) => report.ephemerons,
    title: "Data of ephemerons whose keys are alive",
    what: "are retained by it",
  },
];

export function FindingsView(): JSX.Element {
  const answer = useAnswer<Findings>(findingsQuestion);
  const { data, error } = answer;
  if (error && isFatal(answer)) return <Problem error={error} />;
  if (!data) return <div class="view" />;
  const found = SECTIONS.map((section) => ({ ...section, finding: section.of(data) }))
    .filter(({ finding }) => finding.values > 0)
    .sort((a, b) => b.finding.bytes - a.finding.bytes);
  if (found.length === 0) return <Empty title="Nothing found" />;
  return (
    <div class="view findings">
      {found.map(({ title, what, finding }) => (
        <section key={title} class="card">
          <div class="card-head">
            <h2>{title}</h2>
            <span class="fact">
              <b>{bytes(finding.bytes)}</b> {what}
            </span>
          </div>
          <div role="table" aria-label={title}>
            <div class="finding finding-head" role="row">
              <span role="columnheader" class="number">
                Bytes
              </span>
              <span role="columnheader" class="number">
                Values
              </span>
              <span role="columnheader">
                <span class="spoken">What</span>
              </span>
              <span role="columnheader">Held by</span>
            </div>
            {finding.rows.map((row, k) => (
              <div key={k} class="finding" role="row">
                <span role="cell" class="number">
                  {bytes(row.bytes)}
                </span>
                <span role="cell" class="number muted">
                  {count(row.values)}
                </span>
                <span role="cell" class="name">
                  {printable(row.name)}
                </span>
                <span role="cell" class="name">
                  {row.held_by === null ? (
                    <span class="muted">several roots</span>
                  ) : (
                    <button
                      type="button"
                      class="link"
                      onClick={() => showWhy({ heldBy: patternOf(row.held_by as string) })}
                      {...tipOn("Show paths to what it retains")}
                    >
                      {printable(row.held_by)}
                    </button>
                  )}
                </span>
              </div>
            ))}
            {finding.hidden_rows > 0 && <p class="view-note muted">{count(finding.hidden_rows)} more rows.</p>}
          </div>
        </section>
      ))}
    </div>
  );
}
