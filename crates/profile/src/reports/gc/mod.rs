//! The work of the garbage collector: pauses, exact counts of words, and what was promoted in the longest pauses.

mod audit;
mod causes;
mod facts;
mod heap;
mod lane;
mod ledger;
mod lengths;
mod series;
mod sites;
mod stops;
mod words;
mod worst;

use clap::Args;
use heapline_model::CollectionKind;
use serde::{Deserialize, Serialize};

pub use audit::{AuditedQuantity, GcAudit};
pub use causes::{PauseCause, PauseCauseKind};
pub use facts::CountedMemory;
pub(super) use facts::GcFacts;
pub use heap::GcHeap;
pub use lengths::Lengths;
pub use series::{GcSeries, KindSeries};
pub use sites::{PromotedSite, PromotedSites};
pub use stops::{DomainStops, Stop, Stops};
pub use words::{CollectorWords, GcCounts};
pub use worst::{PausePiece, WorstPause};

use super::Subject;
use crate::options::{self, Look};
use crate::query::{TimeError, Window};
use crate::scope::Scope;
use crate::store::Profile;
use audit::Counted;
use lane::{LaneWork, Total};
use ledger::Completeness;
use series::Buckets;

/// The largest number of pauses that are shown: what was promoted in each is looked for among all blocks.
const MAX_PAUSES: u64 = 1000;

/// Pieces of work of a domain with less time between them, in nanoseconds, are one pause: a minor collection and the slice that
/// follows it, for example.
const GAP: u64 = 10_000;

/// Options of [`gc`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct GcOptions {
    /// Show a part of the run: 0s..10s, ..peak, 50%.. [default: the whole run]
    #[arg(long, value_name = "FROM..TO", help_heading = "Select")]
    pub window: Option<Window>,

    /// Limit the number of longest pauses
    #[arg(long, short = 'n', alias = "top", default_value_t = 5, value_name = "N",
          value_parser = options::number(0, MAX_PAUSES))]
    pub rows: usize,

    /// Set the number of time intervals
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = options::number(1, 100_000),
          hide_short_help = true)]
    pub points: usize,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for GcOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// The work of the garbage collector.
///
/// Times and counts are exact: every collection is recorded, and words are counted by the runtime. Only what single sites promoted
/// is estimated from samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Gc {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// Seconds from the start of the run to that of the window.
    pub from: f64,
    /// Seconds from the start of the run to the end of the window.
    pub to: f64,
    /// The time in the collector, of all domains together.
    pub collector: CollectorTime,
    /// The kinds of work that happened.
    pub kinds: Vec<KindTimes>,
    /// The pauses of all domains: pieces of work of a domain that follow each other without a gap are one.
    pub pauses: Lengths,
    /// The domains, in order.
    pub domains: Vec<GcDomain>,
    /// Minor collections in which several domains took part; null if the program has one domain only.
    pub stops: Option<Stops>,
    /// Words allocated and promoted, as the runtime counts them; null if they are not known.
    pub words: Option<CollectorWords>,
    /// Collections as the runtime counts them; null if they are not known.
    pub counts: Option<GcCounts>,
    /// The size of the major heap; null if it is not known.
    pub heap: Option<GcHeap>,
    /// The same amounts of memory as the samples tell them, for comparison; null if the report is about a part of the
    /// run, or the counters or the samples are not of the whole run.
    pub audit: Option<GcAudit>,
    /// The longest pauses, the longest first.
    pub worst: Vec<WorstPause>,
    /// Pauses that are not shown.
    pub hidden_rows: u64,
    /// The collector over time.
    pub series: GcSeries,
    /// Minor collections that the runtime counted and the recording does not have: all other figures are without those. Null if
    /// that is not known.
    pub missing_collections: Option<u64>,
    /// Collections that were left out because their times cannot be.
    pub refused_collections: u64,
}

/// Time in the garbage collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CollectorTime {
    /// Seconds in the collector. Collections within finalisers count once.
    pub seconds: f64,
    /// Seconds that the domain existed; of several, the sum.
    pub of_seconds: f64,
    /// The first in percent of the second; 0 if no time has passed.
    pub percent: f64,
}

impl CollectorTime {
    /// That of so many nanoseconds.
    fn new(busy: f64, present: f64) -> Self {
        Self {
            seconds: busy / 1e9,
            of_seconds: present / 1e9,
            percent: if present > 0.0 {
                100.0 * (busy / present).min(1.0)
            } else {
                0.0
            },
        }
    }
}

/// The times of a kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct KindTimes {
    /// The kind.
    pub kind: CollectionKind,
    /// How long it took each time. That of finalisers is without the collections inside of them.
    #[serde(flatten)]
    pub lengths: Lengths,
}

