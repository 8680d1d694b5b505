// Sizes and lifetimes of blocks.

import type { ComponentChildren, JSX } from "preact";
import type { Bin, Heatmap, Quantiles, Stats } from "../api/types";
import { bytes, count, estimatedBytes, percent, queryTime, seconds } from "../format";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { withClause } from "../state/patterns";
import { heatmapQuestion, statsQuestion } from "../state/questions";
import { state, update } from "../state/state";
import { Check, Empty, Explain, Segmented } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { Histogram, Survival } from "./charts";
import { HeatmapChart } from "./heatmap";
import { isRecording } from "../state/live";

export function LifetimesView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  const answer = useAnswer<Stats>(statsQuestion(now));
  const { data, error, isStale } = answer;
  const heat = useAnswer<Heatmap>(heatmapQuestion(now));
  const filter = (clause: string) => update({ where: withClause(now.where, clause) });
  const pickLife = (bin: Bin) =>
    filter(`lifetime in ${queryTime(bin.low)}..${queryTime(bin.high)} and not live at end`);
  if (error && isFatal(answer)) return <Problem error={error} />;
  if (!data) return <div class="view" />;
  if (data.total.samples === 0) return <Empty title="Nothing here">No sampled block is in this selection.</Empty>;
  const { sizes, lifetimes } = data;
  const word = data.subject.word_bytes;
  const isInWords = word > 1;
  const sizeUnit = isInWords ? "words" : "bytes";
  const pickSize = ({ low, high }: Bin) => filter(isInWords ? `size in ${low}w..${high}w` : `size in ${low}..${high}`);
  return (
    <div class={`view ${isStale ? "stale" : ""}`}>
      <div class="toolbar">
        <Segmented
          label="Unit"
          value={now.unit}
          options={[
            { value: "bytes", text: "Bytes" },
            { value: "blocks", text: "Blocks" },
          ]}
          onChange={(unit) => update({ unit })}
        />
        <Check text="Logarithmic heights" value={now.logHeights} onChange={(logHeights) => update({ logHeights })} />
        <span class="spring" />
        <span class="muted">
          {estimatedBytes(data.total.bytes)} in {count(data.subject.sampled_blocks)} sampled blocks
        </span>
      </div>
      <div class="cards">
        <Card
          title="Allocations over time, by lifetime"
          isWide
          help="Each cell is the memory allocated in a time slice with this lifetime. The top row was live at the end. Rows of dark cells are generations; a dark top row that never fades is a leak."
        >
          {heat.data ? (
            <HeatmapChart data={heat.data} hasServer={hasServer} />
          ) : (
            heat.error && <Problem error={heat.error} />
          )}
        </Card>
        <Card
          title="Survival"
          help="The share of blocks that live longer than a given time. Blocks that were live at the end are treated as censored (Kaplan-Meier)."
          facts={[
            ["median", quantile(lifetimes.seconds.p50, lifetimes.oldest)],
            ["90 %", quantile(lifetimes.seconds.p90, lifetimes.oldest)],
            ["99 %", quantile(lifetimes.seconds.p99, lifetimes.oldest)],
            [
              isRecording() ? "blocks alive now" : "blocks alive at end",
              percent(lifetimes.alive.blocks.value, data.total.blocks.value),
            ],
          ]}
        >
          <Survival points={lifetimes.survival} duration={data.subject.duration} />
        </Card>
        <Card
          title="Lifetimes of what died"
          help={
            data.subject.tells.promotions
              ? "How long blocks lived that were collected. Times are those at which the garbage collector noticed."
              : "How long blocks lived that were freed."
          }
          facts={[
            ["mean", lifetimes.mean === null ? "-" : seconds(lifetimes.mean)],
            ["longest", lifetimes.max === null ? "-" : seconds(lifetimes.max)],
            ["median in allocation", lifetimes.bytes.p50 === null ? "-" : bytes(lifetimes.bytes.p50)],
          ]}
        >
          {lifetimes.log.length > 0 ? (
            <Histogram
              bins={lifetimes.log}
              unit={now.unit}
              isLog={now.logHeights}
              label="Blocks by lifetime"
              edge={(value) => (value === 0 ? "0" : seconds(value))}
              onPick={hasServer ? pickLife : null}
            />
          ) : (
            <Empty title="No block died" />
          )}
        </Card>
        <Card
          title="Sizes"
          help={`How large blocks are, in ${isInWords ? "words without the header" : "bytes"}, in powers of two.`}
          facts={[
            ["mean", sizes.mean === null ? "-" : `${sizes.mean.toFixed(1)} ${sizeUnit}`],
            ...sizeQuantiles(sizes.quantiles),
            ["largest", sizes.max === null ? "-" : bytes(sizes.max * word)],
            [
              `over ${sizes.large_limit} ${sizeUnit}`,
              sizes.large_bytes_percent === null ? "-" : `${sizes.large_bytes_percent.toFixed(1)} % of bytes`,
            ],
          ]}
        >
          <Histogram
            bins={sizes.log}
            unit={now.unit}
            isLog={now.logHeights}
            label="Blocks by size"
            edge={(value) => (value >= 1024 ? `${value / 1024}k` : String(value))}
            onPick={hasServer ? pickSize : null}
          />
        </Card>
      </div>
    </div>
  );
}

/** A lifetime; if it is not known, longer than the age of the oldest block. */
function quantile(value: number | null, oldest: number | null): string {
  return value === null ? `> ${seconds(oldest ?? 0)}` : seconds(value);
}

function sizeQuantiles({ p50, p99 }: Quantiles): [string, string][] {
  return [
    ["median", p50 === null ? "-" : String(p50)],
    ["99 %", p99 === null ? "-" : count(p99)],
  ];
}

function Card(props: {
  title: string;
  help: string;
  isWide?: boolean;
  facts?: readonly [string, string][];
  children: ComponentChildren;
}): JSX.Element {
  return (
    <section class={`card ${props.isWide ? "is-wide" : ""}`}>
      <div class="card-head">
        <h2>{props.title}</h2>
        <Explain>{props.help}</Explain>
        <span class="spring" />
        {props.facts?.map(([name, value]) => (
          <span key={name} class="fact">
            <span class="muted">{name}</span> {value}
          </span>
        ))}
      </div>
      {props.children}
    </section>
  );
}
