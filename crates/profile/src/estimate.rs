//! Estimated sums and their 95 % intervals: see `docs/statistics.md`.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Two standard errors, near enough: 95 % of a normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

/// How much closer the upper end of the interval of a peak is, as a share of what the estimate is too high.
const NEARER: f64 = 0.3;

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
    pub(crate) const fn exact(value: f64) -> Self {
        Self {
            value,
            variance: 0.0,
            skew: 0.0,
            overshoot: 0.0,
        }
    }

    /// `hits` of a Bernoulli trial with probability `p`, each worth `unit`. The moments are
    /// divided by the probability that they are counted with, so they are unbiased as well.
    pub(crate) fn of_hits(unit: f64, hits: f64, p: f64) -> Self {
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
        let estimate = self.estimate_at(Level::default());
        if self.overshoot > 0.0 {
            self.estimate_of_largest(estimate)
        } else {
            estimate
        }
    }

    /// The interval of the largest of many estimates, which is hardly ever too low: its upper end is closer, and the lower end
    /// has what the upper one leaves of the 5 %.
    fn estimate_of_largest(self, estimate: Estimate) -> Estimate {
        let nearer = NEARER * self.overshoot;
        let standard_error = self.variance.sqrt();
        let level = Level::default().below((self.overshoot - nearer) / standard_error);
        Estimate {
            value: self.value,
            error: level.0 * standard_error + self.overshoot,
            low: self.interval(level).0 - self.overshoot,
            high: (estimate.high - nearer).max(self.value),
        }
    }

    /// The amount with its interval at another level than 95 %.
    pub(crate) fn estimate_at(self, level: Level) -> Estimate {
        let interval = self.interval(level);
        // It reaches further down by what the value is too high, or up by what a change is too low.
        Estimate {
            value: self.value,
            error: level.0 * self.variance.max(0.0).sqrt() + self.overshoot.abs(),
            low: interval.0 - self.overshoot.max(0.0),
            high: interval.1 - self.overshoot.min(0.0),
        }
    }

    fn interval(&self, Level(z): Level) -> (f64, f64) {
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
        (self.value + shift - half, self.value + shift + half)
    }

    /// The amount with its 95 % interval, where a sample that stands for so much may be missing. An end of the interval that is on
    /// its side reaches as far as if half of one were there.
    pub(crate) fn estimate_with_unseen(self, unseen: f64) -> Estimate {
        self.with_unseen(unseen, 0.0, Self::estimate)
    }

    /// The same of a change; what is missing may also be missing from what was subtracted.
    pub(crate) fn change_with_unseen(self, unseen: f64, unseen_before: f64) -> Estimate {
        let estimate = self.with_unseen(unseen, unseen_before, |sum| {
            sum.estimate_at(Level::default())
        });
        estimate.or_noise()
    }

    fn with_unseen(
        self,
        unseen: f64,
        unseen_before: f64,
        estimate: impl Fn(Self) -> Estimate,
    ) -> Estimate {
        let with_half = |more: f64, less: f64| {
            let sum = Self {
                variance: self.variance + 0.5 * (more.powi(2) + less.powi(2)),
                skew: self.skew + 0.5 * (more.powi(3) - less.powi(3)),
                ..self
            };
            estimate(sum)
        };
        Estimate {
            low: with_half(0.5 * unseen, unseen_before).low - 0.5 * unseen_before,
            high: with_half(unseen, 0.5 * unseen_before).high + 0.5 * unseen,
            ..estimate(self)
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
        self.estimate_at(level).or_noise()
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
        Self::with_outside(0.05 * chosen as f64 / among as f64)
    }

    /// That of so many standard errors.
    pub(crate) const fn of_standard_errors(errors: f64) -> Self {
        Self(errors)
    }

    /// The level whose intervals miss the truth so often, on either side.
    fn with_outside(outside: f64) -> Self {
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if Self(middle).outside() > outside {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self(low)
    }

    /// How often intervals miss the truth, on either side.
    pub(crate) fn outside(self) -> f64 {
        libm::erfc(self.0 / std::f64::consts::SQRT_2)
    }

    /// The level for the lower ends of intervals whose upper ends are so many standard errors further away than at this one, so
    /// that together they miss the truth as often.
    fn below(self, further: f64) -> Self {
        let above = 0.5 * Self(self.0 + further).outside();
        Self::with_outside(2.0 * (self.outside() - above))
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

/// An estimated amount and its error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Estimate {
    /// The amount.
    pub value: f64,
    /// 1.96 standard errors, and for the peak how far the value may be too high; 0 if the amount is exact.
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

    /// That of a change, whose interval contains 0 if it is not more than its error.
    pub(crate) fn or_noise(mut self) -> Self {
        if self.is_noise() {
            if self.low > 0.0 {
                self.low = self.value - self.error;
            }
            if self.high < 0.0 {
                self.high = self.value + self.error;
            }
        }
        self
    }

    /// Returns true if the error is as large as the amount, so that it is indistinguishable from 0.
    #[must_use]
    pub fn is_noise(&self) -> bool {
        self.error >= self.value.abs()
    }
}
