//! A change and its significance.

use serde::Serialize;

use super::sides::SCOPES;
use crate::amount::{Amount, Overshoot};
use crate::estimate::{Estimate, Sum};
use crate::reports::Figures;
use crate::sampling::Estimator;
use crate::scope::Scope;
use crate::store::{IdVec, KindId};

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Change {
    /// Before.
    pub before: Figures,
    /// After, scaled.
    pub after: Figures,
    /// Bytes after minus bytes before.
    pub bytes: Estimate,
    /// Blocks after minus blocks before.
    pub blocks: Estimate,
    /// The change of bytes in percent of before; null if there was nothing.
    pub percent: Option<f64>,
    /// The probability of a change of bytes at least this large if nothing changed.
    pub p_value: f64,
    /// True if the change is significant, at a false discovery rate of 5 %.
    pub is_real: bool,
}

/// One side of a comparison.
#[derive(Clone, Copy, Default)]
pub(super) struct Side {
    pub(super) amount: Amount,
    /// The sum of fourth powers: see [`p_value`].
    pub(super) fourth: f64,
}

impl Side {
    pub(super) fn add(&mut self, other: &Self) {
        self.amount += other.amount;
        self.fourth += other.fourth;
    }
}

/// Both sides of a comparison.
#[derive(Clone, Copy, Default)]
pub(super) struct Sides {
    pub(super) before: Side,
    pub(super) after: Side,
    /// The blocks on both sides.
    pub(super) both: Side,
    /// For peaks: before, at the moment of the peak after.
    pub(super) before_elsewhere: Side,
    /// For peaks: after, at the moment of the peak before.
    pub(super) after_elsewhere: Side,
}

impl Sides {
    /// Adds up sides of which there are as many blocks as `counts` says, in the order of [`Comparison::scopes`].
    ///
    /// [`Comparison::scopes`]: super::Comparison::scopes
    pub(super) fn of(counts: [u32; SCOPES], side: impl Fn(u32) -> Side) -> Self {
        let [before, after, both, before_elsewhere, after_elsewhere] = counts.map(side);
        // Those moments were not chosen because most is alive then.
        let plain = |side: Side| Side {
            amount: side.amount.chosen(Overshoot::default()),
            ..side
        };
        Self {
            before,
            after,
            both,
            before_elsewhere: plain(before_elsewhere),
            after_elsewhere: plain(after_elsewhere),
        }
    }

    /// The side of one of [`Comparison::scopes`].
    ///
    /// [`Comparison::scopes`]: super::Comparison::scopes
    pub(super) fn side(&mut self, number: usize) -> &mut Side {
        match number {
            0 => &mut self.before,
            1 => &mut self.after,
            2 => &mut self.both,
            3 => &mut self.before_elsewhere,
            _ => &mut self.after_elsewhere,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.before.add(&other.before);
        self.after.add(&other.after);
        self.both.add(&other.both);
        self.before_elsewhere.add(&other.before_elsewhere);
        self.after_elsewhere.add(&other.after_elsewhere);
    }
}

impl Change {
    pub(super) fn new(sides: &Sides, scale: f64) -> Self {
        let (before, after) = (&sides.before.amount, &sides.after.amount);
        let after = Amount {
            bytes: after.bytes.scaled(scale),
            blocks: after.blocks.scaled(scale),
            rarest: after.rarest * scale,
            ..*after
        };
        // What is in both was scaled once, not twice.
        let shared = |sum: Sum| Sum {
            variance: sum.variance * scale,
            ..sum
        };
        let both = &sides.both.amount;
        let bytes = after.bytes.change(before.bytes, shared(both.bytes));
        Self {
            before: Figures::new(before),
            after: Figures::new(&after),
            bytes: bytes.estimate_of_change(),
            blocks: after.change_of_blocks(before, shared(both.blocks)),
            percent: (before.bytes.value > 0.0).then(|| 100.0 * bytes.value / before.bytes.value),
            p_value: p_value(
                bytes,
                fourth(&sides.before, &sides.after, &sides.both, scale),
            ),
            is_real: false,
        }
    }

