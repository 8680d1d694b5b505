// The overview: findings in sentences, and the lists of the summary.

import type { JSX } from "preact";
import type { Summary, TraceFinding } from "../api/types";
import { useKeys } from "../keys";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { overviewQuestion, PLAIN_LOOK } from "../state/questions";
import { showDetails } from "../state/session";
import { type State, state, update } from "../state/state";
import { Empty } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { WholeNote } from "../views/whole-note";
import { Lists } from "./lists";
import { Sentence } from "./sentence";
import { targetOf } from "./targets";

/** The buttons of findings and rows, in the order of the page. */
const BUTTONS = ".trace-finding, .ranked:enabled";

function move(step: 1 | -1): void {
  const buttons = [...document.querySelectorAll<HTMLElement>(BUTTONS)];
  const at = buttons.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? 0 : Math.max(0, Math.min(buttons.length - 1, at + step));
  buttons[next]?.focus();
}

export function OverviewView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  const asked: State = hasServer ? now : { ...now, ...PLAIN_LOOK, window: null };
  const answer = useAnswer<Summary>(overviewQuestion(asked));
  useKeys("Overview", [
    { key: "ArrowDown", does: "to the next finding or row", run: () => move(1) },
    { key: "ArrowUp", does: "to the previous finding or row", run: () => move(-1) },
    { key: "j", does: "to the next finding or row", run: () => move(1) },
    { key: "k", does: "to the previous finding or row", run: () => move(-1) },
  ]);

  if (isFatal(answer) && answer.error) return <Problem error={answer.error} />;
  const { data } = answer;
  if (!data) return <div class="view" />;
  if (data.subject.sampled_blocks === 0 && data.findings.length === 0) {
    return <Empty title="Nothing here">No sampled block is in this selection.</Empty>;
  }
  return (
    <div class="view">
      <WholeNote what="overview" ignoresWindow />
      <div class={`overview ${answer.isStale ? "stale" : ""}`}>
        <section class="trace-findings" aria-label="Findings">
          <h2>Findings</h2>
          <Findings findings={data.findings} isExact={data.subject.is_exact} />
        </section>
        <Lists summary={data} />
      </div>
    </div>
  );
}

function Findings(props: { findings: readonly TraceFinding[]; isExact: boolean }): JSX.Element {
  const { findings } = props;
  if (findings.length === 0)
    return <p class="muted">Nothing stands out{props.isExact ? "" : " of the sampling error"}.</p>;
  return (
    <>
      <ol>
        {findings.map((finding) => (
          <li key={finding.kind}>
            <button type="button" class="trace-finding" onClick={() => show(finding)}>
              <Sentence phrases={finding.sentence} />
            </button>
          </li>
        ))}
      </ol>
      <p class="muted">Click one to see it. The memory of libraries is attributed to your own code.</p>
    </>
  );
}

function show(finding: TraceFinding): void {
  const target = targetOf(finding, state.value, currentSource().hasServer);
  if (target === "details") showDetails.value = true;
  else update(target);
}
