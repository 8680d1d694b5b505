//! The intervals of time that the older history is summed up in.

/// The most intervals.
const MAX: usize = 256;

/// The number of intervals that a new part of the history is divided into.
const PARTS: u64 = 8;

/// Intervals from the start on, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    /// The end of each, in microseconds since the start.
    boundaries: Vec<u64>,
}

impl Intervals {
    pub(crate) fn boundaries(&self) -> &[u64] {
        &self.boundaries
    }

    pub(crate) fn len(&self) -> usize {
        self.boundaries.len()
    }

    /// The number of the interval that a time is in. A boundary belongs to the next one.
    pub(crate) fn find(&self, time: u64) -> u16 {
        let number = self.boundaries.partition_point(|&end| end <= time);
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    /// Adds intervals up to a time, if that is later than the last one.
    pub(crate) fn extend_to(&mut self, end: u64) {
        let start = self.boundaries.last().copied().unwrap_or(0);
        let Some(length) = end.checked_sub(start).filter(|length| *length > 0) else {
            return;
        };
        let parts = (1..=PARTS).map(|part| {
            let offset = u128::from(length) * u128::from(part) / u128::from(PARTS);
            start + u64::try_from(offset).unwrap_or(length)
        });
        for boundary in parts {
            if self.boundaries.last().is_none_or(|&last| last < boundary) && boundary > 0 {
                self.boundaries.push(boundary);
            }
        }
        while self.boundaries.len() > MAX && self.thin(end) {}
    }

    /// Merges a quarter of the intervals with their neighbours: each time those that stay shortest,
    /// compared with how long ago they were. Returns false if there is only one.
    pub(crate) fn thin(&mut self, now: u64) -> bool {
        let len = self.boundaries.len();
        if len <= 1 {
            return false;
        }
        for _ in 0..(len / 4).max(1) {
            // The last boundary stays: what follows is exact.
            let length_to_age = |at: usize| {
                let start = at
                    .checked_sub(1)
                    .map_or(0, |before| self.boundaries[before]);
                let length = self.boundaries[at + 1] - start;
                length as f64 / (now.saturating_sub(start) as f64).max(1.0)
            };
            let removed = (0..self.boundaries.len() - 1)
                .min_by(|&a, &b| length_to_age(a).total_cmp(&length_to_age(b)));
            let Some(removed) = removed else {
                break;
            };
            self.boundaries.remove(removed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_get_longer_with_age() {
        let mut intervals = Intervals::default();
        for second in (100..=100_000).step_by(100) {
            intervals.extend_to(second * 1_000_000);
        }
        assert!(intervals.len() <= MAX);
        while intervals.len() > 20 {
            assert!(intervals.thin(100_000_000_000));
        }
        let boundaries = intervals.boundaries();
        assert_eq!(boundaries.last(), Some(&100_000_000_000));
        assert!(boundaries.is_sorted_by(|a, b| a < b));
        let lengths: Vec<u64> = boundaries
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        let (old, new) = lengths.split_at(lengths.len() / 2);
        assert!(old.iter().min() > new.iter().max(), "{lengths:?}");
        assert_eq!(intervals.find(0), 0);
        assert_eq!(
            usize::from(intervals.find(100_000_000_000)),
            intervals.len()
        );
        while intervals.len() > 1 {
            assert!(intervals.thin(100_000_000_000));
        }
        assert!(!intervals.thin(100_000_000_000));
    }
}
