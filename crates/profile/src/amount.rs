//! The bytes and blocks that sampled blocks represent together.

use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, Sum};

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
    /// The largest number of blocks that were not sampled and that one sampled block represents.
    pub(crate) rarest: f64,
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
        rarest: 0.0,
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
            rarest: if n > 0 { self.rarest } else { 0.0 },
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

    /// The blocks with their 95 % interval, which takes smaller blocks into account than were seen.
    #[must_use]
    pub fn estimated_blocks(&self) -> Estimate {
        self.blocks.estimate_with_unseen(self.unseen_blocks())
    }

    /// The change of the blocks from `before` to `self`; see [`Sum::change`].
    #[must_use]
    pub fn change_of_blocks(&self, before: &Self, both: Sum) -> Estimate {
        let change = self.blocks.change(before.blocks, both);
        change.change_with_unseen(self.unseen_blocks(), before.unseen_blocks())
    }

    /// How many blocks a sample may stand for that is missing by chance: twice as many as one of those that were seen, since
    /// where sizes differ, there may be blocks of half the smallest size seen. None where all are of one size.
    fn unseen_blocks(&self) -> f64 {
        let mean = self.blocks.value / self.sampled as f64 - 1.0;
        let differ = if mean > 0.0 {
            (self.rarest / mean - 1.0).clamp(0.0, 1.0)
        } else {
            0.0
        };
        2.0 * self.rarest * differ
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
        self.rarest = self.rarest.max(other.rarest);
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
            rarest: if self.sampled > part.sampled {
                self.rarest
            } else {
                0.0
            },
            samples: self.samples.saturating_sub(part.samples),
            sampled: self.sampled.saturating_sub(part.sampled),
        }
    }
}

/// The difference of two sums, without what is left of rounding.
fn left(whole: f64, part: f64) -> f64 {
    let left = whole - part;
    if left.abs() <= whole.abs() * 1e-12 {
        0.0
    } else {
        left
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these are exact")]
mod tests {
    use heapline_model::Space;

    use super::*;
    use crate::sampling::Estimator;
    use crate::testing::per_word;

    #[test]
    fn an_amount_that_was_chosen_may_be_too_high_and_its_parts_in_proportion() {
        let one = per_word(1e-3).amount(Estimator::HorvitzThompson, 56, Space::Minor, 1);
        let (whole, part) = (one.times(100), one.times(30));
        let overshoot = Overshoot::new(whole.bytes, 5_000.0);
        let chosen = |amount: Amount| amount.chosen(overshoot).bytes.estimate();
        let plain = whole.bytes.estimate();
        assert_eq!(chosen(whole).value, plain.value);
        // It is half a standard error too high, so that the lower end has most of the 5 %.
        let down = plain.low - chosen(whole).low;
        assert!((2_100.0..2_200.0).contains(&down), "{down}");
        let up = plain.high - chosen(whole).high;
        assert!((up - 1_500.0).abs() < 1e-6, "{up}");
        let change = whole.bytes.change(Sum::default(), Sum::default());
        let change = Sum {
            overshoot: 5_000.0,
            ..change
        };
        assert_eq!(change.estimate_of_change().low, plain.low - 5_000.0);
        let of_part = part.chosen(overshoot).bytes.overshoot;
        assert!((of_part - 1_500.0).abs() < 1e-6, "{of_part}");
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
