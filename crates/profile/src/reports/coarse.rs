//! The part of a run that a recording has summed up.

use serde::Serialize;

use crate::store::Profile;

/// The part of a run that a recording has summed up (`heapline record --keep`). What was alive and what was
/// allocated is exact at the boundaries of its intervals; within an interval only means are known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
