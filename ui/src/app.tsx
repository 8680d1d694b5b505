// The page: opens the source of its data, waits until the trace is loaded, then shows it.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, openSource, type Reply, type Source } from "./api/source";
import type { Status } from "./api/server";
import type { Info, Retained, Series, Summary } from "./api/types";
import { reserveColours } from "./colours";
import { bytes } from "./format";
import { FlameView } from "./flame/flame";
import { Header } from "./header";
import { Headline } from "./headline";
import { FleetPage } from "./fleet/page";
import { runsQuestion } from "./fleet/questions";
import type { VersionRuns } from "./fleet/types";
import { HeapPage } from "./heap/page";
import { retainedQuestion } from "./heap/questions";
import { HelpDialog, openHelp } from "./help";
import { FilterBar } from "./filter/bar";
import { toggleOwnCode } from "./filter/own-code";
import { useKeys } from "./keys";
import { ask, currentSource, generation, isAwaited, isReplaced, useAnswer, useSource } from "./state/answers";
import {
  firstQuestions,
  infoQuestion,
  PLAIN_LOOK,
  POINTS,
  seriesQuestion,
  summaryQuestion,
  totalsQuestion,
  viewQuestion,
  wholeQuestion,
} from "./state/questions";
import { followRecording, mode, togglePause } from "./state/live";
import { chooseScope, type Tile } from "./state/scope";
import { fleet, heap, info, status, tells, traceFacts } from "./state/session";
import { amend, hasTimes, parseState, setDuration, setRule, type State, state, update, VIEWS } from "./state/state";
import { OverviewView } from "./overview/overview";
import { toggleTheme } from "./theme";
import { extended, snapped } from "./timeline/snap";
import { Timeline } from "./timeline/timeline";
import { BlocksView } from "./views/blocks";
import { CollectorView } from "./collector/view";
import { CompareView } from "./views/compare";
import { LeaksView } from "./views/leaks";
import { LifetimesView } from "./views/lifetimes";
import { SourceView } from "./views/source";
import { SnapshotsView } from "./views/snapshots";
import { TableView } from "./views/table";
import { TreeView } from "./views/tree";
import { Connection, Overwritten, watchFiles } from "./connection";
import { DropLayer } from "./drop";
import { NoticeLayer, notify } from "./widgets/controls";
import { Mark } from "./widgets/icons";
import { MenuLayer } from "./widgets/menu";
import { Tabs, viewKeys } from "./widgets/tabs";
import { TipLayer } from "./widgets/tip";
import { endText } from "./state/describe";

const POLL_MS = 150;

/** Set in the session when the page is loaded again because the server shows something else. */
const REPLACED_KEY = "heapline-replaced";

export const VIEW_NAMES: Record<(typeof VIEWS)[number], string> = {
  overview: "Overview",
  flame: "Flame graph",
  table: "Table",
  tree: "Tree",
  lifetimes: "Lifetimes and sizes",
  leaks: "Leaks",
  compare: "Compare",
  blocks: "Blocks",
  source: "Source",
  collector: "Collector",
  snapshots: "Heap snapshots",
};

export function App(): JSX.Element {
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    open().catch((error: unknown) => setFailure(error instanceof Error ? error.message : String(error)));
  }, []);
  return (
    <>
      {failure !== null ? (
        <Failure message={failure} />
      ) : info.value ? (
        <Page info={info.value} />
      ) : heap.value ? (
        <HeapPage subject={heap.value} />
      ) : fleet.value ? (
        <FleetPage runs={fleet.value} />
      ) : (
        <Loading status={status.value} />
      )}
      <TipLayer />
      <MenuLayer />
      <NoticeLayer />
      <HelpDialog />
    </>
  );
}

