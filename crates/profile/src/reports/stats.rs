//! Sizes and lifetimes.

use serde::Serialize;

use super::{Figures, Quantiles, Subject};
use crate::estimate::{Amount, Estimate};
use crate::histogram::{Survival, SurvivalPoint, quantile_of};
use crate::phases::phases;
use crate::scope::Scope;
use crate::store::{NEVER, Profile};
use crate::timeline::{self, Timeline};
use crate::walk;

/// Blocks of more words than this go directly to the major heap.
const LARGE: u64 = 256;
/// Points of a survival curve, at most.
const CURVE: usize = 100;
/// Parts of the run among which phases are looked for.
const PHASE_PARTS: usize = 128;

/// How statistics are made.
#[derive(Clone, Copy, Debug)]
pub struct StatsOptions {
    /// Equal parts of the run.
    pub segments: usize,
    /// Bars of the linear histograms.
    pub bins: usize,
}

impl Default for StatsOptions {
    fn default() -> Self {
        Self {
            segments: 10,
            bins: 20,
        }
    }
}

/// Sizes and lifetimes of blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// What it is about.
    pub subject: Subject,
    /// All blocks.
    pub total: Figures,
    /// How large blocks are.
    pub sizes: SizeStats,
    /// How long they live.
    pub lifetimes: LifetimeStats,
    /// The run in equal parts of time.
    pub segments: Vec<Segment>,
    /// The run in parts that differ: where the rate of allocation changes.
    pub phases: Vec<Segment>,
}

/// How large blocks are, in words without the header, each estimated block counted once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeStats {
    /// The mean; null if there are no blocks.
    pub mean: Option<f64>,
    /// The variance; null if there are no blocks.
    pub variance: Option<f64>,
    /// The standard deviation; null if there are no blocks.
    pub sd: Option<f64>,
    /// The spread.
    pub quantiles: Quantiles,
    /// Of the largest sampled block.
    pub max: u64,
    /// Blocks of more words are large.
    pub large_limit: u64,
    /// Large blocks in percent of all blocks; null if there are none.
    pub large_blocks_percent: Option<f64>,
    /// Bytes of large blocks in percent of all bytes; null if there are none.
    pub large_bytes_percent: Option<f64>,
    /// One bar for each size below 32 words.
    pub linear: Vec<Bin>,
    /// A bar for each power of two.
    pub log: Vec<Bin>,
}

/// How long blocks live.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LifetimeStats {
    /// Blocks that were alive at the end: they lived at least as long as they were seen. They
    /// count in the quantiles and the survival curve, and are not in the histograms.
    pub alive: Figures,
    /// Mean seconds of those that died; null if none did.
    pub mean: Option<f64>,
    /// Seconds of the one that died oldest; null if none died.
    pub max: Option<f64>,
    /// The spread in seconds.
    pub seconds: Quantiles,
    /// The spread in bytes that were allocated meanwhile.
    pub bytes: Quantiles,
    /// Bars of equal width, in seconds.
    pub linear: Vec<Bin>,
    /// Bars that grow by 1, 2, 5, 10, in seconds.
    pub log: Vec<Bin>,
    /// The share of blocks that live longer than an age, in seconds.
    pub survival: Vec<SurvivalPoint>,
}

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bin {
    /// The least value in it.
    pub low: f64,
    /// The least value above it.
    pub high: f64,
    /// Estimated blocks.
    pub blocks: f64,
    /// Estimated bytes.
    pub bytes: f64,
    /// Sampled blocks.
    pub sampled: u64,
}

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Seconds since the start.
    pub from: f64,
    /// Seconds since the start.
    pub to: f64,
    /// What was allocated meanwhile.
    pub allocated: Figures,
    /// Bytes per second; null if no time passed.
    pub allocation_rate: Option<Estimate>,
    /// Mean words of a block, without the header; null if there are none.
    pub mean_size: Option<f64>,
    /// The standard deviation of that; null if there are none.
    pub sd_size: Option<f64>,
    /// Blocks of more than 256 words in percent of all; null if there are none.
    pub large_percent: Option<f64>,
    /// What was promoted of what was allocated meanwhile, in percent of bytes; null if there is
    /// nothing.
    pub promoted_percent: Option<f64>,
    /// Bytes alive at the end of the part.
    pub live_at_end: f64,
}

/// The statistics of the blocks in scope.
#[must_use]
pub fn stats(scope: &Scope<'_>, options: &StatsOptions) -> Stats {
    let profile = scope.profile();
    let mut counts = vec![0_u64; profile.kinds.len()];
    for (class, n) in profile.classes.iter().zip(scope.counts()) {
        counts[class.kind as usize] += u64::from(n);
    }
    let segments = equal_parts(profile, options.segments.clamp(1, 10_000));
    let (lifetimes, (segments, phases)) = rayon::join(
        || lifetimes(scope, options.bins.clamp(1, 10_000)),
        || {
            (
                parts_of_run(scope, &segments),
                parts_of_run(scope, &phase_ends(scope)),
            )
        },
    );
    Stats {
        subject: Subject::new(scope),
        total: Figures::of_total(scope, &scope.total()),
        sizes: sizes(scope, &counts),
        lifetimes,
        segments,
        phases,
    }
}

