//! What a sampled block stands for.
//!
//! Each word that a program allocates is sampled with probability r, independently. A block of S
//! words (header included) is therefore sampled with probability p = 1 - (1 - r)^S, and each sampled
//! block represents 1/p blocks: the Horvitz-Thompson estimator. It is unbiased, and its
//! variance is estimated without bias by the sum of S² (1 - p) / p² over the sampled blocks.
//! See `docs/statistics.md`.

use clap::ValueEnum;
use heapline_model::{Scheme, Space};
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::estimate::{Estimate, Sum};

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
        let (bytes, blocks, missed) = match (self.scheme, estimator) {
            (Scheme::Given, _) => (Sum::exact(size as f64), Sum::exact(samples as f64), 0.0),
            (_, Estimator::HorvitzThompson) => {
                // 1 - (1 - r)^S without losing the digits of a small r.
                let seen = if self.is_exact() {
                    1.0
                } else {
                    -(units * (-rate).ln_1p()).exp_m1()
                };
                // One hit or none, with probability `seen`.
                let sum = |unit: f64| Sum::of_hits(unit / seen, 1.0, seen);
                (sum(units * unit_bytes), sum(1.0), (1.0 - seen) / seen)
            }
            (_, Estimator::Count) => {
                // Each unit is hit or not, with probability `rate`.
                let sum = |unit: f64| Sum::of_hits(unit, samples as f64, rate);
                let blocks = 1.0 / (rate * units);
                (sum(unit_bytes / rate), sum(blocks), blocks * (1.0 - rate))
            }
        };
        Amount {
            bytes,
            blocks,
            // Of one kind of block, one is a multiple of the other.
            covariance: (bytes.variance * blocks.variance).sqrt(),
            rarest: missed,
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
            amount.estimated_blocks()
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these are exact")]
mod tests {
    use super::*;
    use crate::testing::per_word;

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
}
