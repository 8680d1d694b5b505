// The header: program and recording.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Info } from "./api/types";
import { basename } from "./app";
import { bytes, count, printable, seconds } from "./format";
import { openHelp } from "./help";
import { LiveMark } from "./live-mark";
import { SaveButton } from "./save/menu";
import { type Answer, currentSource, useAnswer } from "./state/answers";
import { commandOf } from "./state/command";
import { viewQuestion } from "./state/questions";
import { showDetails, status, traceFacts } from "./state/session";
import { state, update } from "./state/state";
import { isDark, toggleTheme } from "./theme";
import { copy, IconButton, Segmented } from "./widgets/controls";
import { Icon, Mark } from "./widgets/icons";
import { hideTip, tipOn } from "./widgets/tip";

/** The header of any file: the name of the program, facts about it, and tools. */
export function HeaderBar(props: {
  program: string;
  /** The answer of the view on the screen. */
  answer: Answer<unknown>;
  children: ComponentChildren;
  details?: ComponentChildren;
  /** More tools. */
  tools?: ComponentChildren;
}): JSX.Element {
  const command = commandOf(props.answer);
  return (
    <header class="header">
      <div class="brand">
        <Mark />
        <span>Heapline</span>
      </div>
      <div class="program">
        <h1>{printable(basename(props.program)) || "Unknown program"}</h1>
        {props.children}
      </div>
      <div class="header-tools">
        <button
          type="button"
          class="button"
          disabled={command === null}
          onClick={() => command !== null && void copy(command, "the command")}
          {...tipOn(
            <>
              <div class="tip-text">
                {props.answer.command === null
                  ? "The command of this view is not in the report file. Copy the one that opens the file:"
                  : "Copy the command that prints the numbers of this view:"}
              </div>
              <code class="tip-code">{command}</code>
            </>,
          )}
        >
          <Icon name="terminal" /> Copy as command
        </button>
        <IconButton
          icon="link"
          text="Copy the link of this view"
          onClick={() => void copy(location.href, "the link of this view")}
        />
        {props.tools}
        <IconButton
          icon={isDark.value ? "sun" : "moon"}
          text={isDark.value ? "Light" : "Dark"}
          hint="d"
          onClick={toggleTheme}
        />
        <IconButton icon="help" text="Help and keys" hint="?" onClick={openHelp} />
      </div>
      {props.details}
    </header>
  );
}

export function Header({ info }: { info: Info }): JSX.Element {
  const isOpen = showDetails.value;
  const setOpen = (isOpen: boolean) => {
    showDetails.value = isOpen;
  };
  const started = new Date(info.trace.start_time_us / 1000);
  const { events } = info;
  const allocations = events.minor + events.major + events.external + events.native;
  const answer = useAnswer(viewQuestion(state.value, traceFacts()));
  return (
    <HeaderBar
      program={info.trace.executable_name}
      answer={answer}
      tools={<SaveButton />}
      details={isOpen && <Details info={info} onClose={() => setOpen(false)} />}
    >
      <button
        type="button"
        class="facts"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        {...tipOn("Details of the recording")}
      >
        {status.value?.against != null && <span>compared with {printable(status.value.against)}</span>}
        {info.trace.start_time_us > 0 && <span>{started.toISOString().slice(0, 16).replace("T", " ")} UTC</span>}
        <span>{seconds(info.duration)}</span>
        {info.tells.sizes ? (
          <>
            <span>{info.is_exact ? "every block recorded" : `1 sample per ${bytes(info.bytes_per_sample)}`}</span>
            <span>{count(allocations)} sampled blocks</span>
          </>
        ) : (
          <span>{count(info.snapshots.length)} snapshots</span>
        )}
        {info.trace.attached_to !== undefined && <span>only blocks allocated since attaching</span>}
        <Icon name="down" />
      </button>
      <LiveMark info={info} />
      {info.damage.count > 0 && (
        <button
          type="button"
          class="badge is-warning"
          onClick={() => setOpen(true)}
          {...tipOn("The trace is damaged; the intact parts are shown.")}
        >
          <Icon name="warn" /> damaged
        </button>
      )}
    </HeaderBar>
  );
}

/** How many domains there are, and their numbers unless there is only the first. */
export function domainText(domains: readonly number[]): string {
  return domains.length === 1 && domains[0] === 0 ? "1" : `${domains.length}: ${domains.join(", ")}`;
}

