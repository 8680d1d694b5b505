//! A change and its significance.

use serde::Serialize;

use crate::estimate::{Amount, Estimate, Estimator, Sum};
use crate::reports::Figures;
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

/// One side of a comparison, or the blocks on both.
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

impl Change {
    pub(super) fn new([before, after, both]: &[Side; 3], scale: f64) -> Self {
        let fourth = scale.powi(4) * (after.fourth - both.fourth)
            + (before.fourth - both.fourth)
            + (scale - 1.0).powi(4) * both.fourth;
        let (before, after, both_sides) = (&before.amount, &after.amount, &both.amount);
        let scaled = |amount: &Amount| Amount {
            bytes: amount.bytes.scaled(scale),
            blocks: amount.blocks.scaled(scale),
            ..*amount
        };
        let after = scaled(after);
        // What is in both was scaled once, not twice.
        let both = |sum: Sum| Sum {
            variance: sum.variance * scale,
            ..sum
        };
        let shared = (both(both_sides.bytes), both(both_sides.blocks));
        let bytes = after.bytes.change(before.bytes, shared.0);
        Self {
            before: Figures::new(before),
            after: Figures::new(&after),
            bytes: bytes.estimate_of_change(),
            blocks: after
                .blocks
                .change(before.blocks, shared.1)
                .estimate_of_change(),
            percent: (before.bytes.value > 0.0).then(|| 100.0 * bytes.value / before.bytes.value),
            p_value: p_value(bytes, fourth.max(0.0)),
            is_real: false,
        }
    }
}

/// The probability of a change at least as large if there is none.
///
/// Sums of few parts have longer tails than a normal distribution: that a single block of ten
/// megabytes was missed on one side is less rare than it is many standard errors. The change is
/// taken for the difference of two Poisson counts that has the same variance, and the same fourth
/// moment; Lugannani and Rice's approximation gives its tail. For many samples this is the normal
/// distribution.
fn p_value(change: Sum, fourth: f64) -> f64 {
    if change.value == 0.0 {
        return 1.0;
    }
    if change.variance <= 0.0 {
        return 0.0;
    }
    // What one of the counts is worth, how many there are, and how many more on one side.
    let unit = (fourth / change.variance).sqrt();
    let count = (change.variance / unit.powi(2)).max(f64::MIN_POSITIVE);
    let more = change.value.abs() / unit;
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
