// Retaining paths: why memory is alive, and which code allocated it.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SiteRow, Step, Why, WhyRow } from "../api/types";
import { bytes, count, estimatedBytes, percent, printable } from "../format";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { patternOf } from "../state/patterns";
import { status } from "../state/session";
import { state, update } from "../state/state";
import { Chip, Empty, Select } from "../widgets/controls";
import { openMenuBelow } from "../widgets/menu";
import { Problem } from "../widgets/problem";
import { tipOn } from "../widgets/tip";
import { EVERYTHING, showWhy, valueMenu } from "./actions";
import { whyQuestion } from "./questions";

/** Sites that are shown below a path. */
const SITES = 3;

const DEPTHS = ["1", "2", "3", "4", "6", "8", "12", "32"] as const;

type Selected = keyof typeof EVERYTHING;

const SELECTIONS: readonly { name: Selected; text: string; example: string; needsSites: boolean; help: string }[] = [
  {
    name: "heldBy",
    text: "held by",
    example: "Cache.table",
    needsSites: false,
    help: "Blocks that a definition, module, closure or other value retains",
  },
  {
    name: "through",
    text: "through",
    example: "Cache.table",
    needsSites: false,
    help: "Blocks whose shortest path from a root goes through it, also if others reach them too",
  },
  {
    name: "kind",
    text: "kind",
    example: "closure Cache.*",
    needsSites: false,
    help: "Values of a kind; * and ? are wildcards, /.../ is a regular expression",
  },
  { name: "address", text: "address", example: "0x7f12a0", needsSites: false, help: "One block" },
  {
    name: "site",
    text: "allocated by",
    example: "Parser.*",
    needsSites: true,
    help: "Blocks that some functions have allocated",
  },
  { name: "where", text: "where", example: "age > 1min", needsSites: true, help: "Sampled blocks by any query" },
];

export function WhyView(): JSX.Element {
  const now = state.value;
  const answer = useAnswer<Why>(whyQuestion(now));
  const { data, error, isStale } = answer;
  const hasSites = status.value?.sites === true;
  const whole = data?.estimated?.value ?? data?.selected.bytes ?? 0;
  return (
    <div class="view">
      <div class="toolbar">
        <Selection hasSites={hasSites} />
        <Select
          label="Merge paths after"
          value={DEPTHS.find((depth) => depth === now.depth) ?? "4"}
          options={DEPTHS.map((value) => ({ value, text: value === "1" ? "1 name" : `${value} names` }))}
          onChange={(depth) => update({ depth })}
        />
        {SELECTIONS.filter(({ name }) => now[name] !== "").map(({ name, text }) => (
          <Chip key={name} kind={text} text={printable(now[name])} onRemove={() => update({ [name]: "" })} />
        ))}
        <span class="spring" />
        {data && (
          <span class="found" role="status">
            {data.estimated
              ? `${estimatedBytes(data.estimated)}, estimated from ${count(data.selected.blocks)} sampled blocks`
              : `${bytes(data.selected.bytes)}, ${count(data.selected.blocks)} blocks`}
          </span>
        )}
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : data && data.rows.length === 0 ? (
        <Empty title="Nothing here">No block is in this selection.</Empty>
      ) : (
        data && (
          <div class={`why ${data.sites.length > 0 ? "has-sites" : ""} ${isStale ? "stale" : ""}`}>
            <div class="why-paths" role="list" aria-label="Paths from a root">
              {data.rows.map((row, k) => (
                <Path key={k} row={row} whole={whole} />
              ))}
              {data.hidden_rows > 0 && (
                <p class="view-note muted">
                  {count(data.hidden_rows)} more paths to {bytes(data.hidden.bytes)}.
                </p>
              )}
            </div>
            {data.sites.length > 0 && <Sites sites={data.sites} hidden={data.hidden_sites} />}
          </div>
        )
      )}
      {!hasSites && (
        <p class="view-note muted">
          Allocation sites need a recording of the same run: <code>heapline view FILE.heap --trace FILE.ctf</code>
        </p>
      )}
    </div>
  );
}

