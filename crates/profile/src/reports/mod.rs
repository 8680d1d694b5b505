//! The reports: plain data, rendered elsewhere.
//!
//! Each starts from a [`Scope`], which selects the blocks, and can be
//! serialised; `docs/json.md` describes the fields.

mod alloc_stats;
mod blocks;
mod check;
mod coarse;
mod combined;
mod diff;
mod findings;
mod gc;
mod growth;
mod heatmap;
mod hotspots;
mod info;
mod leaks;
mod names;
mod peak;
mod series;
mod source;
mod stats;
mod summary;
mod temporary;
mod tree;

pub use crate::histogram::SurvivalPoint;
pub use alloc_stats::{AllocLifetimes, AllocSizes, AllocStats, EqualBins, Spread, alloc_stats};
pub use blocks::{BlockRow, BlockSort, Blocks, BlocksOptions, blocks};
pub use check::{Budget, Check, Evidence, Outcome, Verdict, check_against};
pub use coarse::{Coarse, Gaps};
pub use combined::{CombinedSummary, Combiner, TraceSummary};
pub use diff::{
    Change, ChangeColumns, Compared, Comparison, Diff, DiffOptions, DiffRow, DiffSides, DiffTree,
    DiffTreeOptions, FileChange, NamedDiff, NamedDiffTree, Normalise, WindowError, compare_files,
    diff, diff_sides, diff_tree,
};
pub use findings::{Phrase, TraceFinding, TraceFindingKind};
pub use gc::{
    AuditedQuantity, CollectorTime, CollectorWords, CountedMemory, DomainStops, Gc, GcAudit,
    GcCounts, GcDomain, GcHeap, GcOptions, GcSeries, KindSeries, KindTimes, Lengths, PauseCause,
    PauseCauseKind, PausePiece, PromotedSite, PromotedSites, Stop, Stops, WorstPause, gc,
};
pub use heatmap::{Heatmap, HeatmapOptions, heatmap};
pub use hotspots::{Hotspot, HotspotOptions, Hotspots, Quantiles, SortBy, Totals, hotspots};
pub use info::{
    Activity, EventCounts, Overview, Samples, SizeClass, TraceInfo, has_cut_stacks, info,
};
pub use leaks::{Holder, Leak, LeakOptions, Leaks, leaks};
pub use names::{Name, names};
pub use peak::{PeakOptions, PeakPoint, PeakReport, PeakRow, PeakWithout, Removal, peak};
pub use series::{GroupLine, Line, Measure, Series, SeriesOptions, series};
pub use source::{
    LineMemory, Source, SourceError, SourceFile, SourceLine, SourceLookup, SourceOptions,
    WantedSource, source,
};
pub use stats::{Bin, LifetimeStats, Segment, SizeStats, Stats, StatsOptions, stats};
pub use summary::{Ranked, Ranking, RankingKind, Summary, SummaryOptions, summary};
pub use temporary::{
    Temporary, TemporaryFigures, TemporaryGroup, TemporaryOptions, Within, temporary,
};
pub use tree::{
    ByHeap, Details, Direction, Flame, FlameOptions, NodeColumns, NodeKind, Tree, TreeNode,
    TreeOptions, flame, tree,
};

use heapline_model::Capabilities;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::estimate::Estimate;
use crate::options::Look;
use crate::own_code::{OwnCode, OwnFrames};
use crate::sampling::Estimator;
use crate::scope::Scope;

/// A block is short-lived if it dies within this share of the run.
const SHORT: f64 = 0.01;

/// The amount of a set of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Figures {
    /// Bytes, headers included.
    pub bytes: Estimate,
    /// Blocks.
    pub blocks: Estimate,
    /// Samples.
    pub samples: u64,
}

impl Figures {
    pub(crate) fn new(amount: &Amount) -> Self {
        Self {
            bytes: amount.bytes.estimate(),
            blocks: amount.estimated_blocks(),
            samples: amount.samples,
        }
    }

    /// The figures of a whole, where nothing seen does not mean that nothing was there.
    pub(crate) fn of_total(scope: &Scope<'_>, amount: &Amount) -> Self {
        Self {
            bytes: scope.profile().sampling().bytes(amount),
            blocks: scope.profile().sampling().blocks(amount),
            samples: amount.samples,
        }
    }
}

/// The trace and estimator of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Subject {
    /// The program.
    pub program: String,
    /// Seconds that were recorded.
    pub duration: f64,
    /// The estimator for amounts.
    pub estimator: Estimator,
    /// True if every block was recorded, so that nothing is estimated.
    pub is_exact: bool,
    /// The information that the source provides; the rest is omitted from reports, or null.
    pub tells: Capabilities,
    /// Bytes of a word; 1 where sizes are given in bytes.
    pub word_bytes: f64,
    /// Bytes that one sample stands for, on average.
    pub bytes_per_sample: f64,
    /// Sampled blocks that the report is about.
    pub sampled_blocks: usize,
    /// Allocations that are known to be lost because the trace is damaged: what is reported is too
    /// little by those, and by what may be lost besides.
    pub lost_allocations: u64,
    /// The number of flaws found in the trace.
    pub flaws: u64,
    /// The process that was attached to when the recording began, so that blocks allocated before are not counted; absent if the
    /// recording began with the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub attached_to: Option<u64>,
    /// The part of the run that the recording has summed up; absent if every event is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub coarse: Option<Coarse>,
    /// The times in which new blocks were not recorded; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub gaps: Option<Gaps>,
    /// The code that memory is attributed to; absent if libraries count too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub own_code: Option<OwnCode>,
}

impl Subject {
    pub(crate) fn new(scope: &Scope<'_>) -> Self {
        let profile = scope.profile();
        Self {
            program: profile.header().program.clone(),
            duration: profile.duration(),
            estimator: scope.estimator(),
            is_exact: profile.sampling().is_exact(),
            tells: profile.tells(),
            word_bytes: profile.header().word_bytes as f64,
            bytes_per_sample: profile.sampling().bytes_per_sample(),
            sampled_blocks: if profile.boundaries().is_empty() {
                scope.selection().len()
            } else {
                // Some have others merged into them.
                usize::try_from(scope.total().sampled).unwrap_or(usize::MAX)
            },
            lost_allocations: profile.damage().lost_allocations,
            flaws: profile.damage().count,
            attached_to: profile.header().attached_to(),
            coarse: Coarse::new(profile),
            gaps: Gaps::new(profile),
            own_code: None,
        }
    }

    /// The subject of a report on functions.
    pub(crate) fn with_look(scope: &Scope<'_>, look: &Look) -> Self {
        let own_code = look.is_of_own_code();
        Self {
            own_code: own_code.then(|| OwnFrames::shared(scope.profile(), &look.mine).info.clone()),
            ..Self::new(scope)
        }
    }
}

/// The places of the largest values, in descending order; those of the same value as they come.
pub(crate) fn largest(values: &[f64], n: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).filter(|&i| values[i] != 0.0).collect();
    places.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    places.truncate(n);
    places
}
