//! The reports: their requests and answers. A new report is added here, and computed in
//! [`compute`](crate::compute).

use clap::Subcommand;
use heapline_heap::reports::{
    DominatorTree, DominatorsOptions, Findings, FindingsOptions, HeapDiff, Retained,
    RetainedOptions, Why, WhyOptions,
};
use heapline_profile::Query;
use heapline_profile::reports::{
    Blocks, BlocksOptions, DiffOptions, DiffTreeOptions, Flame, FlameOptions, Gc, GcOptions,
    Heatmap, HeatmapOptions, HotspotOptions, Hotspots, LeakOptions, Leaks, NamedDiff,
    NamedDiffTree, PeakOptions, PeakReport, Series, SeriesOptions, Source, SourceOptions, Stats,
    StatsOptions, Summary, SummaryOptions, Temporary, TemporaryOptions, Tree, TreeOptions,
};
use serde::Serialize;

use crate::answer::Info;
use crate::cancel::Cancel;
use crate::complete::{CompleteOptions, Completion};
use crate::error::{EngineError, ErrorKind};
use crate::filter::Filter;
use crate::request::Params;
use crate::session::Session;

/// A report and its options. The help texts are those of the commands.
///
/// ```
/// use heapline_engine::Request;
///
/// let request = Request::from_pairs("hotspots", [("rows", "20"), ("where", "size > 1k")])?;
/// assert_eq!(request.key(), "hotspots?where=size+%3E+1k");
/// let command = request.command_line("trace.ctf", None);
/// assert_eq!(command.unwrap(), "heapline hotspots trace.ctf --where 'size > 1k'");
/// assert!(Request::from_pairs("hotspots", [("row", "20")]).is_err());
/// # Ok::<(), heapline_engine::EngineError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Subcommand)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// The properties of the trace.
    Info,
    /// Totals, the peak, and ranked lists.
    Summary(Params<SummaryOptions>),
    /// Show where memory is allocated or alive, as a table
    ///
    /// A row is a function, unless --by says otherwise. `allocated` is what it allocates itself,
    /// `with callees` what is allocated while it runs; `at peak` and `at end` are what is alive then
    /// of what it allocated itself.
    #[command(after_help = "\
Examples:
  heapline hotspots trace.ctf
  heapline hotspots trace.ctf --by module --sort end
  heapline hotspots trace.ctf --where 'live at peak and size >= 64KiB' --by site")]
    Hotspots(Params<HotspotOptions>),
    /// A call tree.
    Tree(Params<TreeOptions>),
    /// A call tree in columns, for flame graphs.
    Flame(Params<FlameOptions>),
    /// Memory over time.
    Series(Params<SeriesOptions>),
    /// Sizes and lifetimes.
    Stats(Params<StatsOptions>),
    /// Show when blocks were allocated by how long they lived
    #[command(after_help = "\
Examples:
  heapline heatmap trace.ctf
  heapline heatmap trace.ctf --where 'inside \"Cache.*\"' --times 20")]
    Heatmap(Params<HeatmapOptions>),
    /// Show what grows and never dies
    #[command(after_help = "\
Examples:
  heapline leaks trace.ctf
  heapline leaks trace.ctf --by function --tail 20%
  heapline leaks trace.ctf --where 'heap = major and not inside \"Cache.*\"'")]
    Leaks(Params<LeakOptions>),
    /// Show the peak of live memory, and what it would be without some of the blocks
    ///
    /// The table shows, for each function, its memory that is live at the peak, and the peak without
    /// that function. --without does so for any blocks. All this assumes that the rest of the program
    /// stays as it is.
    #[command(after_help = "\
Examples:
  heapline peak trace.ctf
  heapline peak trace.ctf --without 'inside \"Cache.*\"'
  heapline peak trace.ctf --where 'heap = major' --window 10s..20s --by module")]
    Peak(Params<PeakOptions>),
    /// Show memory that is freed soon after it was allocated
    ///
    /// Such memory costs time rather than space: reuse a buffer, or do without the copy.
    #[command(after_help = "\
