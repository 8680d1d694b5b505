//! Equal time intervals of the run.

use crate::store::{Moment, Profile};

/// Parts of the run, and which of them each event is in.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// The moment at the end of each part; the last one is the end of the run.
    ends: Vec<u64>,
    /// The part of the first of each 4096 events, where a search begins.
    first: Vec<u32>,
}

impl Timeline {
    const SHIFT: u32 = 12;

    /// Divides the run into equal intervals, at least one.
    pub(crate) fn new(profile: &Profile, parts: usize) -> Self {
        let parts = parts.max(1);
        let end = profile.micros(profile.end());
        let ends: Vec<u64> = (1..=parts)
            .map(|part| profile.after(time(end, part, parts)).0)
            .collect();
        Self::of_moments(ends, profile)
    }

    /// Parts that end at some moments, in order. Events after the last one are part of the last.
    pub(crate) fn of_moments(ends: Vec<u64>, profile: &Profile) -> Self {
        let Moment(events) = profile.end();
        let first = (0..=events >> Self::SHIFT)
            .map(|i| {
                let part = ends.partition_point(|&end| end <= i << Self::SHIFT);
                u32::try_from(part).unwrap_or(u32::MAX)
            })
            .collect();
        Self { ends, first }
    }

    /// The part that an event is in.
    #[inline]
    pub(crate) fn slot(&self, event: u64) -> usize {
        let place = usize::try_from(event >> Self::SHIFT).unwrap_or(usize::MAX);
        let mut part = self.first[place] as usize;
        while part + 1 < self.ends.len() && self.ends[part] <= event {
            part += 1;
        }
        part.min(self.ends.len() - 1)
    }

    /// The moment at the end of a part.
    pub(crate) fn end(&self, part: usize) -> Moment {
        Moment(self.ends[part])
    }
}

/// The end of a part, in microseconds: the whole, divided as memtrace's viewer divides it, in
/// nanoseconds that are rounded.
pub(crate) fn time(whole: u64, part: usize, parts: usize) -> u64 {
    if part == parts {
        return whole;
    }
    let nanos = (whole as f64 * 1000.0 * (part as f64 / parts as f64)).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a u64; a cast saturates"
    )]
    let nanos = nanos as u128;
    u64::try_from(nanos / 1000).unwrap_or(u64::MAX)
}
