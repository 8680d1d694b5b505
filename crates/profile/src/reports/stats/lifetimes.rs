//! Lifetimes of blocks.

use serde::Serialize;

use super::super::{Figures, Quantiles};
use super::Bin;
use crate::allocated::Allocated;
use crate::amount::Amount;
use crate::histogram::{Survival, SurvivalPoint, quantile_of};
use crate::scope::Scope;
use crate::selection::Stay;

/// Points of a survival curve, at most.
const CURVE: usize = 100;

/// Lifetimes of blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LifetimeStats {
    /// Blocks that were alive at the end: they lived at least as long as they were seen. They
    /// count in the quantiles and the survival curve, and are not in the histograms.
    pub alive: Figures,
    /// Mean seconds of those that died; null if none did.
    pub mean: Option<f64>,
    /// Seconds of the one that died oldest; null if none died.
    pub max: Option<f64>,
    /// Seconds of the oldest block, dead or alive: lifetimes that are null are longer. Null if there are no blocks.
    pub oldest: Option<f64>,
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

pub(super) fn lifetimes(scope: &Scope<'_>, bins: usize) -> LifetimeStats {
    let profile = scope.profile();
    let allocated = Allocated::new(profile, scope.estimator());
    let ages = AgeBins::new(&log_bins());
    let age = |stay: Stay| stay.age(profile);
    let Lives {
        seconds,
        bytes,
        alive,
        sum,
        blocks,
        oldest,
        mut log,
    } = scope.fold(
        Lives::default,
        |lives, stay| {
            let meanwhile = allocated.between(stay.start, stay.end);
            let age = age(stay);
            lives.add(age, meanwhile, stay.ends(), &scope.weight(&stay));
            if stay.ends() {
                lives.log[ages.bin(age)].add(&scope.weight(&stay));
            }
        },
        |lives, part| lives.merge(&part),
    );
    let max = oldest.unwrap_or(0) as f64 / 1e6;
    let width = max / bins as f64;
    let empty = || -> Vec<Bin> {
        (0..bins)
            .map(|bin| Bin {
                low: bin as f64 * width,
                high: (bin + 1) as f64 * width,
                ..Bin::default()
            })
            .collect()
    };
    let linear = if max > 0.0 {
        scope.fold(
            empty,
            |linear, stay| {
                if stay.ends() {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a number of bins"
                    )]
                    let bin = (age(stay) as f64 / 1e6 / width) as usize;
                    linear[bin.min(bins - 1)].add(&scope.weight(&stay));
                }
            },
            |linear, part| merge(linear, &part),
        )
    } else {
        Vec::new()
    };
    trim(&mut log);
    let curve = seconds.curve();
    let at = |share| quantile_of(&curve, share).map(|age| age as f64 / 1e6);
    LifetimeStats {
        alive: Figures::new(&alive),
        mean: (blocks > 0.0).then(|| sum / blocks / 1e6),
        max: oldest.map(|age| age as f64 / 1e6),
        oldest: seconds.oldest().map(|age| age as f64 / 1e6),
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

/// Accumulates lifetimes of blocks.
struct Lives {
    /// By seconds.
    seconds: Survival,
    /// By bytes allocated meanwhile.
    bytes: Survival,
    alive: Amount,
    /// Microseconds lived by those that died, times blocks.
    sum: f64,
    /// The number of dead blocks.
    blocks: f64,
    oldest: Option<u64>,
    log: Vec<Bin>,
}

impl Default for Lives {
    fn default() -> Self {
        Self {
            seconds: Survival::default(),
            bytes: Survival::default(),
            alive: Amount::default(),
            sum: 0.0,
            blocks: 0.0,
            oldest: None,
            log: log_bins(),
        }
    }
}

impl Lives {
    #[inline]
    fn add(&mut self, age: u64, meanwhile: f64, died: bool, weight: &Amount) {
        self.seconds.add(age, died, weight.blocks.value);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the sum only grows, and a cast saturates"
        )]
        self.bytes.add(meanwhile as u64, died, weight.blocks.value);
        if died {
            self.sum += age as f64 * weight.blocks.value;
            self.blocks += weight.blocks.value;
            self.oldest = self.oldest.max(Some(age));
        } else {
            self.alive += *weight;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.seconds.merge(&other.seconds);
        self.bytes.merge(&other.bytes);
        self.alive += other.alive;
        self.sum += other.sum;
        self.blocks += other.blocks;
        self.oldest = self.oldest.max(other.oldest);
        merge(&mut self.log, &other.log);
    }
}

/// Adds the bars of another histogram to those of one.
fn merge(bins: &mut [Bin], other: &[Bin]) {
    for (bin, other) in bins.iter_mut().zip(other) {
        bin.blocks += other.blocks;
        bin.bytes += other.bytes;
        bin.sampled += other.sampled;
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

/// Finds the bar of an age: a table by its power of two leads to within a few bars of it.
struct AgeBins {
    /// The least age, in microseconds, above each bar but the last.
    above: Vec<u64>,
    /// The bar of the least age with so many bits.
    first: [usize; u64::BITS as usize + 1],
}

impl AgeBins {
    fn new(bins: &[Bin]) -> Self {
        let above: Vec<u64> = bins[..bins.len() - 1]
            .iter()
            .map(|bin| least(|age| bin.high <= age as f64 / 1e6))
            .collect();
        let first = std::array::from_fn(|bits| {
            let age = bits.checked_sub(1).map_or(0, |place| 1 << place);
            above.partition_point(|&above| above <= age)
        });
        Self { above, first }
    }

    #[inline]
    fn bin(&self, age: u64) -> usize {
        let mut bin = self.first[(u64::BITS - age.leading_zeros()) as usize];
        while self.above.get(bin).is_some_and(|&above| above <= age) {
            bin += 1;
        }
        bin
    }
}

/// The least number that a condition holds for, which holds for all greater ones too.
fn least(holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, u64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_in_the_bar_whose_bounds_it_is_between() {
        let bins = log_bins();
        let ages = AgeBins::new(&bins);
        let powers = (0..u64::BITS).map(|place| 1 << place);
        let round = (0..14).flat_map(|power| [1, 2, 5].map(|n| n * 10_u64.pow(power)));
        for age in powers.chain(round).chain([0, u64::MAX]) {
            for age in [age.saturating_sub(1), age, age.saturating_add(1)] {
                let bin = bins.partition_point(|bin| bin.high <= age as f64 / 1e6);
                assert_eq!(ages.bin(age), bin.min(bins.len() - 1), "{age}");
            }
        }
    }
}