Examples:
  heapline temporary trace.ctf
  heapline temporary trace.ctf --within 1ms --by function
  heapline temporary trace.ctf --where 'size >= 4KiB'")]
    Temporary(Params<TemporaryOptions>),
    /// Show the pauses of OCaml's garbage collector, and their causes
    ///
    /// Every collection is recorded with its time and the runtime's counters, so times, counts and words are exact. What
    /// single sites promoted is estimated from samples; --where selects the blocks for that.
    #[command(after_help = "\
Examples:
  heapline gc trace.ctf
  heapline gc trace.ctf --rows 20
  heapline gc trace.ctf --window 10s..20s --json")]
    Gc(Params<GcOptions>),
    /// Show single blocks: size, lifetime, heap and stack
    ///
    /// Each row is a sampled block. It represents as many bytes as were allocated for each such sample.
    #[command(after_help = "\
Examples:
  heapline blocks trace.ctf
  heapline blocks trace.ctf --where 'live at end and heap = major' --sort age
  heapline blocks trace.ctf --where 'site = \"Cache.add\"' --sort birth --rows 100 --json")]
    Blocks(Params<BlocksOptions>),
    /// The lines of a file with their memory.
    Source(Params<SourceOptions>),
    /// A comparison with another trace or snapshot, or of two windows.
    Diff(Params<DiffOptions>),
    /// A comparison with another trace, or of two windows, as a call tree.
    DiffTree(Params<DiffTreeOptions>),
    /// Show what keeps memory alive, by what would be freed with it
    ///
    /// A row retains what can only be reached through it: it would be freed with the row. `reached` is the
    /// memory whose shortest path from a root goes through the row, also if others reach it too. `own` is
    /// the value itself.
    #[command(after_help = "\
Examples:
  heapline retained server.heap
  heapline retained server.heap --by module -n 5
  heapline retained server.heap --at 'Cache.table > Hashtbl.t'
  heapline retained server.heap --by closure --json")]
    Retained(RetainedOptions),
    /// Show retained memory as a tree: roots, modules, definitions, values
    ///
    /// The dominator tree, aggregated by name: what is below a node can only be reached through it.
    #[command(after_help = "\
Examples:
  heapline dominators server.heap
  heapline dominators server.heap --min 5% --depth 4")]
    Dominators(DominatorsOptions),
    /// The paths that hold memory.
    Why(WhyOptions),
    /// Show what looks like waste in a heap snapshot
    ///
    /// Duplicate strings, hash tables and buffers that are mostly empty, parked continuations, and what
    /// finalisers and ephemerons keep alive.
    #[command(after_help = "\
Examples:
  heapline findings server.heap
  heapline findings server.heap -n 20 --json")]
    Findings(FindingsOptions),
    /// Continuations of a query that is being typed.
    Complete(CompleteOptions),
}

/// A report of any kind. It is serialised as the report itself.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "one report at a time, and never in a list"
)]
pub enum Report {
    /// The properties of the trace.
    Info(Info),
    /// The totals and the largest groups.
    Summary(Summary),
    /// A table of groups.
    Hotspots(Hotspots),
    /// A call tree.
    Tree(Tree),
    /// A call tree in columns.
    Flame(Flame),
    /// Memory over time.
    Series(Series),
    /// Sizes and lifetimes.
    Stats(Stats),
    /// Lifetimes by the time of allocation.
    Heatmap(Heatmap),
    /// Groups that grow.
    Leaks(Leaks),
    /// The peak.
    Peak(PeakReport),
    /// Memory that is freed soon after it was allocated.
    Temporary(Temporary),
    /// The garbage collector.
    Gc(Gc),
    /// Single blocks.
    Blocks(Blocks),
    /// Lines of a file.
    Source(Source),
    /// A comparison.
    Diff(NamedDiff),
    /// A comparison as a call tree.
    DiffTree(NamedDiffTree),
    /// Retained sizes.
    Retained(Retained),
    /// The dominator tree.
    Dominators(DominatorTree),
    /// Retaining paths.
    Why(Why),
    /// Likely waste.
    Findings(Findings),
    /// A comparison of heap snapshots.
    HeapDiff(HeapDiff),
    /// Continuations of a query that is being typed.
    Completion(Completion),
}

