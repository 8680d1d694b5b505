//! Estimates amounts from samples.
//!
//! Each word that a program allocates is sampled with probability r, independently. A block of S
//! words (header included) is therefore sampled with probability p = 1 - (1 - r)^S, and each sampled
//! block represents 1/p blocks: the Horvitz-Thompson estimator. It is unbiased, and its
//! variance is estimated without bias by the sum of S² (1 - p) / p² over the sampled blocks.
//! See `docs/statistics.md`.

use std::ops::{Add, AddAssign, Sub};

use clap::ValueEnum;
use heapline_model::{Scheme, Space};
use serde::{Deserialize, Serialize};

/// Two standard errors, near enough: 95 % of a normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

/// How samples are scaled to totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Size over the probability of being sampled: the most precise.
    #[default]
    HorvitzThompson,
    /// Samples over the sampling rate: the numbers of memtrace's tools and viewer.
    Count,
}

impl Estimator {
    /// All estimators.
    pub(crate) const ALL: [Self; 2] = [Self::HorvitzThompson, Self::Count];
}

/// The sampling parameters of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    scheme: Scheme,
    word_bytes: f64,
}

impl Sampling {
    /// A scheme, for a program whose words have so many bytes.
    #[must_use]
    pub fn new(scheme: Scheme, word_bytes: u64) -> Self {
        Self {
            scheme,
            word_bytes: word_bytes as f64,
        }
    }

    /// The probability that a unit was hit, and its bytes.
    fn rate(&self) -> (f64, f64) {
        match self.scheme {
            Scheme::PerUnit { rate, unit_bytes } => (rate.min(1.0), unit_bytes as f64),
            Scheme::Exact | Scheme::Given => (1.0, self.word_bytes),
        }
    }

    /// The mean number of bytes from one sample to the next.
    #[must_use]
    pub fn bytes_per_sample(&self) -> f64 {
        let (rate, unit_bytes) = self.rate();
        unit_bytes / rate
    }

    /// Bytes of a word in what users ask for, such as `16w`: 8 where sizes are given in bytes, since
    /// rates are per word of 8 bytes there.
    #[must_use]
    pub fn word_bytes(&self) -> f64 {
        if self.word_bytes > 1.0 {
            self.word_bytes
        } else {
            8.0
        }
    }

    /// Returns true if nothing is estimated: every block was recorded, or the source gives exact
    /// amounts.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.rate().0 >= 1.0
    }

    /// The estimate if no block was sampled: 0, with the upper bound of the 95 % interval.
    #[must_use]
    pub fn none_seen(&self) -> Estimate {
        let (rate, unit_bytes) = self.rate();
        let high = if self.is_exact() {
            0.0
        } else {
            // None of so many units is sampled with a probability of 5 %.
            unit_bytes * 0.05_f64.ln() / (-rate).ln_1p()
        };
        Estimate {
            value: 0.0,
            error: high,
            low: 0.0,
            high,
        }
    }

    /// The amount represented by a sampled block of `size` bytes without its header, hit `samples`
    /// times.
    ///
    /// ```
    /// use heapline_model::{Scheme, Space};
    /// use heapline_profile::{Estimator, Sampling};
    ///
    /// let sampling = Sampling::new(Scheme::PerUnit { rate: 1e-4, unit_bytes: 8 }, 8);
    /// let blocks = |size, space| {
    ///     sampling.amount(Estimator::HorvitzThompson, size, space, 1).blocks.value
    /// };
    /// // A small block is one of many.
    /// assert!(blocks(24, Space::Minor) > 2000.0);
    /// // A huge one stands for itself.
    /// assert!(blocks(8_000_000, Space::Major) < 1.0001);
    /// ```
    #[must_use]
    pub fn amount(&self, estimator: Estimator, size: u64, space: Space, samples: u64) -> Amount {
        let (rate, unit_bytes) = self.rate();
        // A block has a unit at least, or nobody could see it.
        let header = space.header_words() as f64 * self.word_bytes / unit_bytes;
        let units = ((size as f64 / unit_bytes).ceil() + header).max(1.0);
        let (bytes, blocks) = match (self.scheme, estimator) {
            (Scheme::Given, _) => (Sum::exact(size as f64), Sum::exact(samples as f64)),
            (_, Estimator::HorvitzThompson) => {
                // 1 - (1 - r)^S without losing the digits of a small r.
                let seen = if self.is_exact() {
                    1.0
                } else {
                    -(units * (-rate).ln_1p()).exp_m1()
                };
                // One hit or none, with probability `seen`.
                let sum = |unit: f64| Sum::of_hits(unit / seen, 1.0, seen);
                (sum(units * unit_bytes), sum(1.0))
            }
            (_, Estimator::Count) => {
                // Each unit is hit or not, with probability `rate`.
                let sum = |unit: f64| Sum::of_hits(unit, samples as f64, rate);
                (sum(unit_bytes / rate), sum(1.0 / (rate * units)))
            }
        };
        Amount {
            bytes,
            blocks,
            // Of one kind of block, one is a multiple of the other.
            covariance: (bytes.variance * blocks.variance).sqrt(),
            samples,
            sampled: 1,
        }
    }

    /// The amount represented by sampled blocks of the same size that were hit `samples` times together:
    /// the sum of what each stands for.
    #[must_use]
    pub fn merged_amount(
        &self,
        estimator: Estimator,
        size: u64,
        space: Space,
        samples: u64,
        blocks: u64,
    ) -> Amount {
        let amount = self.amount(estimator, size, space, samples);
        match (self.scheme, estimator) {
            // A block counts, whatever its samples.
            (Scheme::Exact | Scheme::PerUnit { .. }, Estimator::HorvitzThompson) => Amount {
                samples,
                ..amount.times(blocks)
            },
            _ => Amount {
                sampled: blocks,
                ..amount
            },
        }
    }

    /// The bytes of an amount, as they are known: where nothing was seen, there may be some.
    #[must_use]
    pub fn bytes(&self, amount: &Amount) -> Estimate {
        if amount.sampled == 0 {
            self.none_seen()
        } else {
            amount.bytes.estimate()
        }
    }

    /// The blocks of an amount; where none was seen, there may be some. A block has a unit at least.
    #[must_use]
    pub fn blocks(&self, amount: &Amount) -> Estimate {
        if amount.sampled == 0 {
            self.none_seen().per(self.rate().1)
        } else {
            amount.blocks.estimate()
        }
    }
}