/// The collector in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcDomain {
    /// The domain.
    pub domain: u16,
    /// Its time in the collector.
    pub collector: CollectorTime,
    /// Its pauses.
    pub pauses: Lengths,
    /// Its minor collections.
    pub minor_collections: u64,
    /// Words that it allocated and promoted; null if they are not known.
    pub words: Option<CollectorWords>,
}

/// The kinds of work, in the order of the report. Readings are none.
const KINDS: [CollectionKind; 4] = [
    CollectionKind::Minor,
    CollectionKind::Slice,
    CollectionKind::Forced,
    CollectionKind::Finalisers,
];

/// The place of a kind among [`KINDS`]; `None` for readings.
fn kind_place(kind: CollectionKind) -> Option<usize> {
    KINDS.iter().position(|&known| known == kind)
}

/// The part of the run that a report is about, in nanoseconds. Its end is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u64,
    to: u64,
    /// The end of the run.
    end: u64,
}

impl Span {
    fn new(profile: &Profile, window: Option<(f64, f64)>) -> Self {
        let end = run_end(profile);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast saturates"
        )]
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let (from, to) = window.map_or((0, end), |(from, to)| {
            // The end of the run is that of the last event or collection.
            let is_to_the_end = to >= profile.duration();
            (nanos(from), if is_to_the_end { end } else { nanos(to) })
        });
        Self { from, to, end }
    }

    fn contains(&self, time: u64) -> bool {
        // What begins when the run ends is part of it.
        self.from <= time && (time < self.to || self.to == self.end)
    }

    /// The nanoseconds of an interval that are in it.
    fn clip(&self, from: u64, to: u64) -> (u64, u64) {
        let from = from.max(self.from);
        (from, to.min(self.to).max(from))
    }
}

/// The end of the last event or collection, in nanoseconds.
fn run_end(profile: &Profile) -> u64 {
    let events = profile.micros(profile.end()).saturating_mul(1000);
    events.max(profile.collections().end())
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// The work of the collector. Fails if the window is not in the run.
///
/// The blocks in scope are those whose promotion is shown; all else is about the whole program.
pub fn gc(scope: &Scope<'_>, options: &GcOptions) -> Result<Gc, TimeError> {
    let profile = scope.profile();
    let window = match &options.window {
        None => None,
        Some(window) => {
            window.moments(profile, scope.estimator())?;
            Some(window.seconds(profile, scope.estimator()))
        }
    };
    let span = Span::new(profile, window);
    let collections = profile.collections();
    let mut total = Total {
        buckets: Buckets::new(span, options.points),
        longest: Vec::new(),
        rows: options.rows,
    };
    let lanes: Vec<LaneWork> = collections
        .lanes()
        .map(|lane| LaneWork::new(collections, lane, span, &mut total))
        .collect();

    let Total {
        buckets, longest, ..
    } = total;
    let has_several = lanes.len() > 1;
    let stops = has_several.then(|| stops::find(collections, span, &longest));
    let (stops, stop_of) = stops.map_or((None, Vec::new()), |(stops, of)| (Some(stops), of));
    let (heap, heap_series) = heap::heap(collections, &lanes, span, options.points);
    let worst = worst::worst(scope, &longest, stop_of, has_several, &options.look);

    let pauses: Vec<u64> = lanes
        .iter()
        .flat_map(|lane| &lane.pauses)
        .copied()
        .collect();
    let kinds = KINDS.iter().enumerate().filter_map(|(place, &kind)| {
        let lengths = lanes.iter().flat_map(|lane| &lane.lengths[place]);
        let lengths = Lengths::new(lengths.copied().collect());
        (lengths.count > 0).then_some(KindTimes { kind, lengths })
    });
    let sum = |of: fn(&LaneWork) -> u64| lanes.iter().map(|lane| of(lane) as f64).sum::<f64>();
    let completeness = Completeness::of(lanes.iter().map(|lane| &lane.ledger));
    Ok(Gc {
        subject: Subject::with_look(scope, &options.look.of_list(crate::GroupBy::Site)),
        from: seconds(span.from),
        to: seconds(span.to),
        collector: CollectorTime::new(sum(|lane| lane.busy), sum(|lane| lane.present)),
        kinds: kinds.collect(),
        hidden_rows: (pauses.len() as u64).saturating_sub(worst.len() as u64),
        pauses: Lengths::new(pauses),
        words: CollectorWords::of_all(&lanes, &completeness),
        counts: GcCounts::new(&lanes),
        audit: Counted::new(&lanes, &completeness)
            .filter(|_| window.is_none())
            .and_then(|counted| audit::audit(scope, &counted)),
        heap,
        series: buckets.series(heap_series.as_deref(), &lanes),
        stops,
        worst,
        missing_collections: ledger::missing(lanes.iter().map(|lane| &lane.ledger), has_several),
        refused_collections: collections.refused(),
        domains: lanes.into_iter().map(LaneWork::domain).collect(),
    })
}

#[cfg(test)]
mod tests;
