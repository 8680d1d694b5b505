//! The numbers of ocaml-alloc-stats, as it computes them.
//!
//! They differ from [`stats`](super::stats()) on purpose, that is by that program's mistakes:
//! sampled blocks count once whatever they stand for; blocks that die on the minor heap do not
//! count at all, and others only from their promotion on; promotions and collections carry the
//! time of the last allocation before them.

use std::collections::BTreeMap;

use heapline_model::Space;
use serde::Serialize;

use crate::selection::Selection;
use crate::store::{NEVER, Profile};

/// The numbers and plots of its two notebooks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AllocStats {
    /// `main.ipynb`.
    pub sizes: AllocSizes,
    /// `lifetimes.ipynb`.
    pub lifetimes: AllocLifetimes,
}

/// Sizes of major blocks, in words without the header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AllocSizes {
    /// Allocations on the major heap and promotions: `Read N events`.
    pub events: usize,
    /// The number of blocks of each size: `tmp.json`.
    pub counts: BTreeMap<u64, u64>,
    /// Below 32 words.
    pub small: EqualBins,
    /// From 32 to 256 words.
    pub medium: EqualBins,
    /// From 256 to 10,000 words.
    pub large: EqualBins,
    /// Above 10,000 words.
    pub huge: EqualBins,
    /// More than 256 words, in percent; null if there are no events.
    pub large_percent: Option<f64>,
    /// All of them.
    pub all: Spread,
    /// In two halves.
    pub halves: Vec<Spread>,
    /// In ten parts.
    pub tenths: Vec<Spread>,
    /// Without the first and last 100, in two halves.
    pub trimmed_halves: Vec<Spread>,
    /// Those above 256 words, without the first and last 100, in two halves.
    pub trimmed_large_halves: Vec<Spread>,
    /// The number of blocks above 256 words in each tenth.
    pub large_per_tenth: Vec<usize>,
}

/// Lifetimes of major blocks, from their promotion on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AllocLifetimes {
    /// Allocations on the major heap, promotions and collections there: `Read N events`.
    pub events: usize,
    /// Blocks that were not collected.
    pub survivors: usize,
    /// In events: the longest, or null.
    pub ticks_max: Option<u64>,
    /// In events, below 32.
    pub ticks: EqualBins,
    /// In microseconds: the longest, or null.
    pub time_max: Option<u64>,
    /// The sum of all, in microseconds.
    pub time_sum: u64,
    /// In microseconds, in a hundred parts.
    pub time: EqualBins,
}

/// Bars of equal width, as numpy makes them: the last one includes its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EqualBins {
    /// The least value of the first bar.
    pub low: f64,
    /// The largest value of the last bar.
    pub high: f64,
    /// The number of values in each bin.
    pub counts: Vec<u64>,
}

/// A sample's mean and spread; the variance is that of the sample, not an estimate. All but the
/// count are null if it is empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The number of values.
    pub count: usize,
    /// The mean.
    pub mean: Option<f64>,
    /// The variance.
    pub variance: Option<f64>,
    /// The standard deviation.
    pub sd: Option<f64>,
    /// The largest.
    pub max: Option<u64>,
}

const LARGE: u64 = 256;

/// The numbers that ocaml-alloc-stats gives for a trace.
#[must_use]
pub fn alloc_stats(profile: &Profile) -> AllocStats {
    let major = MajorBlocks::new(profile);
    AllocStats {
        sizes: sizes(&major.sizes()),
        lifetimes: lifetimes(profile, &major),
    }
}

/// Blocks that were on the major heap: when they got there, when they left, and their size.
struct MajorBlocks {
    blocks: Vec<(u64, u64, u64)>,
    /// The events of allocations, on any heap.
    births: Vec<u64>,
}

impl MajorBlocks {
    fn new(profile: &Profile) -> Self {
        let mut blocks = Vec::new();
        let mut births = Vec::with_capacity(profile.len());
        Selection::all(profile).for_each(profile, |stay| {
            births.push(stay.birth);
            let kind = profile.classes()[stay.class].kind;
            let kind = &profile.kinds()[kind];
            let start = match kind.space {
                Space::Minor => stay.promotion,
                _ => stay.birth,
            };
            if start != NEVER {
                blocks.push((start, stay.death, profile.words(kind)));
            }
        });
        blocks.sort_unstable();
        births.sort_unstable();
        Self { blocks, births }
    }

    fn sizes(&self) -> Vec<u64> {
        self.blocks.iter().map(|&(_, _, size)| size).collect()
    }

    /// The time of the last allocation up to an event.
    fn stale_time(&self, profile: &Profile, event: u64) -> u64 {
        match self.births.partition_point(|&birth| birth <= event) {
            0 => 0,
            n => profile.time(self.births[n - 1]),
        }
    }
}