/// An estimated sum, and the moments that its error follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The amount.
    pub value: f64,
    /// Its variance.
    pub variance: f64,
    /// The skewness of the sum, which makes the interval asymmetric if there are few samples: the
    /// sum of the third powers of the contributions of hits, weighted as explained in
    /// [`Sum::estimate`].
    pub skew: f64,
    /// How far the value is expected to be too high, because it was chosen as the largest of several: see
    /// `docs/statistics.md`, "The peak".
    pub overshoot: f64,
}

impl Sum {
    /// An amount that the source does not tell. All sums that it is part of are not known either.
    pub(crate) const UNTOLD: Self = Self::exact(f64::NAN);

    /// An amount that is known.
    const fn exact(value: f64) -> Self {
        Self {
            value,
            variance: 0.0,
            skew: 0.0,
            overshoot: 0.0,
        }
    }

    /// `hits` of a Bernoulli trial with probability `p`, each worth `unit`. The moments are
    /// divided by the probability that they are counted with, so they are unbiased as well.
    fn of_hits(unit: f64, hits: f64, p: f64) -> Self {
        let missed = hits * (1.0 - p);
        // See `estimate`: (3 z² (1 - p) - (z² - 1) (1 - 2 p)) / (2 z² + 1).
        let lean = 1.0 - p * (Z95 * Z95 + 2.0) / (2.0 * Z95 * Z95 + 1.0);
        Self {
            value: hits * unit,
            variance: missed * unit * unit,
            skew: missed * lean * unit * unit * unit,
            overshoot: 0.0,
        }
    }