async function open(): Promise<void> {
  const source = await openSource();
  useSource(source);
  isReplaced.subscribe((isReplaced) => {
    if (!isReplaced) return;
    sessionStorage.setItem(REPLACED_KEY, "");
    location.reload();
  });
  if (!source.hasServer) setRule(oneAtATime);
  if (source.state !== "" && location.hash.length <= 1) amend(parseState(source.state));
  status.value = await source.status();
  if (status.value.state === "failed") {
    throw new ApiError({ code: "failed", message: status.value.error ?? "The file could not be loaded." });
  }
  if (source.hasServer) watchFiles();
  if (status.value.kind === "fleet") {
    document.title = `${status.value.trace} · Heapline`;
    fleet.value = (await ask<VersionRuns[]>(runsQuestion)).report;
    return;
  }
  if (status.value.kind === "snapshot") {
    const { report } = await loaded(source, ask<Retained>(retainedQuestion(state.value)));
    document.title = `${basename(report.subject.program ?? "")} · Heapline`;
    heap.value = report.subject;
    tellIfReplaced();
    return;
  }
  // Who gives two traces wants their difference.
  if (status.value.against != null && location.hash.length <= 1) amend({ view: "compare" });
  // Send the initial requests now: the server answers them as soon as the trace is loaded. Not those about times, which may
  // be after the end.
  const asked = ask<Info>(infoQuestion);
  if (source.hasServer && !hasTimes(state.value))
    for (const question of firstQuestions(state.value, traceFacts())) ask(question).catch(() => {});
  const { report } = await loaded(source, asked);
  document.title = `${basename(report.trace.executable_name)} · Heapline`;
  info.value = report;
  setDuration(report.duration);
  // The functions that the timeline shows at first. If there is no answer, it says why.
  ask<Series>(seriesQuestion(parseState(""), POINTS)).then(
    ({ report }) => reserveColours(report.groups.filter((group) => !group.is_other).map(({ label }) => label)),
    () => {},
  );
  if (source.slices) amend(heldInReport(source, source.slices));
  tellIfReplaced();
  generation.subscribe(() => {
    // If it fails, so do the questions of the views, which say why.
    ask<Info>(infoQuestion).then(
      ({ report }) => {
        const before = info.value?.duration ?? 0;
        info.value = report;
        amendSpans(before, report.duration);
        setDuration(report.duration);
      },
      () => {},
    );
  });
  if (status.value.recording && source.follow) followRecording();
}

/** The change of a state to what a report file has: windows that begin and end with its slices, and some timelines. */
function heldInReport(source: Source, slices: readonly number[]): Partial<State> {
  const { window } = state.value;
  const usual = parseState("");
  const isHeld = source.holds(seriesQuestion({ ...state.value, ...PLAIN_LOOK }, POINTS));
  return {
    ...(window && { window: slices.length > 0 ? snapped(window, slices) : null }),
    ...(!isHeld && { measure: usual.measure, split: usual.split, callers: [], zoom: null }),
  };
}

/** Says why the page was loaded again. */
function tellIfReplaced(): void {
  if (sessionStorage.getItem(REPLACED_KEY) === null) return;
  sessionStorage.removeItem(REPLACED_KEY);
  notify(`The server shows another recording now: ${status.value?.trace ?? ""}. The page was loaded again.`, 10_000);
}

/** Waits for the first answer, and shows the progress of loading meanwhile. */
async function loaded<T>(source: Source, asked: Promise<Reply<T>>): Promise<Reply<T>> {
  const isAnswered = asked.then(
    () => true,
    () => true,
  );
  while (status.value?.state === "loading" && !(await Promise.race([isAnswered, pause(POLL_MS)]))) {
    status.value = await source.status();
  }
  const reply = await asked;
  if (status.value?.state === "loading") status.value = await source.status();
  return reply;
}

/** Windows that end with the trace go on to do so when it grows. */
function amendSpans(before: number, now: number): void {
  const { window, zoom } = state.value;
  const change = { window: extended(window, before, now), zoom: extended(zoom, before, now) };
  if (change.window !== window || change.zoom !== zoom) amend(change);
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}

/** A report file has answers for a window or for a point in time, not for both. */
function oneAtATime(change: Partial<State>): Partial<State> {
  if (change.window) return { ...change, live: "all", windowOf: "allocated" };
  return change.live != null && change.live !== "all" ? { ...change, window: null } : change;
}

