//! Facts about the collector that other reports mention.

use heapline_model::Space;
use serde::{Deserialize, Serialize};

use super::audit::{self, Counted, GcAudit};
use super::lane::{LaneWork, Total};
use super::ledger::Completeness;
use super::series::Buckets;
use super::{CollectorTime, Span, seconds};
use crate::estimate::Estimate;
use crate::scope::Scope;
use crate::store::Profile;

/// Memory that was allocated and promoted in the whole run, as the runtime counted it. It is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CountedMemory {
    /// Bytes allocated in all: those on OCaml's heaps, headers included, and those outside of them. It has the error of the latter only.
    pub allocated: Estimate,
    /// Bytes allocated on the minor heap.
    pub minor: f64,
    /// Bytes allocated on the major heap without having been on the minor heap.
    pub direct: f64,
    /// Bytes moved from the minor to the major heap.
    pub promoted: f64,
    /// Bytes allocated outside of OCaml's heaps, which the runtime does not count, estimated from samples.
    pub external: Estimate,
    /// The same amounts as the samples tell them; null if the samples are not of the whole run.
    pub audit: Option<GcAudit>,
}

/// The collector in short, as far as it is the same whatever blocks are selected.
#[derive(Clone, Copy, Debug)]
pub(in crate::reports) struct GcFacts {
    pub(in crate::reports) collector: CollectorTime,
    /// When the longest pause began, and how long it took, in seconds.
    pub(in crate::reports) longest: Option<(f64, f64)>,
    counted: Option<Counted>,
}

/// The key by which the facts are kept.
#[derive(Clone, PartialEq)]
struct Key;

impl GcFacts {
    /// Those of a profile; `None` if it does not tell of the collector.
    pub(in crate::reports) fn of(profile: &Profile) -> Option<Self> {
        let is_told = !profile.collections().is_empty();
        is_told.then(|| *profile.memo().get(&Key, || Self::new(profile)))
    }

    fn new(profile: &Profile) -> Self {
        let collections = profile.collections();
        let span = Span::new(profile, None);
        let mut total = Total {
            buckets: Buckets::new(span, 1),
            longest: Vec::new(),
            rows: 1,
        };
        let (mut busy, mut present) = (0.0, 0.0);
        let mut lanes = Vec::new();
        for lane in collections.lanes() {
            let mut lane = LaneWork::new(collections, lane, span, &mut total);
            busy += lane.busy as f64;
            present += lane.present as f64;
            // They take as much memory as there are collections.
            lane.lengths = Default::default();
            lane.pauses = Vec::new();
            lanes.push(lane);
        }
        let completeness = Completeness::of(lanes.iter().map(|lane| &lane.ledger));
        let longest = total.longest.first();
        Self {
            collector: CollectorTime::new(busy, present),
            longest: longest.map(|pause| (seconds(pause.start), seconds(pause.length()))),
            counted: Counted::new(&lanes, &completeness),
        }
    }

    /// What the runtime counted, if it counted all of the run and that is what a report is about.
    pub(in crate::reports) fn counted(&self, scope: &Scope<'_>) -> Option<CountedMemory> {
        let profile = scope.profile();
        let counted = self.counted.filter(|_| scope.selection().is_all(profile))?;
        let bytes = |words: u64| words as f64 * profile.sampling().word_bytes();
        let words = counted.words;
        let external = audit::allocated_in(scope, Space::External);
        let mut allocated = external.bytes;
        allocated.value += bytes(words.minor) + bytes(words.direct());
        Some(CountedMemory {
            allocated: allocated.estimate(),
            minor: bytes(words.minor),
            direct: bytes(words.direct()),
            promoted: bytes(words.promoted),
            external: profile.sampling().bytes(&external),
            audit: audit::audit(scope, &counted),
        })
    }
}