/** The field that selects blocks. Report files have the answers to some selections only, which are chosen elsewhere. */
function Selection({ hasSites }: { hasSites: boolean }): JSX.Element | null {
  const now = state.value;
  const possible = SELECTIONS.filter(({ needsSites }) => hasSites || !needsSites);
  const [name, setName] = useState<Selected>(() => possible.find(({ name }) => now[name] !== "")?.name ?? "heldBy");
  const [text, setText] = useState(now[name]);
  useEffect(() => setText(now[name]), [name, now[name]]);
  const chosen = possible.find((one) => one.name === name);
  if (!currentSource().hasServer) return null;
  return (
    <form
      class="why-form"
      onSubmit={(event) => {
        event.preventDefault();
        update({ [name]: text.trim() });
      }}
    >
      <Select
        label="Paths to blocks"
        value={name}
        options={possible.map(({ name, text }) => ({ value: name, text }))}
        onChange={setName}
      />
      <input
        class="why-input"
        type="text"
        aria-label={chosen?.help ?? "Value"}
        placeholder={chosen?.example ?? ""}
        value={text}
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
        {...tipOn(chosen?.help ?? "")}
      />
      <button type="submit" class="button">
        Show
      </button>
    </form>
  );
}

function Path({ row, whole }: { row: WhyRow; whole: number }): JSX.Element {
  const size = row.estimated?.value ?? row.selected.bytes;
  return (
    <div class="why-row" role="listitem">
      <span class="number why-amount">
        <span class="amount">
          <i class="bar" style={{ width: `${(100 * size) / (whole || 1)}%` }} />
          <span>{row.estimated ? estimatedBytes(row.estimated) : bytes(size)}</span>
          <span class="muted">{percent(size, whole)}</span>
        </span>
      </span>
      <div>
        <div class="why-path">
          {row.path.map((step, k) => (
            <StepButton key={k} step={step} path={row.path.slice(0, k + 1)} />
          ))}
          {row.is_cut && <span class="muted">…</span>}
        </div>
        {row.estimated === null && row.example !== null && (
          <div class="why-example muted">
            {count(row.selected.blocks)} {row.selected.blocks === 1 ? "block" : "blocks"}, such as{" "}
            <button type="button" class="link" onClick={() => showWhy({ address: row.example ?? "" })}>
              {row.example}
            </button>
          </div>
        )}
        {row.sites.length > 0 && (
          <div class="why-sites muted">
            allocated:{" "}
            {row.sites.slice(0, SITES).map((site, k) => (
              <span key={k}>
                {k > 0 && ", "}
                {estimatedBytes(site.bytes)} in <SiteButton site={site} />
              </span>
            ))}
            {row.sites.length > SITES && `, ${count(row.sites.length - SITES)} more sites`}
          </div>
        )}
      </div>
    </div>
  );
}

function StepButton({ step, path }: { step: Step; path: readonly Step[] }): JSX.Element {
  const named = { name: step.name, kind: step.kind, place: step.place };
  // A shortest path is one of the dominator tree only as far as it is certain: at its first name.
  const at = path.length === 1 ? { path: step.name } : {};
  return (
    <button type="button" class="step" onClick={(event) => openMenuBelow(event, valueMenu({ ...named, ...at }))}>
      {printable(step.name)}
      {step.values > 1 && <span class="muted"> × {count(step.values)}</span>}
      {step.place && <span class="place">{printable(step.place)}</span>}
    </button>
  );
}

function SiteButton({ site }: { site: SiteRow }): JSX.Element {
  return (
    <button
      type="button"
      class="link"
      onClick={() => showWhy({ site: patternOf(site.site.name) })}
      {...tipOn("Show what holds the memory that it allocated")}
    >
      {printable(site.site.name)}
      {site.site.place && ` (${printable(site.site.place)})`}
    </button>
  );
}

/** All places that allocated the selected blocks: from a retainer to sites. */
function Sites({ sites, hidden }: { sites: readonly SiteRow[]; hidden: number }): JSX.Element {
  return (
    <div class="why-side">
      <h2>Allocated in</h2>
      <ul aria-label="Allocation sites">
        {sites.map((site, k) => (
          <li key={k}>
            <button
              type="button"
              class="site-row"
              onClick={() => showWhy({ site: patternOf(site.site.name) })}
              {...tipOn("Show what holds the memory that it allocated")}
            >
              <span class="number">{estimatedBytes(site.bytes)}</span>
              <span class="name">
                {printable(site.site.name)}
                {site.site.place && <span class="place">{printable(site.site.place)}</span>}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {hidden > 0 && <p class="muted">{count(hidden)} more.</p>}
    </div>
  );
}