    /// Scales the sum by a factor.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            variance: self.variance * factor * factor,
            skew: self.skew * factor * factor * factor,
            overshoot: self.overshoot * factor,
        }
    }

    /// The change from `before` to `self`, of which `both` is the part that is in either and
    /// cancels out.
    #[must_use]
    pub fn change(self, before: Self, both: Self) -> Self {
        Self {
            value: self.value - before.value,
            variance: (self.variance + before.variance - 2.0 * both.variance).max(0.0),
            skew: self.skew - before.skew,
            overshoot: self.overshoot - before.overshoot,
        }
    }

    /// The amount with its 95 % interval.
    ///
    /// An amount that came out too small also has too small an error, so the interval must reach
    /// further up than down. How much further is what Edgeworth's expansion of the error over its
    /// estimated size asks for: with V the variance, M the third central moment, and C the
    /// covariance of amount and estimated variance, the middle moves by
    /// (3 z² C - (z² - 1) M) / 6 V. A hit of worth u and probability p adds (1 - p)² u³ to the
    /// estimate of C, and (1 - p) (1 - 2 p) u³ to that of M.
    #[must_use]
    pub fn estimate(self) -> Estimate {
        self.estimate_at(Level::default())
    }

    /// The amount with its interval at another level than 95 %.
    pub(crate) fn estimate_at(self, Level(z): Level) -> Estimate {
        // How far the middle of a Poisson count's interval is from the count.
        let shift_of_one = (2.0 * z * z + 1.0) / 6.0;
        let variance = self.variance.max(0.0);
        let error = z * variance.sqrt();
        let shift = if variance > 0.0 {
            // No sum is more lopsided than a single sample of a small block: beyond that, with
            // blocks that are nearly certain to be seen, the expansion does not hold.
            let most = shift_of_one / z * error;
            (shift_of_one * self.skew / variance).clamp(-most, most)
        } else {
            0.0
        };
        let half = error.hypot(shift);
        // It reaches further down by what the value is too high, or up by what a change is too low.
        Estimate {
            value: self.value,
            error: error + self.overshoot.abs(),
            low: self.value + shift - half - self.overshoot.max(0.0),
            high: self.value + shift + half - self.overshoot.min(0.0),
        }
    }

    /// The estimate of a change. If it is not more than its error, its interval contains 0: the side
    /// on which less was seen, or nothing, may have had as much.
    #[must_use]
    pub fn estimate_of_change(self) -> Estimate {
        self.change_at(Level::default())
    }

    /// The estimate of a change with its interval at another level than 95 %.
    pub(crate) fn change_at(self, level: Level) -> Estimate {
        let mut estimate = self.estimate_at(level);
        if estimate.is_noise() {
            if estimate.low > 0.0 {
                estimate.low = estimate.value - estimate.error;
            }
            if estimate.high < 0.0 {
                estimate.high = estimate.value + estimate.error;
            }
        }
        estimate
    }
}

impl AddAssign for Sum {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.value += other.value;
        self.variance += other.variance;
        self.skew += other.skew;
        self.overshoot += other.overshoot;
    }
}

/// How often intervals contain the truth, as a number of standard errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level(f64);

impl Default for Level {
    fn default() -> Self {
        Self(Z95)
    }
}

impl Level {
    /// Intervals of so many rows that were chosen from among others because theirs are above zero: fewer of those chosen are
    /// wrong than of all, so that 95 % of them contain the truth. Benjamini and Yekutieli's rule.
    pub(crate) fn of_chosen(chosen: usize, among: usize) -> Self {
        if chosen == 0 || chosen >= among {
            return Self::default();
        }
        let outside = 0.05 * chosen as f64 / among as f64;
        let (mut low, mut high) = (Z95, 40.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if libm::erfc(middle / std::f64::consts::SQRT_2) > outside {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self(low)
    }

    /// The number of changes that are above zero, and the level at which they are: the most of which 95 % can be trusted.
    pub(crate) fn of_growing(changes: &[Sum]) -> Self {
        let mut chosen = changes.len();
        loop {
            let level = Self::of_chosen(chosen, changes.len());
            let left = changes
                .iter()
                .filter(|change| change.change_at(level).low > 0.0);
            let left = left.count();
            if left >= chosen {
                return level;
            }
            chosen = left;
        }
    }
}

/// How far the largest of many estimates is too high, as a multiple of its variance: what is a part of it, or varies with it, is too
/// high in proportion to its covariance with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overshoot(f64);

impl Overshoot {
    /// That of an amount which is too high by so much.
    pub(crate) fn new(amount: Sum, too_high: f64) -> Self {
        let is_uncertain = amount.variance > 0.0;
        Self(if is_uncertain {
            (too_high / amount.variance).max(0.0)
        } else {
            0.0
        })
    }
}

/// The amount represented by a set of sampled blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    /// Bytes, headers included.
    pub bytes: Sum,
    /// Blocks.
    pub blocks: Sum,
    /// The covariance of both.
    pub(crate) covariance: f64,
    /// Samples.
    pub samples: u64,
    /// Sampled blocks.
    pub sampled: u64,
}

impl Amount {
    /// The property that the source does not tell.
    pub(crate) const UNTOLD: Self = Self {
        bytes: Sum::UNTOLD,
        blocks: Sum::UNTOLD,
        covariance: 0.0,
        samples: 0,
        sampled: 1,
    };