fn sizes(scope: &Scope<'_>, counts: &[u64]) -> SizeStats {
    let profile = scope.profile();
    let mut by_length: Vec<(u64, Amount)> = profile
        .kinds
        .iter()
        .zip(scope.weights())
        .zip(counts)
        .filter(|(_, n)| **n > 0)
        .map(|((kind, weight), &n)| (kind.length, weight.times(n)))
        .collect();
    by_length.sort_by_key(|(length, _)| *length);
    let mut moments = Moments::default();
    for &(length, amount) in &by_length {
        moments.add(length, amount);
    }
    let max = by_length.last().map_or(0, |(length, _)| *length);
    let quantile = |share: f64| {
        let mut below = 0.0;
        by_length
            .iter()
            .find(|(_, amount)| {
                below += amount.blocks.value;
                below >= share * moments.blocks * (1.0 - 1e-12)
            })
            .map(|(length, _)| *length as f64)
    };
    let mut linear: Vec<Bin> = (0..32).map(|low| Bin::from_to(low, low + 1)).collect();
    let mut log: Vec<Bin> = std::iter::once(Bin::from_to(0, 1))
        .chain((0..=max.max(1).ilog2()).map(|power| Bin::from_to(1 << power, 2 << power)))
        .collect();
    for (length, amount) in &by_length {
        if let Some(bin) = usize::try_from(*length)
            .ok()
            .and_then(|n| linear.get_mut(n))
        {
            bin.add(amount);
        }
        let power = length.checked_ilog2().map_or(0, |power| power as usize + 1);
        log[power].add(amount);
    }
    SizeStats {
        mean: moments.mean(),
        variance: moments.variance(),
        sd: moments.variance().map(f64::sqrt),
        quantiles: Quantiles {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
        },
        max,
        large_limit: LARGE,
        large_blocks_percent: moments.percent(moments.large),
        large_bytes_percent: (moments.bytes > 0.0)
            .then(|| 100.0 * moments.large_bytes / moments.bytes),
        linear,
        log,
    }
}

fn lifetimes(scope: &Scope<'_>, bins: usize) -> LifetimeStats {
    let profile = scope.profile();
    let clock = &profile.clock;
    let last = clock.len().saturating_sub(1);
    let allocated = walk::allocated(profile, scope.estimator());
    let (mut seconds, mut bytes) = (Survival::default(), Survival::default());
    let mut alive = Amount::default();
    let (mut sum, mut blocks, mut oldest) = (0.0, 0.0, None::<u64>);
    let mut log = log_bins();
    scope.for_each(|stay| {
        let died = stay.end != NEVER;
        let end = (stay.end as usize).min(last);
        let age = clock.get(end) - clock.get(stay.start as usize);
        let weight = scope.weight(stay.block);
        seconds.add(age, died, weight.blocks.value);
        let meanwhile = allocated[end] - allocated[stay.start as usize];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the sum only grows, and a cast saturates"
        )]
        bytes.add(meanwhile as u64, died, weight.blocks.value);
        if died {
            sum += age as f64 * weight.blocks.value;
            blocks += weight.blocks.value;
            oldest = oldest.max(Some(age));
            let bin = log.partition_point(|bin| bin.high <= age as f64 / 1e6);
            let bin = bin.min(log.len() - 1);
            log[bin].add(&weight);
        } else {
            alive += weight;
        }
    });
    let max = oldest.unwrap_or(0) as f64 / 1e6;
    let width = max / bins as f64;
    let mut linear: Vec<Bin> = (0..bins)
        .map(|bin| Bin {
            low: bin as f64 * width,
            high: (bin + 1) as f64 * width,
            ..Bin::default()
        })
        .collect();
    if max > 0.0 {
        scope.for_each(|stay| {
            if stay.end != NEVER {
                let age = clock.get(stay.end as usize) - clock.get(stay.start as usize);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a number of bins"
                )]
                let bin = (age as f64 / 1e6 / width) as usize;
                linear[bin.min(bins - 1)].add(&scope.weight(stay.block));
            }
        });
    } else {
        linear.clear();
    }
    trim(&mut log);
    let curve = seconds.curve();
    let at = |share| quantile_of(&curve, share).map(|age| age as f64 / 1e6);
    LifetimeStats {
        alive: Figures::new(&alive),
        mean: (blocks > 0.0).then(|| sum / blocks / 1e6),
        max: oldest.map(|age| age as f64 / 1e6),
        seconds: Quantiles {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
        },
        bytes: Quantiles::of(&bytes, 1.0),
        linear,
        log,
        survival: thin(&curve),
    }
}

/// Bars from a microsecond to ten million seconds, growing by 1, 2, 5, 10.
fn log_bins() -> Vec<Bin> {
    let mut bounds = vec![0.0];
    for power in -6..7 {
        bounds.extend([1.0, 2.0, 5.0].map(|n| n * 10_f64.powi(power)));
    }
    bounds
        .windows(2)
        .map(|bounds| Bin {
            low: bounds[0],
            high: bounds[1],
            ..Bin::default()
        })
        .collect()
}