    /// The change of a part of what is live at the peaks of two traces. If the memory is nearly as large for a while, chance decides
    /// where in it the peaks are, and parts differ because moments do. A change must be one at either of the moments in both
    /// traces too.
    pub(super) fn of_peaks(sides: &Sides, scale: f64) -> Self {
        let p_at = |before: &Side, after: &Side| {
            let scaled = after.amount.bytes.scaled(scale);
            let change = scaled.change(before.amount.bytes, Sum::default());
            p_value(change, fourth(before, after, &Side::default(), scale))
        };
        let p_before = p_at(&sides.before, &sides.after_elsewhere);
        let p_after = p_at(&sides.before_elsewhere, &sides.after);
        let change = Self::new(sides, scale);
        Self {
            p_value: change.p_value.max((2.0 * p_before.min(p_after)).min(1.0)),
            ..change
        }
    }
}

/// The fourth moment of a change: see [`p_value`].
fn fourth(before: &Side, after: &Side, both: &Side, scale: f64) -> f64 {
    let after = scale.powi(4) * (after.fourth - both.fourth);
    let shared = (scale - 1.0).powi(4) * both.fourth;
    (after + (before.fourth - both.fourth) + shared).max(0.0)
}

/// The probability of a change at least as large if there is none.
///
/// Sums of few parts have longer tails than a normal distribution: that a single block of ten
/// megabytes was missed on one side is less rare than it is many standard errors. The change is
/// taken for the difference of two Poisson counts that has the same variance, and the same fourth
/// moment; Lugannani and Rice's approximation gives its tail. For many samples this is the normal
/// distribution.
fn p_value(change: Sum, fourth: f64) -> f64 {
    // What peaks are too high is no change.
    let value = change.value - change.overshoot;
    if value == 0.0 {
        return 1.0;
    }
    if change.variance <= 0.0 {
        return 0.0;
    }
    // What one of the counts is worth, how many there are, and how many more on one side.
    let unit = (fourth / change.variance).sqrt();
    let count = (change.variance / unit.powi(2)).max(f64::MIN_POSITIVE);
    let more = value.abs() / unit;
    // The saddlepoint of the difference, and its variance when tilted that far.
    let tilt = (more / count).asinh();
    let spread = count.hypot(more);
    let deviance = (2.0 * (more * tilt - (spread - count))).max(0.0).sqrt();
    let slope = -(-tilt).exp_m1() * spread.sqrt();
    if deviance < 1e-6 || slope <= 0.0 {
        return 1.0;
    }
    let z = deviance + (slope / deviance).ln() / deviance;
    libm::erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The fourth power of what a block of each kind is worth: see [`p_value`].
pub(super) fn fourth_powers(scope: &Scope<'_>) -> IdVec<KindId, f64> {
    let weights = scope.weights().iter();
    let fourth = weights.map(|weight| {
        let hits = match scope.estimator() {
            Estimator::HorvitzThompson => 1.0,
            Estimator::Count => weight.samples.max(1) as f64,
        };
        weight.bytes.variance * (weight.bytes.value / hits).powi(2)
    });
    fourth.collect()
}

/// Marks significant changes, and counts them. Benjamini and Hochberg's rule: among hundreds of changes, some would
/// seem to be there by chance.
pub(super) fn mark_real(changes: &mut [&mut Change]) -> usize {
    const FALSE_ONES: f64 = 0.05;
    changes.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
    let n = changes.len() as f64;
    let real = (1_u32..)
        .zip(changes.iter())
        .filter(|(rank, change)| change.p_value <= FALSE_ONES * f64::from(*rank) / n)
        .map(|(rank, _)| rank as usize)
        .last()
        .unwrap_or(0);
    for change in &mut changes[..real] {
        change.is_real = true;
    }
    real
}