    /// The amount represented by `n` blocks of the same kind.
    #[must_use]
    pub fn times(self, n: u64) -> Self {
        let times = |sum: Sum| Sum {
            value: sum.value * n as f64,
            variance: sum.variance * n as f64,
            skew: sum.skew * n as f64,
            overshoot: sum.overshoot * n as f64,
        };
        Self {
            bytes: times(self.bytes),
            blocks: times(self.blocks),
            covariance: self.covariance * n as f64,
            samples: self.samples.saturating_mul(n),
            sampled: self.sampled.saturating_mul(n),
        }
    }

    /// The amount at a moment that was chosen because most is alive then.
    #[must_use]
    pub(crate) fn chosen(self, Overshoot(per_variance): Overshoot) -> Self {
        let with = |sum: Sum, covariance: f64| Sum {
            overshoot: per_variance * covariance,
            ..sum
        };
        Self {
            bytes: with(self.bytes, self.bytes.variance),
            blocks: with(self.blocks, self.covariance),
            ..self
        }
    }

    /// Returns true if it contains no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sampled == 0
    }
}

impl AddAssign for Amount {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        self.covariance += other.covariance;
        self.samples = self.samples.wrapping_add(other.samples);
        self.sampled = self.sampled.saturating_add(other.sampled);
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub for Amount {
    type Output = Self;

    /// Takes away a part: what is left has the rest of the variance too. Sums made in different
    /// orders may differ in their last digits: what should be nothing is made nothing.
    fn sub(self, part: Self) -> Self {
        let left = |whole: f64, part: f64| {
            let left = whole - part;
            if left.abs() <= whole.abs() * 1e-12 {
                0.0
            } else {
                left
            }
        };
        let rest = |whole: Sum, part: Sum| Sum {
            value: left(whole.value, part.value),
            variance: left(whole.variance, part.variance).max(0.0),
            skew: left(whole.skew, part.skew),
            overshoot: left(whole.overshoot, part.overshoot),
        };
        Self {
            bytes: rest(self.bytes, part.bytes),
            blocks: rest(self.blocks, part.blocks),
            covariance: left(self.covariance, part.covariance).max(0.0),
            samples: self.samples.saturating_sub(part.samples),
            sampled: self.sampled.saturating_sub(part.sampled),
        }
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

/// An estimated amount and its error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Estimate {
    /// The amount.
    pub value: f64,
    /// 1.96 standard errors; 0 if the amount is exact.
    pub error: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// Its upper end. It is further away than the lower one where samples are few.
    pub high: f64,
}

impl Estimate {
    /// A number that is known.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self {
            value,
            error: 0.0,
            low: value,
            high: value,
        }
    }

    /// The estimate per unit of something.
    #[must_use]
    pub fn per(self, amount: f64) -> Self {
        Self {
            value: self.value / amount,
            error: self.error / amount,
            low: self.low / amount,
            high: self.high / amount,
        }
    }

