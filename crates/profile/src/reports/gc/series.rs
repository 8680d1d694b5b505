//! The collector over time.

use heapline_model::CollectionKind;
use serde::Serialize;

use super::heap::HeapSize;
use super::lane::{LaneWork, Pause};
use super::ledger::CountedWords;
use super::{KINDS, Span, seconds, words};

/// The collector over time, in intervals of the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcSeries {
    /// The end of each interval, in seconds since the start.
    pub times: Vec<f64>,
    /// The time in the collector, in percent of the time of all domains.
    pub collector_percent: Vec<f64>,
    /// The parts of it, by kind of work.
    pub kinds: Vec<KindSeries>,
    /// Seconds of the longest pause that overlaps the interval.
    pub longest_pause: Vec<f64>,
    /// Minor collections per second. One of several domains counts once.
    pub minor_collections: Vec<f64>,
    /// Words allocated on the minor heap per second; null if they are not known, as all that follows.
    pub minor_words: Option<Vec<f64>>,
    /// Words allocated on the major heap per second, without those promoted.
    pub direct_words: Option<Vec<f64>>,
    /// Words promoted per second.
    pub promoted_words: Option<Vec<f64>>,
    /// Words of the major heap at the end of the interval. Null before they were first read.
    pub heap_words: Option<Vec<Option<f64>>>,
    /// The part of them that is free.
    pub free_words: Option<Vec<Option<f64>>>,
}

/// The time in a kind of work, over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct KindSeries {
    /// The kind.
    pub kind: CollectionKind,
    /// Its time in percent of the time of all domains, in each interval. That of finalisers is without the collections inside
    /// of them.
    pub percent: Vec<f64>,
}

/// The intervals of a series.
#[derive(Debug)]
pub(super) struct Buckets {
    span: Span,
    busy: Vec<f64>,
    kinds: [Vec<f64>; KINDS.len()],
    present: Vec<f64>,
    longest: Vec<u64>,
    /// Minor collections of the lane with most of them: all domains take part in each.
    minor: Vec<u64>,
    /// Those of the lane that is being walked over.
    minor_of_lane: Vec<u64>,
    minor_words: Vec<f64>,
    direct_words: Vec<f64>,
    promoted_words: Vec<f64>,
}

impl Buckets {
    pub(super) fn new(span: Span, points: usize) -> Self {
        let zeros = || vec![0.0; points];
        Self {
            span,
            busy: zeros(),
            kinds: std::array::from_fn(|_| zeros()),
            present: zeros(),
            longest: vec![0; points],
            minor: vec![0; points],
            minor_of_lane: vec![0; points],
            minor_words: zeros(),
            direct_words: zeros(),
            promoted_words: zeros(),
        }
    }

    pub(super) fn add_busy(&mut self, from: u64, to: u64) {
        let length = to.saturating_sub(from) as f64;
        spread(self.span, &mut self.busy, (from, to), length);
    }

    /// Adds a piece of work of a kind, which took so many nanoseconds without what is inside of it.
    pub(super) fn add_kind(&mut self, kind: usize, times: (u64, u64), own: u64) {
        spread(self.span, &mut self.kinds[kind], times, own as f64);
    }

    pub(super) fn add_present(&mut self, from: u64, to: u64) {
        let length = to.saturating_sub(from) as f64;
        spread(self.span, &mut self.present, (from, to), length);
    }

    pub(super) fn add_minor(&mut self, time: u64) {
        let place = place(self.span, self.minor.len(), time);
        self.minor_of_lane[place] += 1;
    }

    /// Notes that all of a lane was added.
    pub(super) fn end_lane(&mut self) {
        for (most, of_lane) in self.minor.iter_mut().zip(&mut self.minor_of_lane) {
            *most = (*most).max(std::mem::take(of_lane));
        }
    }

    pub(super) fn add_pause(&mut self, pause: &Pause) {
        let (from, to) = self.span.clip(pause.start, pause.end);
        if pause.start > self.span.to || pause.end < self.span.from {
            return;
        }
        let n = self.longest.len();
        let places = place(self.span, n, from)..=place(self.span, n, to);
        for longest in &mut self.longest[places] {
            *longest = (*longest).max(pause.length());
        }
    }

    /// Adds words that were counted from one time to another, at the end of a collection that began at a third.
    pub(super) fn add_words(&mut self, words: &CountedWords, times: (u64, u64), start: u64) {
        let span = self.span;
        spread(span, &mut self.minor_words, times, words.minor as f64);
        spread(span, &mut self.direct_words, times, words.direct() as f64);
        // The collection itself promotes.
        let times = (start.max(times.0), times.1);
        spread(span, &mut self.promoted_words, times, words.promoted as f64);
    }

