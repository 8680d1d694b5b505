// The garbage collector: pauses and their causes, exact counts of words, and the size of the heap.

import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Gc, WorstPause } from "../api/types";
import { AttributedTo } from "../filter/attributed-to";
import { percent, plural, seconds } from "../format";
import { useKeys } from "../keys";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { endText } from "../state/describe";
import { collectorQuestion, PLAIN_LOOK } from "../state/questions";
import { type State, state, update } from "../state/state";
import { WholeNote } from "../views/whole-note";
import { Empty, Explain, notify } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { choosePause, isChosen } from "./choose";
import { HeapChart } from "./heap";
import { Causes, promotedText, PromotedSites } from "./pause";
import { DomainTable, KindTable, WordTable } from "./tables";
import { countsText, headlineText, lossTexts, piecesText, startText, stopsText, wordBytes, wordsNote } from "./text";

export function CollectorView(): JSX.Element {
  const now = state.value;
  const { hasServer } = currentSource();
  const asked: State = hasServer ? now : { ...now, ...PLAIN_LOOK, where: "", window: null };
  const answer = useAnswer<Gc>(collectorQuestion(asked));
  const { data, error, isStale } = answer;
  if (error && isFatal(answer)) return <Problem error={error} />;
  if (!data) return <div class="view" />;
  const { words, heap } = data;
  const stops = stopsText(data);
  return (
    <div class={`view ${isStale ? "stale" : ""}`}>
      <WholeNote what="garbage collector" ignoresWindow />
      <div class="gc-head">
        <h2>Garbage collector: {headlineText(data)}</h2>
        <p class="muted">{countsText(data)}</p>
        {lossTexts(data).map((text) => (
          <p key={text} class="gc-loss">
            {text}
          </p>
        ))}
      </div>
      {data.pauses.count === 0 ? (
        <Empty title="The collector did no work" />
      ) : (
        <div class={`gc-cards ${data.domains.length > 1 ? "has-domains" : ""}`}>
          <Card title="Kinds of work" help="Every piece of work is recorded, so times and quantiles are exact.">
            <KindTable data={data} />
          </Card>
          <Card title="Words allocated and promoted" help="The runtime counts every word, headers included.">
            {words && <WordTable data={data} words={words} />}
            <p class="muted gc-note">
              {words?.promoted_percent != null &&
                `${percent(words.promoted_percent, 100)} of what is allocated on the minor heap is promoted. `}
              {wordsNote(data)}
            </p>
          </Card>
          <Pauses data={data} hasServer={hasServer} />
          {heap && (
            <Card
              title="Major heap"
              help="Its size as the runtime tells it at the end of each piece of work. The darker part is in use."
            >
              <HeapChart data={data} />
              <p class="muted gc-note">
                At most {wordBytes(data, heap.max_words)}, at {seconds(heap.max_time)};{" "}
                {wordBytes(data, heap.end_words)} {endText()}, of which {percent(heap.end_free_words, heap.end_words)}{" "}
                is free.
              </p>
            </Card>
          )}
          {data.domains.length > 1 && (
            <Card
              title="By domain"
              help="A minor collection stops all domains: those that arrive first wait for the last one."
            >
              <DomainTable data={data} />
              {stops && <p class="muted gc-note">{stops}</p>}
            </Card>
          )}
        </div>
      )}
    </div>
  );
}

function Card(props: { title: string; help: string; more?: JSX.Element; children: ComponentChildren }): JSX.Element {
  return (
    <section class="card">
      <div class="card-head">
        <h2>{props.title}</h2>
        <Explain>{props.help}</Explain>
        {props.more}
      </div>
      {props.children}
    </section>
  );
}

/** Pauses that are shown until more are asked for. */
const FEW = 8;

/** The longest pauses, with their causes. A click selects the time of one. */
function Pauses({ data, hasServer }: { data: Gc; hasServer: boolean }): JSX.Element {
  const now = state.value;
  const { slices } = currentSource();
  const list = useRef<HTMLOListElement>(null);
  const [focused, setFocused] = useState(0);
  const [isOpen, setIsOpen] = useState(false);
  const choose = (pause: WorstPause) => {
    const change = choosePause(now, pause, slices);
    if (change) update(change);
    else notify("This report file has no windows: heapline report --slices writes some.");
  };
  const move = (step: 1 | -1) => {
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>(".pause-button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const next = at < 0 ? 0 : Math.max(0, Math.min(buttons.length - 1, at + step));
    setFocused(next);
    buttons[next]?.focus();
  };
  useKeys("Collector", [
    { key: "ArrowDown", does: "to the next pause", run: () => move(1) },
    { key: "ArrowUp", does: "to the previous pause", run: () => move(-1) },
    { key: "j", does: "to the next pause", run: () => move(1) },
    { key: "k", does: "to the previous pause", run: () => move(-1) },
  ]);
  const longest = data.worst[0]?.length ?? 0;
  const isAll = isOpen || data.worst.findIndex((pause) => isChosen(now, pause)) >= FEW;
  const shown = isAll ? data.worst : data.worst.slice(0, FEW);
  const rest = data.worst.length - shown.length;
  return (
    <section class="card is-wide">
      <div class="card-head">
        <h2>Longest pauses</h2>
        <Explain>
          Pieces of work that follow each other without a gap are one pause. Lengths and words are exact; the sites of
          what was promoted are estimated from samples.
        </Explain>
        {hasServer && data.worst.some((pause) => (pause.promoted?.rows.length ?? 0) > 0) && (
          <AttributedTo ownCode={data.subject.own_code} />
        )}
        <span class="spring" />
        {hasServer && <span class="muted">Click one to select its time.</span>}
      </div>
      <ol class="pauses" ref={list}>
        {shown.map((pause, k) => (
          <li
            key={`${pause.start} ${pause.domain}`}
            class={`pause ${isChosen(now, pause) ? "is-on" : ""}`}
            onClick={() => choose(pause)}
          >
            <button
              type="button"
              class="pause-button"
              aria-pressed={isChosen(now, pause)}
              tabIndex={k === Math.min(focused, shown.length - 1) ? 0 : -1}
              onFocus={() => setFocused(k)}
            >
              <span class="pause-length">
                <strong>{seconds(pause.length)}</strong>
                <i style={{ width: `${longest > 0 ? (100 * pause.length) / longest : 0}%` }} />
              </span>
              <span class="pause-when muted">
                at {startText(pause)}
                {data.domains.length > 1 && <>, domain {pause.domain}</>}
              </span>
            </button>
            <div class="pause-text">
              <Causes pause={pause} />
              <p class="muted">
                {piecesText(pause)}
                {promotedText(pause) !== "" && `; ${promotedText(pause)}`}
              </p>
            </div>
            <PromotedSites pause={pause} />
          </li>
        ))}
      </ol>
      <p class="muted gc-note">
        {rest > 0 && (
          <button type="button" class="link" onClick={() => setIsOpen(true)}>
            Show {rest} more
          </button>
        )}
        {rest > 0 && data.hidden_rows > 0 && " "}
        {data.hidden_rows > 0 && `${plural(data.hidden_rows, "shorter pause")}.`}
      </p>
    </section>
  );
}
