// The page of a heap snapshot: who keeps memory alive.

import type { JSX } from "preact";
import type { HeapSubject } from "../api/types";
import { Connection, Overwritten } from "../connection";
import { bytes, count } from "../format";
import { HeaderBar } from "../header";
import { openHelp } from "../help";
import { useKeys } from "../keys";
import { isAwaited, useAnswer } from "../state/answers";
import { status } from "../state/session";
import { HEAP_VIEWS, state, update } from "../state/state";
import { toggleTheme } from "../theme";
import { Icon } from "../widgets/icons";
import { Tabs, viewKeys } from "../widgets/tabs";
import { tipOn } from "../widgets/tip";
import { CompareSnapshotsView } from "./compare";
import { FindingsView } from "./findings";
import { DominatorsView, IcicleView } from "./icicle";
import { heapViewQuestion } from "./questions";
import { RetainedView } from "./retained";
import { WhyView } from "./why";

const VIEW_NAMES: Record<(typeof HEAP_VIEWS)[number], string> = {
  icicle: "Icicle",
  tree: "Tree",
  retained: "Retained",
  why: "Why",
  compare: "Compare",
  findings: "Findings",
};

export function HeapPage({ subject }: { subject: HeapSubject }): JSX.Element {
  const now = state.value;
  const answer = useAnswer(heapViewQuestion(now));
  const views = HEAP_VIEWS.filter((view) => view !== "compare" || status.value?.against != null);
  const choose = (heap: (typeof HEAP_VIEWS)[number]) => update({ heap });
  const { references, roots, others } = subject.damage;
  const lost = references + roots + others;
  useKeys("Everywhere", [
    { key: "?", does: "this help", run: openHelp },
    ...viewKeys(views, VIEW_NAMES, 1, choose),
    { key: "d", does: "light or dark", run: toggleTheme },
  ]);
  return (
    <div class="page">
      <HeaderBar program={subject.program ?? ""} answer={answer}>
        <div class="facts heap-facts">
          {isBesideTrace() && <a href="../../">the trace of this run</a>}
          <span>heap snapshot {status.value?.trace}</span>
          {subject.pid !== null && <span>process {subject.pid}</span>}
          <span>
            <b>{bytes(subject.total.bytes)}</b>
          </span>
          <span>{count(subject.total.blocks)} blocks</span>
          {subject.folded > 0 && (
            <span
              {...tipOn(
                "List cells and small blocks are counted with the blocks that hold them. heapline snapshot --fold never keeps them apart.",
              )}
            >
              {count(subject.folded)} of them folded
            </span>
          )}
          {status.value?.sites && <span>allocation sites known</span>}
        </div>
        {lost > 0 && (
          <span
            class="badge is-warning"
            {...tipOn(
              `The snapshot is damaged: ${count(lost)} of its references lead to blocks that it does not have. They are left out.`,
            )}
          >
            <Icon name="warn" /> damaged
          </span>
        )}
      </HeaderBar>
      <Connection />
      <Overwritten />
      <main>
        <section class="panel views" aria-label="Views">
          <Tabs views={views} names={VIEW_NAMES} firstKey={1} view={now.heap} onChoose={choose} />
          <div id="view" role="tabpanel" tabIndex={-1} aria-label={VIEW_NAMES[now.heap]} aria-busy={isAwaited(answer)}>
            <View />
          </div>
        </section>
      </main>
    </div>
  );
}

/** True if the server shows a trace, and this snapshot beside it. */
function isBesideTrace(): boolean {
  return /\/snapshots\/[^/]+\/$/.test(location.pathname) && location.protocol !== "file:";
}

function View(): JSX.Element {
  switch (state.value.heap) {
    case "icicle":
      return <IcicleView />;
    case "tree":
      return <DominatorsView />;
    case "retained":
      return <RetainedView />;
    case "why":
      return <WhyView />;
    case "compare":
      return <CompareSnapshotsView />;
    case "findings":
      return <FindingsView />;
  }
}