fn sizes(sizes: &[u64]) -> AllocSizes {
    let mut counts = BTreeMap::new();
    for &size in sizes {
        *counts.entry(size).or_insert(0) += 1;
    }
    let large = |sizes: &[u64]| sizes.iter().filter(|&&size| size > LARGE).count();
    let huge: Vec<u64> = sizes
        .iter()
        .copied()
        .filter(|&size| size > 10_000)
        .collect();
    let trimmed = sizes
        .get(100..sizes.len().saturating_sub(100))
        .unwrap_or_default();
    let trimmed_large: Vec<u64> = trimmed.iter().copied().filter(|&n| n > LARGE).collect();
    let spreads = |sizes: &[u64], n: usize| pieces(sizes, n).map(spread).collect();
    AllocSizes {
        events: sizes.len(),
        counts,
        small: EqualBins::new(sizes, 0.0, 32.0, 32),
        medium: EqualBins::new(sizes, 32.0, 256.0, 100),
        large: EqualBins::new(sizes, 256.0, 10_000.0, 100),
        huge: EqualBins::of_all(&huge, 100),
        large_percent: (!sizes.is_empty())
            .then(|| 100.0 * large(sizes) as f64 / sizes.len() as f64),
        all: spread(sizes),
        halves: spreads(sizes, 2),
        tenths: spreads(sizes, 10),
        trimmed_halves: spreads(trimmed, 2),
        trimmed_large_halves: spreads(&trimmed_large, 2),
        large_per_tenth: pieces(sizes, 10).map(large).collect(),
    }
}

fn lifetimes(profile: &Profile, major: &MajorBlocks) -> AllocLifetimes {
    let mut events: Vec<u64> = major
        .blocks
        .iter()
        .flat_map(|&(start, end, _)| [start, end])
        .filter(|&event| event != NEVER)
        .collect();
    events.sort_unstable();
    let tick = |event: u64| events.partition_point(|&other| other < event) as u64;
    let latest = events
        .last()
        .map_or(0, |&event| major.stale_time(profile, event));
    let (mut ticks, mut times) = (Vec::new(), Vec::new());
    let mut survivors = 0;
    for &(start, end, _) in &major.blocks {
        let time = major.stale_time(profile, start);
        if end == NEVER {
            survivors += 1;
            ticks.push(events.len() as u64 - tick(start));
            times.push(latest - time);
        } else {
            ticks.push(tick(end) - tick(start));
            times.push(major.stale_time(profile, end) - time);
        }
    }
    let time_max = times.iter().copied().max();
    AllocLifetimes {
        events: events.len(),
        survivors,
        ticks_max: ticks.iter().copied().max(),
        ticks: EqualBins::new(&ticks, 0.0, 32.0, 32),
        time_max,
        time_sum: times
            .iter()
            .fold(0, |sum: u64, &time| sum.saturating_add(time)),
        time: EqualBins::new(&times, 0.0, time_max.unwrap_or(0) as f64, 100),
    }
}

/// Pieces of equal length but the last, which may be shorter or missing.
fn pieces(values: &[u64], n: usize) -> impl Iterator<Item = &[u64]> {
    values.chunks(values.len().div_ceil(n).max(1))
}

fn spread(values: &[u64]) -> Spread {
    let count = values.len();
    let mean = (count > 0).then(|| values.iter().map(|&v| v as f64).sum::<f64>() / count as f64);
    let variance = mean.map(|mean| {
        let squares: f64 = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
        squares / count as f64
    });
    Spread {
        count,
        mean,
        variance,
        sd: variance.map(f64::sqrt),
        max: values.iter().copied().max(),
    }
}

impl EqualBins {
    fn of_all(values: &[u64], bins: usize) -> Self {
        match (values.iter().min(), values.iter().max()) {
            (Some(&low), Some(&high)) => Self::new(values, low as f64, high as f64, bins),
            _ => Self::default(),
        }
    }

    fn new(values: &[u64], mut low: f64, mut high: f64, bins: usize) -> Self {
        let mut counts = vec![0; bins];
        if high <= low && !values.is_empty() {
            // Bars need some width.
            (low, high) = (low - 0.5, high + 0.5);
        }
        let step = (high - low) / bins as f64;
        // The edges decide, as they are after rounding; a division may differ.
        let edge = |bin: usize| bin as f64 * step + low;
        for &value in values {
            let value = value as f64;
            if (low..=high).contains(&value) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a number of bins"
                )]
                let near = ((value - low) / (high - low) * bins as f64) as usize;
                let near = near.min(bins - 1);
                let bin = if value < edge(near) {
                    near - 1
                } else if near + 1 < bins && value >= edge(near + 1) {
                    near + 1
                } else {
                    near
                };
                counts[bin] += 1;
            }
        }
        Self { low, high, counts }
    }
}