    pub(super) fn series(self, heap: Option<&[Option<HeapSize>]>, lanes: &[LaneWork]) -> GcSeries {
        let points = self.busy.len();
        let width = width(self.span, points);
        let per_second = |amounts: Vec<f64>| -> Vec<f64> {
            let rate = |amount: f64| {
                if width > 0.0 {
                    amount / width * 1e9
                } else {
                    0.0
                }
            };
            amounts.into_iter().map(rate).collect()
        };
        let is_counted = words::sum(lanes).is_some();
        let counted = |words: Vec<f64>| is_counted.then(|| per_second(words));
        let share = |(busy, present): (f64, f64)| {
            if present > 0.0 {
                100.0 * (busy / present).min(1.0)
            } else {
                0.0
            }
        };
        let shares = |busy: &[f64]| -> Vec<f64> {
            let times = busy.iter().copied().zip(self.present.iter().copied());
            times.map(share).collect()
        };
        let kinds = KINDS.iter().zip(&self.kinds);
        let kinds = kinds.filter(|(_, busy)| busy.iter().any(|&busy| busy > 0.0));
        let end = |point: usize| {
            let end = width * (point + 1) as f64;
            seconds(self.span.from) + end / 1e9
        };
        let of_heap = |size: fn(&HeapSize) -> u64| {
            heap.map(|sizes| {
                let sizes = sizes.iter();
                let words =
                    |found: &Option<HeapSize>| found.as_ref().map(|found| size(found) as f64);
                sizes.map(words).collect()
            })
        };
        GcSeries {
            times: (0..points).map(end).collect(),
            collector_percent: shares(&self.busy),
            kinds: kinds
                .map(|(&kind, busy)| KindSeries {
                    kind,
                    percent: shares(busy),
                })
                .collect(),
            longest_pause: self.longest.into_iter().map(seconds).collect(),
            minor_collections: per_second(self.minor.iter().map(|&n| n as f64).collect()),
            minor_words: counted(self.minor_words),
            direct_words: counted(self.direct_words),
            promoted_words: counted(self.promoted_words),
            heap_words: of_heap(|size| size.heap),
            free_words: of_heap(|size| size.free),
        }
    }
}

/// Nanoseconds of an interval.
fn width(span: Span, points: usize) -> f64 {
    span.to.saturating_sub(span.from) as f64 / points as f64
}

/// The interval that a time is in; the first or the last one if it is in none.
pub(super) fn place(span: Span, points: usize, time: u64) -> usize {
    let length = span.to.saturating_sub(span.from);
    let after = time.saturating_sub(span.from);
    if length == 0 {
        return 0;
    }
    let place = u128::from(after) * points as u128 / u128::from(length);
    usize::try_from(place).unwrap_or(usize::MAX).min(points - 1)
}

/// Adds an amount, spread over a time, to the intervals that it overlaps.
fn spread(span: Span, buckets: &mut [f64], (from, to): (u64, u64), amount: f64) {
    let points = buckets.len();
    if to < span.from || from > span.to || amount == 0.0 {
        return;
    }
    if to <= from {
        buckets[place(span, points, from)] += amount;
        return;
    }
    let per_nano = amount / (to - from) as f64;
    let (first, last) = span.clip(from, to);
    let width = width(span, points);
    let (from, to) = ((first - span.from) as f64, (last - span.from) as f64);
    let places = place(span, points, first)..=place(span, points, last);
    for (number, bucket) in places.clone().zip(&mut buckets[places]) {
        let start = from.max(width * number as f64);
        let end = to.min(width * (number + 1) as f64);
        *bucket += per_nano * (end - start).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_spread_over_the_intervals_that_they_overlap() {
        let span = Span {
            from: 100,
            to: 500,
            end: 1000,
        };
        let mut buckets = vec![0.0; 4];
        spread(span, &mut buckets, (150, 350), 200.0);
        assert_eq!(buckets, [50.0, 100.0, 50.0, 0.0]);
        // What is outside of the span does not count.
        spread(span, &mut buckets, (0, 200), 200.0);
        assert_eq!(buckets, [150.0, 100.0, 50.0, 0.0]);
        spread(span, &mut buckets, (450, 550), 10.0);
        spread(span, &mut buckets, (600, 700), 10.0);
        assert_eq!(buckets, [150.0, 100.0, 50.0, 5.0]);
        spread(span, &mut buckets, (300, 300), 1.0);
        assert_eq!(buckets, [150.0, 100.0, 51.0, 5.0]);
    }

    #[test]
    fn times_beyond_all_bounds_have_a_place() {
        let span = Span {
            from: 0,
            to: u64::MAX,
            end: u64::MAX,
        };
        assert_eq!(place(span, 10, u64::MAX), 9);
        let nothing = Span {
            from: 5,
            to: 5,
            end: 5,
        };
        assert_eq!(place(nothing, 10, 7), 0);
        let mut buckets = vec![0.0; 10];
        spread(nothing, &mut buckets, (0, 10), 1.0);
        spread(span, &mut buckets, (0, u64::MAX), 1.0);
        assert!(buckets.iter().sum::<f64>() < 2.1);
    }
}