    /// The standard error.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        self.error / Z95
    }

    /// Returns true if the error is as large as the amount, so that it is indistinguishable from 0.
    #[must_use]
    pub fn is_noise(&self) -> bool {
        self.error >= self.value.abs()
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these are exact")]
mod tests {
    use super::*;

    fn per_word(rate: f64) -> Sampling {
        let unit_bytes = 8;
        Sampling::new(Scheme::PerUnit { rate, unit_bytes }, unit_bytes)
    }

    /// Programs that count in bytes: no size is rounded up to a word.
    #[test]
    fn bytes_are_not_rounded_up_to_words() {
        let scheme = Scheme::PerUnit {
            rate: 1e-3,
            unit_bytes: 1,
        };
        let sampling = Sampling::new(scheme, 1);
        let amount = sampling.amount(Estimator::HorvitzThompson, 1, Space::Native, 1);
        assert!((amount.blocks.value - 1000.0).abs() < 1e-6, "{amount:?}");
        assert!((amount.bytes.value - 1000.0).abs() < 1e-6, "{amount:?}");
    }

    /// A source that gives the amounts itself has no errors that we know of.
    #[test]
    fn given_amounts_are_taken_as_they_are() {
        let sampling = Sampling::new(Scheme::Given, 8);
        let amount = sampling.amount(Estimator::HorvitzThompson, 120, Space::Major, 5);
        assert_eq!(amount.bytes.estimate(), Estimate::exact(120.0));
        assert_eq!(amount.blocks.estimate(), Estimate::exact(5.0));
    }

    const BOTH: [Estimator; 2] = [Estimator::HorvitzThompson, Estimator::Count];

    #[test]
    fn rate_one_is_exact() {
        for estimator in BOTH {
            // At rate 1 each word is hit, the header too.
            let amount = per_word(1.0).amount(estimator, 72, Space::Minor, 10);
            assert_eq!(amount.bytes.estimate(), Estimate::exact(80.0));
            assert_eq!(amount.blocks.estimate(), Estimate::exact(1.0));
        }
    }

    #[test]
    fn external_blocks_have_no_header() {
        let sampling = per_word(1.0);
        let bytes = |length: u64| {
            sampling
                .amount(Estimator::HorvitzThompson, 8 * length, Space::External, 1)
                .bytes
                .value
        };
        assert_eq!(bytes(10), 80.0);
        assert_eq!(bytes(0), 8.0);
    }

    #[test]
    fn nothing_seen_is_not_nothing_there() {
        let high = per_word(1e-3).none_seen().high;
        assert!((high / (3.0 * 8.0 / 1e-3) - 1.0).abs() < 0.01, "{high}");
        assert_eq!(per_word(1.0).none_seen().high, 0.0);
    }

    #[test]
    fn tiny_rates_keep_their_digits() {
        let amount = per_word(1e-12).amount(Estimator::HorvitzThompson, 24, Space::Minor, 1);
        assert!(
            (amount.blocks.value / (1e12 / 4.0) - 1.0).abs() < 1e-9,
            "{amount:?}"
        );
    }

    #[test]
    fn few_samples_have_the_interval_of_a_poisson_count() {
        let one = per_word(1e-6).amount(Estimator::Count, 8, Space::Minor, 1);
        let ten = one.times(10).bytes.estimate().per(8e6);
        // The mid-P interval of a count of 10 is 5.09 to 17.83.
        assert!((ten.low - 5.09).abs() < 0.05, "{ten:?}");
        assert!((ten.high - 17.83).abs() < 0.05, "{ten:?}");
        let one = one.bytes.estimate().per(8e6);
        assert!(one.low > 0.0 && one.high > 4.8, "{one:?}");
    }

    #[test]
    fn blocks_that_cannot_be_missed_are_certain() {
        let sampling = per_word(1e-3);
        let block = |words: u64| {
            sampling
                .amount(Estimator::HorvitzThompson, 8 * words, Space::External, 1)
                .bytes
                .estimate()
                .per(8.0 * words as f64)
        };
        let large = block(10_000);
        assert!(large.low > 0.99 && large.high < 1.03, "{large:?}");
        let huge = block(100_000);
        assert!(huge.low > 1.0 - 1e-9 && huge.high < 1.0 + 1e-9, "{huge:?}");
    }

    #[test]
    fn a_single_sample_is_no_change() {
        let one = per_word(1e-6).amount(Estimator::Count, 8, Space::Minor, 1);
        let none = Sum::default();
        let change = |n| one.times(n).bytes.change(none, none).estimate_of_change();
        assert!(change(1).low < 0.0);
        assert!(change(3).low < 0.0);
        assert!(change(4).low > 0.0);
    }

    #[test]
    fn an_amount_that_was_chosen_may_be_too_high_and_its_parts_in_proportion() {
        let one = per_word(1e-3).amount(Estimator::HorvitzThompson, 56, Space::Minor, 1);
        let (whole, part) = (one.times(100), one.times(30));
        let overshoot = Overshoot::new(whole.bytes, 5_000.0);
        let chosen = |amount: Amount| amount.chosen(overshoot).bytes.estimate();
        let plain = whole.bytes.estimate();
        assert_eq!(chosen(whole).low, plain.low - 5_000.0);
        assert_eq!(
            (chosen(whole).value, chosen(whole).high),
            (plain.value, plain.high)
        );
        assert_eq!(chosen(whole).error, plain.error + 5_000.0);
        let error = chosen(part).error - part.bytes.estimate().error;
        assert!((error - 1_500.0).abs() < 1e-6, "{error}");
        // Amounts that are not too high, or are exact, stay as they are.
        assert_eq!(one.chosen(Overshoot::new(one.bytes, -1.0)), one);
        assert_eq!(Overshoot::new(Sum::exact(1.0), 1.0), Overshoot::default());
    }

    #[test]
    fn parts_that_are_all_leave_nothing() {
        let one = per_word(1e-3).amount(Estimator::HorvitzThompson, 56, Space::Minor, 1);
        let whole = one.times(3) + one.times(4);
        assert_eq!(whole - one.times(7), Amount::default());
    }
}
