//! The part of a run that a recording has summed up.

use serde::{Deserialize, Serialize};

use crate::store::Profile;

/// The part of a run that a recording has summed up (`heapline record --keep`). What was alive and what was
/// allocated is exact at the boundaries of its intervals; within an interval only means are known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Coarse {
    /// The end of that part, in seconds since the start.
    pub until: f64,
    /// The number of its intervals.
    pub intervals: usize,
    /// Seconds of the shortest interval.
    pub shortest: f64,
    /// Seconds of the longest one.
    pub longest: f64,
}

/// The times in which a recording took no new blocks, because it could not be kept within its size
/// otherwise (`heapline record --keep`). What was allocated then is missing from all sums.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Gaps {
    /// How often that happened.
    pub count: usize,
    /// Seconds, of all together.
    pub seconds: f64,
    /// The start of the first one, in seconds since the start.
    pub first: f64,
    /// The end of the last one, in seconds since the start.
    pub last: f64,
}

impl Gaps {
    /// `None` if there are none.
    pub(crate) fn new(profile: &Profile) -> Option<Self> {
        let gaps = profile.gaps();
        let lengths = gaps.iter().map(|(start, end)| end.saturating_sub(*start));
        Some(Self {
            count: gaps.len(),
            seconds: lengths.fold(0, u64::saturating_add) as f64 / 1e6,
            first: gaps.first()?.0 as f64 / 1e6,
            last: gaps.last()?.1 as f64 / 1e6,
        })
    }
}

impl Coarse {
    /// `None` if every event is there.
    pub(crate) fn new(profile: &Profile) -> Option<Self> {
        let ends = profile.boundaries();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let lengths = ends.iter().zip(starts).map(|(end, start)| end - start);
        Some(Self {
            until: *ends.last()? as f64 / 1e6,
            intervals: ends.len(),
            shortest: lengths.clone().min()? as f64 / 1e6,
            longest: lengths.max()? as f64 / 1e6,
        })
    }
}
