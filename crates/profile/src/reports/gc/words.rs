//! Words and collections as the runtime counts them.

use serde::{Deserialize, Serialize};

use super::lane::LaneWork;
use super::ledger::{Completeness, CountedWords, Ledger};
use super::seconds;

/// Words that were allocated and promoted, headers included, as the runtime counts them. They are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CollectorWords {
    /// Words allocated on OCaml's heaps: `minor` and `direct`. Memory outside of them is not counted.
    pub allocated: u64,
    /// Words allocated on the minor heap.
    pub minor: u64,
    /// Words moved from the minor to the major heap.
    pub promoted: u64,
    /// Words allocated on the major heap without having been on the minor heap.
    pub direct: u64,
    /// `promoted` in percent of `minor`; null if there are none.
    pub promoted_percent: Option<f64>,
    /// When they were first read, in seconds since the start.
    pub from: f64,
    /// When they were last read. What was allocated later is not counted.
    pub to: f64,
    /// True if they were read when the recording began and ended, and when each domain did: they are those of all that was recorded.
    pub is_complete: bool,
}

impl CollectorWords {
    fn new(words: &CountedWords, (from, to): (u64, u64), is_complete: bool) -> Self {
        let promoted_percent = 100.0 * words.promoted as f64 / words.minor as f64;
        Self {
            allocated: words.minor.saturating_add(words.direct()),
            minor: words.minor,
            promoted: words.promoted,
            direct: words.direct(),
            promoted_percent: (words.minor > 0).then_some(promoted_percent),
            from: seconds(from),
            to: seconds(to),
            is_complete,
        }
    }

    /// Those of a lane; `None` if they are not known.
    pub(super) fn of_lane(ledger: &Ledger) -> Option<Self> {
        let completeness = Completeness::of([ledger].into_iter());
        let times = completeness.times?;
        Some(Self::new(&ledger.words()?, times, completeness.is_whole))
    }

    /// Those of all lanes together; `None` if those of one are not known.
    pub(super) fn of_all(lanes: &[LaneWork], completeness: &Completeness) -> Option<Self> {
        let words = sum(lanes)?;
        Some(Self::new(
            &words,
            completeness.times?,
            completeness.is_whole,
        ))
    }

    /// Words per second; null if no time has passed.
    #[must_use]
    pub fn per_second(&self, words: u64) -> Option<f64> {
        let time = self.to - self.from;
        (time > 0.0).then(|| words as f64 / time)
    }
}

/// The words of all lanes together; `None` if those of one are not known.
pub(super) fn sum(lanes: &[LaneWork]) -> Option<CountedWords> {
    let mut sum = CountedWords::default();
    for lane in lanes {
        sum = sum.plus(lane.ledger.words()?);
    }
    Some(sum)
}

/// Collections as the runtime counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcCounts {
    /// Minor collections. One of several domains counts once.
    pub minor_collections: u64,
    /// Major collections that were completed.
    pub major_collections: u64,
    /// Compactions of the heap.
    pub compactions: u64,
    /// Major collections that the program asked for.
    pub forced_major_collections: u64,
}

impl GcCounts {
    /// `None` if they are not known.
    pub(super) fn new(lanes: &[LaneWork]) -> Option<Self> {
        let mut all = Vec::new();
        for lane in lanes {
            all.push(lane.ledger.cycles()?);
        }
        let grown = |field: fn(&heapline_model::CollectorCounters) -> u64| {
            let first = all.iter().map(|cycles| field(&cycles.first)).min();
            let last = all.iter().map(|cycles| field(&cycles.last)).max();
            first
                .zip(last)
                .map(|(first, last)| last.saturating_sub(first))
        };
        Some(Self {
            minor_collections: grown(|counters| counters.minor_collections)?,
            major_collections: grown(|counters| counters.major_collections)?,
            compactions: grown(|counters| counters.compactions)?,
            forced_major_collections: grown(|counters| counters.forced_major_collections)?,
        })
    }
}