impl Request {
    /// The blocks that the report is about; none if it is always about all.
    #[must_use]
    pub fn filter(&self) -> Option<&Filter> {
        match self {
            Self::Info
            | Self::Retained(_)
            | Self::Dominators(_)
            | Self::Why(_)
            | Self::Findings(_)
            | Self::Complete(_) => None,
            Self::Summary(params) => Some(&params.filter),
            Self::Hotspots(params) => Some(&params.filter),
            Self::Tree(params) => Some(&params.filter),
            Self::Flame(params) => Some(&params.filter),
            Self::Series(params) => Some(&params.filter),
            Self::Stats(params) => Some(&params.filter),
            Self::Heatmap(params) => Some(&params.filter),
            Self::Leaks(params) => Some(&params.filter),
            Self::Peak(params) => Some(&params.filter),
            Self::Temporary(params) => Some(&params.filter),
            Self::Gc(params) => Some(&params.filter),
            Self::Blocks(params) => Some(&params.filter),
            Self::Source(params) => Some(&params.filter),
            Self::Diff(params) => Some(&params.filter),
            Self::DiffTree(params) => Some(&params.filter),
        }
    }

    /// The queries of the report's own options.
    #[must_use]
    pub fn option_queries(&self) -> &[Query] {
        match self {
            Self::Peak(params) => &params.options.without,
            _ => &[],
        }
    }

    /// Returns true if the report of this name is about heap snapshots only.
    #[must_use]
    pub fn is_of_snapshots(report: &str) -> bool {
        matches!(report, "retained" | "dominators" | "why" | "findings")
    }

    /// Computes the report.
    pub(crate) fn report(&self, session: &Session, cancel: &Cancel) -> Result<Report, EngineError> {
        Ok(match self {
            Self::Info => Report::Info(session.info()),
            Self::Summary(params) => Report::Summary(params.ask(session, cancel)?),
            Self::Hotspots(params) => Report::Hotspots(params.ask(session, cancel)?),
            Self::Tree(params) => Report::Tree(params.ask(session, cancel)?),
            Self::Flame(params) => Report::Flame(params.ask(session, cancel)?),
            Self::Series(params) => Report::Series(params.ask(session, cancel)?),
            Self::Stats(params) => Report::Stats(params.ask(session, cancel)?),
            Self::Heatmap(params) => Report::Heatmap(params.ask(session, cancel)?),
            Self::Leaks(params) => Report::Leaks(params.ask(session, cancel)?),
            Self::Peak(params) => Report::Peak(params.ask(session, cancel)?),
            Self::Temporary(params) => Report::Temporary(params.ask(session, cancel)?),
            Self::Gc(params) => Report::Gc(params.ask(session, cancel)?),
            Self::Blocks(params) => Report::Blocks(params.ask(session, cancel)?),
            Self::Source(params) => Report::Source(params.ask(session, cancel)?),
            Self::Diff(params) => Report::Diff(params.ask(session, cancel)?),
            Self::DiffTree(params) => Report::DiffTree(params.ask(session, cancel)?),
            Self::Complete(options) => Report::Completion(options.complete(session)),
            Self::Retained(_) | Self::Dominators(_) | Self::Why(_) | Self::Findings(_) => {
                let path = session.path();
                return Err(self.unsuitable(&format!("heap snapshots, and {path} is a trace")));
            }
        })
    }

    /// The error of a request about another kind of file.
    pub(crate) fn unsuitable(&self, reason: &str) -> EngineError {
        let message = format!("`{}` is a report on {reason}", self.name());
        EngineError::new(ErrorKind::NotTold, message)
    }
}
