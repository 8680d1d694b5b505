//! How far the peak of an estimated curve is above that of the true one.
//!
//! The moment with the largest estimate is one at which chance has added something. To see how much, the blocks are divided
//! at random into folds. Chance in a fold has no part in where the peak of all other blocks is, so what the fold has at that moment is
//! estimated without bias. The sum over the folds, each at the peak of the others, is that of the true curve at a moment that
//! is about as good: the difference to the peak is how far that is too high. See `docs/statistics.md`.

use crate::amount::{Amount, Overshoot};
use crate::peaks::Peaks;
use crate::scope::Scope;
use crate::selection::Stay;
use crate::store::{IdVec, KindId, Moment};

/// Folds of a division. With more, chance has more to say in where a peak is, and so in the result.
const FOLDS: u8 = 4;

/// Divisions, of which the result is the mean.
const DIVISIONS: u64 = 2;

/// Blocks that are certain to be sampled add nothing by chance, and are in no fold.
const CERTAIN: f64 = 0.1;

/// How far the estimate of a peak is too high.
pub(crate) fn overshoot(scope: &Scope<'_>, peaks: &Peaks<'_>, peak: Moment) -> Overshoot {
    if scope.profile().sampling().is_exact() {
        return Overshoot::default();
    }
    let weights = scope.weights().iter();
    let is_noisy: IdVec<KindId, bool> = weights.map(is_noisy).collect();
    let at_peak = scope.live_at(peak).total().bytes;
    let unbiased = (0..DIVISIONS).map(|division| {
        let fold_of = |stay: Stay| {
            let kind = scope.profile().classes()[stay.class].kind;
            if is_noisy[kind] {
                fold(stay.block, division)
            } else {
                u32::from(FOLDS)
            }
        };
        let moments = peaks.without_each(FOLDS.into(), fold_of);
        at_other_peaks(scope, &moments, fold_of)
    });
    let mean = unbiased.sum::<f64>() / DIVISIONS as f64;
    Overshoot::new(at_peak, at_peak.value - mean)
}

/// Returns true for blocks of which more than a few are not sampled.
fn is_noisy(weight: &Amount) -> bool {
    weight.bytes.variance > CERTAIN * weight.bytes.value.powi(2)
}

/// The fold of a block. Neighbours must not be in folds in turn, which would make all folds alike: so the number is mixed well.
fn fold(block: usize, division: u64) -> u32 {
    let mut number = block as u64 ^ (division + 1) << 56;
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        number = (number ^ number >> 33).wrapping_mul(factor);
    }
    u32::try_from((number >> 33) % u64::from(FOLDS)).unwrap_or_default()
}

/// The bytes of each fold at the peak of the others, together. Blocks that are in no fold count at each of these moments.
fn at_other_peaks(
    scope: &Scope<'_>,
    moments: &[Moment],
    fold_of: impl Fn(Stay) -> u32 + Sync,
) -> f64 {
    scope.fold(
        || 0.0,
        |sum, stay| match moments.get(fold_of(stay) as usize) {
            Some(&moment) => {
                if stay.is_live_at(moment) {
                    *sum += scope.bytes(&stay);
                }
            }
            None => {
                let live = moments.iter().filter(|&&at| stay.is_live_at(at)).count();
                *sum += scope.bytes(&stay) * live as f64 / moments.len() as f64;
            }
        },
        |sum, part| *sum += part,
    )
}
