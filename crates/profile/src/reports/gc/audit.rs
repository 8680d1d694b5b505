//! A comparison of the samples with what the runtime counted.

use heapline_model::Space;
use serde::{Deserialize, Serialize};

use super::lane::LaneWork;
use super::ledger::{Completeness, CountedWords};
use super::words;
use crate::amount::Amount;
use crate::estimate::{Estimate, Level};
use crate::scope::Scope;

/// The number of standard errors from which a difference is not chance. Three amounts of each trace are compared: at 4, one of
/// 5000 traces is accused wrongly.
const LEVEL: Level = Level::of_standard_errors(4.0);

/// A difference that matters, as a share of the amount. The runtime allocates a little itself that the sampler does not see.
const LEAST_SHARE: f64 = 0.005;

/// Words allocated and promoted as the samples tell them, beside the exact ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GcAudit {
    /// Allocated on the minor heap.
    pub minor: AuditedQuantity,
    /// Allocated directly on the major heap.
    pub direct: AuditedQuantity,
    /// Promoted from the minor to the major heap; null if the trace does not tell promotions.
    pub promoted: Option<AuditedQuantity>,
    /// True if one of them disagrees.
    pub disagrees: bool,
}

/// An amount of memory as the runtime counted it, and as the samples tell it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct AuditedQuantity {
    /// Bytes that the runtime counted, headers included.
    pub counted: f64,
    /// The estimate from samples.
    pub sampled: Estimate,
    /// True if they differ by more than the error: by more than 4 standard errors, and by more than 0.5 %.
    pub disagrees: bool,
}

impl AuditedQuantity {
    /// `uncertain`: bytes that the runtime may have counted and the sampler cannot have seen.
    fn new(scope: &Scope<'_>, words: u64, amount: &Amount, uncertain: f64) -> Self {
        let sampling = scope.profile().sampling();
        let counted = words as f64 * sampling.word_bytes();
        let sampled = sampling.bytes(amount);
        let (low, high) = if amount.sampled == 0 {
            // As often as chance exceeds the level, that much is not seen.
            let unseen = LEVEL.outside().ln() / 0.05_f64.ln();
            (0.0, sampled.high * unseen)
        } else {
            let wide = amount.bytes.estimate_at(LEVEL);
            (wide.low, wide.high)
        };
        let margin = LEAST_SHARE * counted;
        let is_between = low - margin <= counted && counted - uncertain <= high + margin;
        Self {
            counted,
            sampled,
            disagrees: !is_between,
        }
    }
}

/// What the runtime counted in the whole run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) words: CountedWords,
    /// Words promoted by the first minor collections, some of which were allocated before the recording.
    first_promotion: u64,
}

impl Counted {
    /// `None` if that is not known, or not all of the run.
    pub(super) fn new(lanes: &[LaneWork], completeness: &Completeness) -> Option<Self> {
        let first = lanes.iter().map(|lane| lane.ledger.first_promotion());
        let counted = Self {
            words: words::sum(lanes)?,
            first_promotion: first.fold(0, u64::saturating_add),
        };
        completeness.is_whole.then_some(counted)
    }
}

/// The sampled blocks that were allocated in a space.
pub(super) fn allocated_in(scope: &Scope<'_>, space: Space) -> Amount {
    let profile = scope.profile();
    let kinds = profile.kinds().iter().zip(scope.weights());
    kinds
        .zip(profile.tallies())
        .filter(|((kind, _), _)| kind.space == space)
        .map(|((_, weight), tally)| weight.times(tally.blocks))
        .sum()
}

/// Compares what the runtime counted with the samples, if these are of the whole run.
pub(super) fn audit(scope: &Scope<'_>, counted: &Counted) -> Option<GcAudit> {
    let profile = scope.profile();
    let is_whole = scope.selection().is_all(profile)
        && profile.damage().count == 0
        && profile.gaps().is_empty()
        && profile.tells().sizes;
    if !is_whole {
        return None;
    }
    let promoted = || -> Amount {
        let kinds = scope.weights().iter().zip(profile.tallies());
        kinds
            .map(|(weight, tally)| weight.times(tally.promoted))
            .sum()
    };
    let words = &counted.words;
    let of = |words, space, uncertain| {
        AuditedQuantity::new(scope, words, &allocated_in(scope, space), uncertain)
    };
    let minor = of(words.minor, Space::Minor, 0.0);
    let direct = of(words.direct(), Space::Major, 0.0);
    // The first minor collection also promotes what was allocated before the recording.
    let before = counted.first_promotion as f64 * profile.sampling().word_bytes();
    let promoted = profile
        .tells()
        .promotions
        .then(|| AuditedQuantity::new(scope, words.promoted, &promoted(), before));
    Some(GcAudit {
        minor,
        direct,
        disagrees: minor.disagrees
            || direct.disagrees
            || promoted.is_some_and(|promoted| promoted.disagrees),
        promoted,
    })
}
