// The tables of the garbage collector.

import type { ComponentChildren, JSX } from "preact";
import type { AuditedQuantity, CollectorWords, Gc, Lengths } from "../api/types";
import { count, estimatedBytes, percent, seconds } from "../format";
import { isDark } from "../theme";
import { tipOn } from "../widgets/tip";
import { KIND_HELP, KIND_NAMES, kindColours } from "./kinds";
import { wordBytes, wordRate } from "./text";

function time(value: number | null): string {
  return value === null ? "" : seconds(value);
}

/** Columns that go first where there is too little room. */
type Priority = "is-least" | "is-minor" | "is-lesser" | "";

function Head(props: {
  columns: readonly (readonly [name: string, help: string, priority?: Priority])[];
}): JSX.Element {
  return (
    <thead>
      <tr>
        {props.columns.map(([name, help, priority = ""], k) =>
          name === "" ? (
            <td key={k} />
          ) : (
            <th key={k} class={`${k === 0 ? "" : "number"} ${priority}`} {...(help ? tipOn(help) : {})}>
              {name}
            </th>
          ),
        )}
      </tr>
    </thead>
  );
}

/** A table that scrolls if there is too little room. */
function Table(props: { label: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="gc-scroll" tabIndex={0} role="region" aria-label={props.label}>
      <table class="gc-table">{props.children}</table>
    </div>
  );
}

/** How long each kind of work took. */
export function KindTable({ data }: { data: Gc }): JSX.Element {
  const colours = kindColours(isDark.value);
  const row = (name: ComponentChildren, lengths: Lengths, total: number, className = "") => (
    <tr class={className}>
      <th scope="row">{name}</th>
      <td class="number">{count(lengths.count)}</td>
      <td class="number">{seconds(total)}</td>
      <td class="number is-minor">{percent(total, data.collector.of_seconds)}</td>
      <td class="number is-least">{time(lengths.mean)}</td>
      <td class="number">{time(lengths.p50)}</td>
      <td class="number is-minor">{time(lengths.p90)}</td>
      <td class="number is-lesser">{time(lengths.p99)}</td>
      <td class="number is-least">{time(lengths.p99_9)}</td>
      <td class="number">{time(lengths.max)}</td>
    </tr>
  );
  return (
    <Table label="Kinds of work">
      <Head
        columns={[
          ["", ""],
          ["count", ""],
          ["time", "All together"],
          ["share", "Of the time of all domains", "is-minor"],
          ["mean", "", "is-least"],
          ["p50", "Half of them took no longer: the median"],
          ["p90", "90 % of them took no longer", "is-minor"],
          ["p99", "99 % of them took no longer", "is-lesser"],
          ["p99.9", "99.9 % of them took no longer", "is-least"],
          ["longest", ""],
        ]}
      />
      <tbody>
        {data.kinds.map(({ kind, ...lengths }) =>
          row(
            <span {...tipOn(KIND_HELP[kind])}>
              <i class="dot" style={{ background: colours[kind] }} /> {KIND_NAMES[kind]}
            </span>,
            lengths,
            lengths.total,
          ),
        )}
        {row(
          <span {...tipOn("Work of a domain without time between the pieces is one pause.")}>pauses</span>,
          data.pauses,
          data.collector.seconds,
          "is-total",
        )}
      </tbody>
    </Table>
  );
}

/** Words that were allocated and promoted: exact, and as the samples have them. */
export function WordTable({ data, words }: { data: Gc; words: CollectorWords }): JSX.Element {
  const { audit } = data;
  const sampled = (quantity: AuditedQuantity | null | undefined) =>
    quantity ? `${estimatedBytes(quantity.sampled)}${quantity.disagrees ? " (!)" : ""}` : "";
  const row = (name: string, amount: number, sampled: string, className = "") => (
    <tr>
      <th scope="row" class={className}>
        {name}
      </th>
      <td class="number">{wordBytes(data, amount)}</td>
      <td class="number is-minor">{count(amount)}</td>
      <td class="number is-lesser">{wordRate(data, amount)}</td>
      {audit && <td class="number muted">{sampled}</td>}
    </tr>
  );
  return (
    <Table label="Words allocated and promoted">
      <Head
        columns={[
          ["", ""],
          ["counted", "As the runtime counts it: exact"],
          ["words", "", "is-minor"],
          ["per second", "", "is-lesser"],
          ...(audit ? [["sampled", "The same, estimated from samples"] as const] : []),
        ]}
      />
      <tbody>
        {row("Allocated", words.allocated, "")}
        {row("on the minor heap", words.minor, sampled(audit?.minor), "is-part")}
        {row("directly on the major heap", words.direct, sampled(audit?.direct), "is-part")}
        {row("Promoted", words.promoted, sampled(audit?.promoted))}
      </tbody>
    </Table>
  );
}

/** The domains, and how they held up each other. */
export function DomainTable({ data }: { data: Gc }): JSX.Element {
  return (
    <Table label="By domain">
      <Head
        columns={[
          ["domain", ""],
          ["collector", "Share of the time that the domain existed"],
          ["pauses", "", "is-least"],
          ["longest", "", "is-lesser"],
          ["allocated", "Counted by the runtime: exact", "is-minor"],
          ["promoted", "Counted by the runtime: exact"],
          ["arrived last", "Minor collections of all domains for which the others waited for this one", "is-minor"],
          ["held up others", "The time that others waited for it"],
        ]}
      />
      <tbody>
        {data.domains.map((domain) => {
          const stops = data.stops?.domains.find((one) => one.domain === domain.domain);
          const amount = (words: number | undefined) => (words === undefined ? "?" : wordBytes(data, words));
          return (
            <tr key={domain.domain}>
              <th scope="row">{domain.domain}</th>
              <td class="number">{percent(domain.collector.percent, 100)}</td>
              <td class="number is-least">{count(domain.pauses.count)}</td>
              <td class="number is-lesser">{time(domain.pauses.max)}</td>
              <td class="number is-minor">{amount(domain.words?.allocated)}</td>
              <td class="number">{amount(domain.words?.promoted)}</td>
              <td class="number is-minor">{stops ? count(stops.arrived_last) : ""}</td>
              <td class="number">{stops ? seconds(stops.held_up) : ""}</td>
            </tr>
          );
        })}
      </tbody>
    </Table>
  );
}
