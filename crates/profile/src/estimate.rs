//! From samples to amounts.
//!
//! Each word that a program allocates is sampled with probability r, independently. A block of S
//! words (header included) is therefore seen with probability p = 1 - (1 - r)^S, and each block
//! that was seen stands for 1/p like it: the Horvitz-Thompson estimator. It is unbiased, and its
//! variance is estimated without bias by the sum of S² (1 - p) / p² over the blocks seen.

use heapline_trace::Source;
use serde::Serialize;

/// How a trace was sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    rate: f64,
    word_bytes: f64,
}

/// What one sampled block stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// Bytes, headers included.
    pub bytes: f64,
    /// The variance of `bytes`.
    pub bytes_variance: f64,
    /// Blocks like it.
    pub blocks: f64,
    /// The variance of `blocks`.
    pub blocks_variance: f64,
}

impl Sampling {
    /// Sampling at a rate per word, of words with so many bytes.
    #[must_use]
    pub fn new(rate: f64, word_bytes: u64) -> Self {
        Self {
            rate,
            word_bytes: word_bytes as f64,
        }
    }

    /// The mean number of bytes from one sample to the next.
    #[must_use]
    pub fn bytes_per_sample(&self) -> f64 {
        self.word_bytes / self.rate
    }

    /// Whether every block was recorded, so that there is nothing to estimate.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.rate >= 1.0
    }

    /// What is known where no block was seen: with 95 % probability not more was allocated than
    /// the error says.
    #[must_use]
    pub fn none_seen(&self) -> Estimate {
        let error = if self.is_exact() {
            0.0
        } else {
            // None of so many words is sampled with a probability of 5 %.
            self.word_bytes * 0.05_f64.ln() / (-self.rate).ln_1p()
        };
        Estimate { value: 0.0, error }
    }

    /// What a sampled block of `length` words stands for.
    ///
    /// ```
    /// use heapline_profile::Sampling;
    /// use heapline_trace::Source;
    ///
    /// let sampling = Sampling::new(1e-4, 8);
    /// // A small block is one of many.
    /// assert!(sampling.weight(3, Source::Minor).blocks > 2000.0);
    /// // A huge one stands for itself.
    /// assert!(sampling.weight(1_000_000, Source::Major).blocks < 1.0001);
    /// ```
    #[must_use]
    pub fn weight(&self, length: u64, source: Source) -> Weight {
        let header = u64::from(source != Source::External);
        let words = length.saturating_add(header).max(1) as f64;
        // 1 - (1 - r)^S without losing the digits of a small r.
        let seen = if self.is_exact() {
            1.0
        } else {
            -(words * (-self.rate).ln_1p()).exp_m1()
        };
        let bytes = words * self.word_bytes;
        let blocks_variance = (1.0 - seen) / (seen * seen);
        Weight {
            bytes: bytes / seen,
            bytes_variance: bytes * bytes * blocks_variance,
            blocks: 1.0 / seen,
            blocks_variance,
        }
    }
}

/// An estimated amount and its error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The amount.
    pub value: f64,
    /// Half the width of the 95 % interval around it; 0 if the amount is exact.
    pub error: f64,
}

impl Estimate {
    /// Two standard errors, near enough: 95 % of a normal distribution.
    const Z95: f64 = 1.959_963_984_540_054;

    /// An amount of known variance.
    #[must_use]
    pub fn new(value: f64, variance: f64) -> Self {
        Self {
            value,
            error: Self::Z95 * variance.max(0.0).sqrt(),
        }
    }

    /// The same per unit of something.
    #[must_use]
    pub fn per(self, amount: f64) -> Self {
        Self {
            value: self.value / amount,
            error: self.error / amount,
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these are exact")]
mod tests {
    use super::*;

    #[test]
    fn rate_one_is_exact() {
        let weight = Sampling::new(1.0, 8).weight(9, Source::Minor);
        assert_eq!((weight.bytes, weight.bytes_variance), (80.0, 0.0));
        assert_eq!((weight.blocks, weight.blocks_variance), (1.0, 0.0));
    }

    #[test]
    fn external_blocks_have_no_header() {
        let sampling = Sampling::new(1.0, 8);
        assert_eq!(sampling.weight(10, Source::External).bytes, 80.0);
        assert_eq!(sampling.weight(0, Source::External).bytes, 8.0);
    }

    #[test]
    fn nothing_seen_is_not_nothing_there() {
        let error = Sampling::new(1e-3, 8).none_seen().error;
        assert!((error / (3.0 * 8.0 / 1e-3) - 1.0).abs() < 0.01, "{error}");
        assert_eq!(Sampling::new(1.0, 8).none_seen().error, 0.0);
    }

    #[test]
    fn tiny_rates_keep_their_digits() {
        let weight = Sampling::new(1e-12, 8).weight(3, Source::Minor);
        assert!(
            (weight.blocks / (1e12 / 4.0) - 1.0).abs() < 1e-9,
            "{weight:?}"
        );
    }
}
