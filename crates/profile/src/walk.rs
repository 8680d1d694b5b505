//! The run in the order of its events.

use crate::estimate::{Amount, Estimator};
use crate::store::{Moment, NEVER, Profile};

/// What happens to some blocks, in the order of events. Events that are not about their beginning
/// or end are nothing.
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    /// Nothing happens in so many events.
    pub(crate) fn new(events: usize) -> Self {
        Self(vec![Change(0); events])
    }

    /// A block of a kind is there from an event to before another one, or [`NEVER`].
    #[inline]
    pub(crate) fn add(&mut self, kind: u32, start: u32, end: u32) {
        self.0[start as usize] = Change::birth(kind);
        if end != NEVER {
            self.0[end as usize] = Change::death(kind);
        }
    }

    /// The first moment at which most bytes are alive, given what kinds stand for.
    pub(crate) fn peak(&self, weights: &[Amount]) -> Moment {
        // Nothing weighs nothing.
        let mut bytes = vec![0.0];
        bytes.extend(weights.iter().map(|weight| weight.bytes.value));
        let (mut live, mut most, mut peak) = (0.0, 0.0, 0);
        for (event, change) in (1..).zip(&self.0) {
            live += change.of(&bytes);
            if live > most {
                (most, peak) = (live, event);
            }
        }
        Moment(peak)
    }
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

/// Bytes allocated before each event.
pub(crate) fn allocated(profile: &Profile, estimator: Estimator) -> Vec<f64> {
    let weights = profile.weights(estimator);
    let mut sums = vec![0.0; profile.clock.len()];
    for (block, &birth) in profile.blocks.birth.iter().enumerate() {
        sums[birth as usize] = weights[profile.kind_of(block) as usize].bytes.value;
    }
    let mut total = 0.0;
    for sum in &mut sums {
        total += std::mem::replace(sum, total);
    }
    sums
}
