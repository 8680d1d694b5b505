//! The run in the order of its events.

use crate::estimate::Estimator;
use crate::scope::Scope;
use crate::store::{Moment, NEVER, Profile};

/// What happens to the blocks in scope, in the order of events. Events that are not about their
/// beginning or end are nothing.
fn changes(scope: &Scope<'_>) -> Vec<Change> {
    let profile = scope.profile();
    let mut changes = vec![Change(0); profile.clock.len()];
    scope.for_each(|stay| {
        let kind = profile.blocks.kind[stay.block];
        changes[stay.start as usize] = Change::birth(kind);
        if stay.end != NEVER {
            changes[stay.end as usize] = Change::death(kind);
        }
    });
    changes
}

/// A kind and a sign, in four bytes: the order of memory accesses matters more than anything
/// else here.
#[derive(Clone, Copy)]
struct Change(u32);

impl Change {
    const DEATH: u32 = 1 << 31;

    fn birth(kind: u32) -> Self {
        Self(kind + 1)
    }

    fn death(kind: u32) -> Self {
        Self((kind + 1) | Self::DEATH)
    }

    #[inline]
    fn of(self, weights: &[f64]) -> f64 {
        let weight = weights[(self.0 & !Self::DEATH) as usize];
        if self.0 & Self::DEATH == 0 {
            weight
        } else {
            -weight
        }
    }
}

/// The first moment at which most bytes of the blocks in scope are alive.
pub(crate) fn peak(scope: &Scope<'_>) -> Moment {
    // Nothing weighs nothing.
    let mut weights = vec![0.0];
    weights.extend(scope.weights().iter().map(|weight| weight.bytes.value));
    let (mut live, mut most, mut peak) = (0.0, 0.0, 0);
    for (event, change) in (1..).zip(changes(scope)) {
        live += change.of(&weights);
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
