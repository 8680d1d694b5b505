//! Histograms with buckets that grow with their values.

use serde::Serialize;

/// Buckets of a power of two: values are told apart to about 3 %.
const PER_OCTAVE: u64 = 32;
const OCTAVE_BITS: u32 = PER_OCTAVE.ilog2();

/// Weights by value. Values below 64 have a bucket each; larger ones share.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogHistogram {
    weights: Vec<f64>,
}

impl LogHistogram {
    #[inline]
    pub(crate) fn add(&mut self, value: u64, weight: f64) {
        let bucket = bucket(value);
        if self.weights.len() <= bucket {
            self.weights.resize(bucket + 1, 0.0);
        }
        self.weights[bucket] += weight;
    }

    fn merge(&mut self, other: &Self) {
        let len = self.weights.len().max(other.weights.len());
        self.weights.resize(len, 0.0);
        for (weight, other) in self.weights.iter_mut().zip(&other.weights) {
            *weight += other;
        }
    }

    /// The buckets that are not empty: the least value of each, and its weight.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(bucket, &weight)| (lowest(bucket), weight))
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    let octave = u64::from((value | 1).ilog2().saturating_sub(OCTAVE_BITS));
    let within = value >> octave;
    usize::try_from(octave * PER_OCTAVE + within).unwrap_or(0)
}

fn lowest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * PER_OCTAVE {
        return bucket;
    }
    let octave = bucket / PER_OCTAVE - 1;
    (bucket - octave * PER_OCTAVE) << octave
}

/// Survival curve with censored lifetimes.
///
/// Kaplan and Meier's estimate: those that were still alive count as survivors up to the age at
/// which they were last seen, and are not taken to have died then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survival {
    /// Weights of those that died, by age.
    died: LogHistogram,
    /// Weights of those that were last seen alive, by age.
    alive: LogHistogram,
}

/// A point of a survival curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SurvivalPoint {
    /// The age.
    pub age: f64,
    /// The share that lives longer.
    pub alive: f64,
}

impl Survival {
    #[inline]
    pub(crate) fn add(&mut self, age: u64, died: bool, weight: f64) {
        if died {
            self.died.add(age, weight);
        } else {
            self.alive.add(age, weight);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.died.merge(&other.died);
        self.alive.merge(&other.alive);
    }

    /// The curve: it starts at 1 and steps down at each age at which some died.
    pub(crate) fn curve(&self) -> Vec<(u64, f64)> {
        let died: Vec<(u64, f64)> = self.died.iter().collect();
        let alive: Vec<(u64, f64)> = self.alive.iter().collect();
        // Those at risk at an age are those that were seen at that age or older. They are added up
        // from the oldest: taking away would lose digits.
        let mut at_risk = vec![0.0; died.len()];
        let (mut sum, mut next) = (0.0, alive.len());
        for (i, &(age, weight)) in died.iter().enumerate().rev() {
            while next > 0 && alive[next - 1].0 >= age {
                next -= 1;
                sum += alive[next].1;
            }
            sum += weight;
            at_risk[i] = sum;
        }
        let mut share = 1.0;
        died.iter()
            .zip(at_risk)
            .map(|(&(age, died), at_risk)| {
                share *= 1.0 - died / at_risk;
                (age, share)
            })
            .collect()
    }

    /// The age of the oldest, dead or alive, rounded down like all ages; `None` if there are none.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let last = |ages: &LogHistogram| ages.weights.len().checked_sub(1).map(lowest);
        last(&self.died).max(last(&self.alive))
    }

    /// The age that a share of all does not live longer than; `None` if more than the rest was
    /// still alive.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        quantile_of(&self.curve(), share)
    }
}

pub(crate) fn quantile_of(curve: &[(u64, f64)], share: f64) -> Option<u64> {
    curve
        .iter()
        .find(|&&(_, alive)| alive <= 1.0 - share + 1e-12)
        .map(|&(age, _)| age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_values_to_three_percent() {
        let mut last = 0;
        for value in (0..5000).chain([u64::MAX / 3, u64::MAX - 1, u64::MAX]) {
            let bucket = bucket(value);
            let low = lowest(bucket);
            assert!(low <= value, "{value}");
            assert!((value - low) as f64 <= value as f64 / 31.0, "{value}");
            assert!(bucket >= last);
            last = bucket;
        }
    }

    #[test]
    fn without_survivors_the_curve_is_the_distribution() {
        let mut survival = Survival::default();
        for age in 1..=10 {
            survival.add(age, true, 2.0);
        }
        assert_eq!(survival.quantile(0.5), Some(5));
        assert_eq!(survival.quantile(1.0), Some(10));
        let curve = survival.curve();
        assert!((curve[2].1 - 0.7).abs() < 1e-12, "{curve:?}");
    }

    /// The example of Kaplan and Meier's own paper's kind: 6, 6, 6, 6+, 7, 9+, 10, 10+ ...
    #[test]
    fn survivors_count_while_they_were_seen() {
        let mut survival = Survival::default();
        for age in [6, 6, 6, 7, 10, 13, 16, 22, 23] {
            survival.add(age, true, 1.0);
        }
        for age in [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35] {
            survival.add(age, false, 1.0);
        }
        // The published estimates for these remission times.
        let expected = [
            (6, 0.857),
            (7, 0.807),
            (10, 0.753),
            (13, 0.690),
            (16, 0.627),
            (22, 0.538),
            (23, 0.448),
        ];
        for ((age, alive), (want_age, want)) in survival.curve().into_iter().zip(expected) {
            assert_eq!(age, want_age);
            assert!((alive - want).abs() < 0.001, "{age}: {alive}");
        }
        assert_eq!(survival.quantile(0.5), Some(23));
        assert_eq!(survival.quantile(0.9), None);
    }
}
