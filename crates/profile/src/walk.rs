//! The run in the order of its events.

use crate::estimate::Estimator;
use crate::store::{Moment, NEVER, Profile};

/// The first moment at which most bytes are alive.
pub(crate) fn peak(profile: &Profile, estimator: Estimator) -> Moment {
    let weights: Vec<f64> = profile
        .weights(estimator)
        .iter()
        .map(|weight| weight.bytes.value)
        .collect();
    let blocks = &profile.blocks;
    let mut changes = vec![0.0; profile.clock.len()];
    for ((&birth, &death), &kind) in blocks.birth.iter().zip(&blocks.death).zip(&blocks.kind) {
        let weight = weights[kind as usize];
        changes[birth as usize] += weight;
        if death != NEVER {
            changes[death as usize] -= weight;
        }
    }
    let (mut live, mut most, mut peak) = (0.0, 0.0, 0);
    for (event, change) in (1..).zip(changes) {
        live += change;
        if live > most {
            (most, peak) = (live, event);
        }
    }
    Moment(peak)
}

/// Bytes allocated before each event.
pub(crate) fn allocated(profile: &Profile, estimator: Estimator) -> Vec<f64> {
    let weights = profile.weights(estimator);
    let mut sums = vec![0.0; profile.clock.len()];
    for (&birth, &kind) in profile.blocks.birth.iter().zip(&profile.blocks.kind) {
        sums[birth as usize] = weights[kind as usize].bytes.value;
    }
    let mut total = 0.0;
    for sum in &mut sums {
        total += std::mem::replace(sum, total);
    }
    sums
}