export function basename(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

function Page({ info }: { info: Info }): JSX.Element {
  const now = state.value;
  const { data: whole } = useAnswer<Summary>(wholeQuestion(now));
  const totals = currentSource().hasServer ? totalsQuestion : summaryQuestion;
  const { data: summary, error, isStale } = useAnswer<Summary>(totals(now, traceFacts()));
  const choose = (tile: Tile) => {
    const change = chooseScope(now, tile, traceFacts());
    if (typeof change === "string") notify(change);
    else update(change);
  };
  const peak = whole ? { time: whole.peak_time, bytes: whole.live_at_peak.bytes.value } : null;
  useKeys("Everywhere", [
    { key: "?", does: "this help", run: openHelp },
    ...viewKeys(shownViews(), VIEW_NAMES, 0, (view) => update({ view })),
    { key: "a", does: "show allocated memory", run: () => choose("all") },
    { key: "p", does: "show memory live at the peak", run: () => choose("peak") },
    { key: "e", does: `show memory live ${endText()}`, run: () => choose("end") },
    { key: "b", does: "collapse or expand the timeline", run: () => update({ folded: !now.folded }) },
    { key: "w", does: "write a filter", run: () => document.querySelector<HTMLElement>(".filter-input")?.focus() },
    ...(currentSource().hasServer
      ? [{ key: "y", does: "attribute the memory of libraries to your own code", run: toggleOwnCode }]
      : []),
    { key: "d", does: "light or dark", run: toggleTheme },
    { key: "S", does: "save", run: () => document.querySelector<HTMLElement>(".save-button")?.click() },
    ...(mode.value === "live" || mode.value === "paused"
      ? [{ key: "n", does: "pause or resume following the recording", run: togglePause }]
      : []),
  ]);
  return (
    <div class="page">
      <Header info={info} />
      <Connection />
      <Overwritten />
      <DropLayer />
      <main>
        <Headline summary={summary} whole={whole} isStale={isStale} error={error} onChoose={choose} />
        <FilterBar error={error} />
        <Timeline
          duration={info.duration}
          startMicros={info.trace.start_time_us}
          peak={peak}
          slices={currentSource().slices}
        />
        <section class="panel views" aria-label="Views">
          <Tabs
            views={shownViews()}
            names={VIEW_NAMES}
            firstKey={0}
            view={now.view}
            onChoose={(view) => update({ view })}
          />
          <Panel />
        </section>
      </main>
    </div>
  );
}

/** The view, apart from the page: that need not be drawn again when the answer is there. */
function Panel(): JSX.Element {
  const now = state.value;
  const isBusy = isAwaited(useAnswer(viewQuestion(now, traceFacts())));
  return (
    <div id="view" role="tabpanel" tabIndex={-1} aria-label={VIEW_NAMES[now.view]} aria-busy={isBusy}>
      <View />
    </div>
  );
}

function View(): JSX.Element {
  switch (state.value.view) {
    case "overview":
      return <OverviewView />;
    case "flame":
      return <FlameView />;
    case "table":
      return <TableView />;
    case "tree":
      return <TreeView />;
    case "lifetimes":
      return <LifetimesView />;
    case "leaks":
      return <LeaksView />;
    case "compare":
      return <CompareView />;
    case "blocks":
      return <BlocksView />;
    case "source":
      return <SourceView />;
    case "collector":
      return <CollectorView />;
    case "snapshots":
      return <SnapshotsView />;
  }
}

/** The views that the source has numbers for. */
function shownViews(): (typeof VIEWS)[number][] {
  const hasSnapshots = (status.value?.snapshots.length ?? 0) > 0;
  return VIEWS.filter((view) => {
    if (view === "snapshots") return hasSnapshots;
    if (view === "collector") return info.value?.has_collections ?? false;
    if (view === "source") return currentSource().hasServer;
    return tells().lifetimes || !["lifetimes", "leaks", "blocks"].includes(view);
  });
}

function Loading({ status }: { status: Status | null }): JSX.Element {
  const share = status?.size ? Math.min(1, status.read / status.size) : null;
  return (
    <div class="splash" role="status">
      <Mark />
      <p>{status ? `Loading ${status.trace}` : "Opening"}</p>
      <progress value={share ?? undefined} max={1} />
      <p class="muted">{status?.size ? `${bytes(status.read)} of ${bytes(status.size)}` : " "}</p>
    </div>
  );
}

function Failure({ message }: { message: string }): JSX.Element {
  return (
    <div class="splash" role="alert">
      <Mark />
      <p class="splash-error">{message}</p>
      <button type="button" class="button" onClick={() => location.reload()}>
        Try again
      </button>
    </div>
  );
}