/// Drops empty bars at both ends.
fn trim(bins: &mut Vec<Bin>) {
    let end = bins
        .iter()
        .rposition(|bin| bin.sampled > 0)
        .map_or(0, |i| i + 1);
    bins.truncate(end);
    let start = bins.iter().position(|bin| bin.sampled > 0).unwrap_or(0);
    bins.drain(..start);
}

/// A curve with fewer points, none of its steps larger than a hundredth where there are enough.
fn thin(curve: &[(u64, f64)]) -> Vec<SurvivalPoint> {
    let mut last = 1.0 + 1.0 / CURVE as f64;
    let mut points = vec![SurvivalPoint {
        age: 0.0,
        alive: 1.0,
    }];
    for (i, &(age, alive)) in curve.iter().enumerate() {
        if last - alive >= 1.0 / CURVE as f64 || i + 1 == curve.len() {
            points.push(SurvivalPoint {
                age: age as f64 / 1e6,
                alive,
            });
            last = alive;
        }
    }
    points
}

/// Weighted moments of sizes.
#[derive(Clone, Copy, Default)]
struct Moments {
    blocks: f64,
    bytes: f64,
    words: f64,
    squares: f64,
    large: f64,
    large_bytes: f64,
}

impl Moments {
    fn add(&mut self, length: u64, amount: Amount) {
        let (blocks, length_f) = (amount.blocks.value, length as f64);
        self.blocks += blocks;
        self.bytes += amount.bytes.value;
        self.words += blocks * length_f;
        self.squares += blocks * length_f * length_f;
        if length > LARGE {
            self.large += blocks;
            self.large_bytes += amount.bytes.value;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.blocks > 0.0).then(|| self.words / self.blocks)
    }

    fn variance(&self) -> Option<f64> {
        let mean = self.mean()?;
        Some((self.squares / self.blocks - mean * mean).max(0.0))
    }

    fn percent(&self, part: f64) -> Option<f64> {
        (self.blocks > 0.0).then(|| 100.0 * part / self.blocks)
    }
}

impl Bin {
    fn from_to(low: u64, high: u64) -> Self {
        Self {
            low: low as f64,
            high: high as f64,
            ..Self::default()
        }
    }

    fn add(&mut self, amount: &Amount) {
        self.blocks += amount.blocks.value;
        self.bytes += amount.bytes.value;
        self.sampled += amount.sampled;
    }
}

/// The ends of equal parts of the run, in microseconds.
fn equal_parts(profile: &Profile, parts: usize) -> Vec<u64> {
    let end = profile.micros(profile.end());
    (1..=parts)
        .map(|part| timeline::time(end, part, parts))
        .collect()
}

/// The ends of the run's phases, in microseconds.
fn phase_ends(scope: &Scope<'_>) -> Vec<u64> {
    let profile = scope.profile();
    let timeline = Timeline::new(profile, PHASE_PARTS);
    let mut allocated = vec![0.0; PHASE_PARTS];
    scope.for_each(|stay| allocated[timeline.slot(stay.start)] += scope.bytes(stay.block));
    let end = profile.micros(profile.end());
    phases(&allocated)
        .into_iter()
        .map(|part| timeline::time(end, part, PHASE_PARTS))
        .collect()
}

fn parts_of_run(scope: &Scope<'_>, ends: &[u64]) -> Vec<Segment> {
    let profile = scope.profile();
    let moments = ends.iter().map(|&end| profile.after(end).0).collect();
    let timeline = Timeline::of_moments(moments, profile);
    let mut allocated = vec![Amount::default(); ends.len()];
    let mut sizes = vec![Moments::default(); ends.len()];
    let mut promoted = vec![0.0; ends.len()];
    let mut live = vec![0.0; ends.len()];
    scope.for_each(|stay| {
        let part = timeline.slot(stay.start);
        let weight = scope.weight(stay.block);
        allocated[part] += weight;
        let kind = profile.kinds[profile.kind_of(stay.block) as usize];
        sizes[part].add(kind.length, weight);
        if profile.blocks.promotion[stay.block] != NEVER {
            promoted[part] += weight.bytes.value;
        }
        live[part] += weight.bytes.value;
        if stay.end != NEVER {
            live[timeline.slot(stay.end)] -= weight.bytes.value;
        }
    });
    let (mut from, mut alive) = (0.0, 0.0_f64);
    (0..ends.len())
        .map(|part| {
            let to = ends[part] as f64 / 1e6;
            let seconds = to - from;
            let bytes = allocated[part].bytes;
            alive += live[part];
            let segment = Segment {
                from,
                to,
                allocated: Figures::new(&allocated[part]),
                allocation_rate: (seconds > 0.0).then(|| bytes.estimate().per(seconds)),
                mean_size: sizes[part].mean(),
                sd_size: sizes[part].variance().map(f64::sqrt),
                large_percent: sizes[part].percent(sizes[part].large),
                promoted_percent: (bytes.value > 0.0).then(|| 100.0 * promoted[part] / bytes.value),
                live_at_end: alive.max(0.0),
            };
            from = to;
            segment
        })
        .collect()
}