function Details({ info, onClose }: { info: Info; onClose: () => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    hideTip();
    const away = (event: Event) => {
      const target = event.target as Element;
      if (!box.current?.contains(target) && !target.closest(".facts")) onClose();
    };
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    document.addEventListener("pointerdown", away, true);
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("pointerdown", away, true);
      document.removeEventListener("keydown", onKey);
    };
  }, []);
  const { trace, events, damage } = info;
  const isNative = trace.ocaml_runtime_params === null;
  const set = info.gc_params?.params.filter((param) => !param.is_default);
  const facts: [string, string][] = [
    ["Program", trace.executable_name],
    ["Process", `${trace.pid} on ${trace.host_name}${isNative ? "" : `, ${trace.word_size}-bit`}`],
    ...(trace.context ? [["Context", trace.context] as [string, string]] : []),
    [
      "Recorded",
      `${new Date(trace.start_time_us / 1000).toISOString().replace("T", " ").slice(0, 19)} UTC, for ${seconds(info.duration)}`,
    ],
    [
      "Trace",
      `${info.file}, ${bytes(info.file_size ?? info.trace_bytes)}: ${info.format} format ${info.format_version}, ${count(info.packets)} packets`,
    ],
    [isNative ? "Threads" : "Domains", domainText(info.domains)],
    [
      "Sampling",
      info.is_exact
        ? `rate 1: every ${isNative ? "byte" : "word"}`
        : `${isNative ? "" : `rate ${trace.sample_rate}: `}one sample for ${bytes(info.bytes_per_sample)} on average`,
    ],
    [
      "Events",
      isNative
        ? `${count(events.native)} allocations; ${count(events.collections)} frees`
        : `${count(events.minor)} minor, ${count(events.major)} major, ${count(events.external)} external allocations; ${count(events.promotions)} promotions; ${count(events.collections)} collections`,
    ],
    ["Samples", count(info.samples.total)],
    ...(info.coarse
      ? [
          [
            "History",
            `blocks that died before ${seconds(info.coarse.until)} are summed up in ${count(info.coarse.intervals)} intervals of ${seconds(info.coarse.shortest)} to ${seconds(info.coarse.longest)}; within an interval only means are known`,
          ] as [string, string],
        ]
      : []),
    ...(info.gaps
      ? [
          [
            "Gaps",
            `new blocks were not recorded ${info.gaps.count === 1 ? "once" : `${count(info.gaps.count)} times`}, for ${seconds(info.gaps.seconds)} in all, between ${seconds(info.gaps.first)} and ${seconds(info.gaps.last)}`,
          ] as [string, string],
        ]
      : []),
    ...(info.has_cut_stacks
      ? [["Stacks", "cut when they were recorded; <deeper calls> stands for the outer frames"] as [string, string]]
      : []),
  ];
  return (
    <div class="details" ref={box} role="dialog" aria-label="What was recorded">
      {damage.count > 0 && (
        <div class="damage">
          <strong>
            <Icon name="warn" /> {count(damage.count)} {damage.count === 1 ? "flaw" : "flaws"} in this trace.
          </strong>{" "}
          {bytes(damage.lost_bytes)} and {count(damage.lost_allocations)} allocations are known to be lost; everything
          else is shown. <code>heapline info</code> lists the flaws.
        </div>
      )}
      <dl>
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{printable(value)}</dd>
          </>
        ))}
      </dl>
      {!isNative && <h2>Garbage collector</h2>}
      {isNative ? null : !set ? (
        <p class="muted">The settings are not recorded.</p>
      ) : set.length === 0 ? (
        <p class="muted">As by default.</p>
      ) : (
        <dl>
          {set.map((param) => (
            <>
              <dt>
                <code>
                  {printable(param.key)}={printable(param.value)}
                </code>
              </dt>
              <dd>{param.meaning}</dd>
            </>
          ))}
        </dl>
      )}
      {currentSource().hasServer && <h2>Numbers</h2>}
      {currentSource().hasServer && (
        <Segmented
          label="Estimator"
          value={state.value.estimator}
          options={[
            {
              value: "horvitz-thompson",
              text: "Best estimate",
              help: "Size over the probability of being sampled: the most precise",
            },
            {
              value: "count",
              text: "As memtrace counts",
              help: "Samples over the rate: the numbers of memtrace's tools and viewer",
            },
          ]}
          onChange={(estimator) => update({ estimator })}
        />
      )}
    </div>
  );
}
