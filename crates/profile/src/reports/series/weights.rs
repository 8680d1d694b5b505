//! The memory by which groups are ranked, and by which branches are chosen.

use super::Measure;
use crate::groups::Groups;
use crate::scope::Scope;
use crate::store::{ContextId, IdVec};
use crate::timeline::Timeline;

/// Points in time at which live memory is looked at: a few tell well enough.
const POINTS: usize = 32;

/// The memory of each stack in a measure: what is live, at all times and at the peak, or the total.
pub(super) fn of_stacks(scope: &Scope<'_>, measure: Measure) -> IdVec<ContextId, f64> {
    if measure.is_live() {
        let live = live_of_stacks(scope);
        if live.iter().any(|&weight| weight > 0.0) {
            return live;
        }
    }
    let by_stack = if measure.is_promotion() {
        scope.promoted().by_stack()
    } else {
        scope.by_stack()
    };
    by_stack.iter().map(|amount| amount.bytes.value).collect()
}

/// The share of each stack in the live memory of all points in time, and in that of the peak: what is there at the peak only is a
/// small part of the picture, but the one that is looked at.
fn live_of_stacks(scope: &Scope<'_>) -> IdVec<ContextId, f64> {
    let at_peak = scope.at_own_peak().by_stack();
    let at_peak: IdVec<ContextId, f64> = at_peak.iter().map(|amount| amount.bytes.value).collect();
    let mut weights = live_at_points(scope);
    let [all_times, peak] = [&weights, &at_peak].map(|weights| weights.iter().sum::<f64>());
    for (weight, at_peak) in weights.iter_mut().zip(&at_peak) {
        *weight = *weight / all_times.max(1.0) + at_peak / peak.max(1.0);
    }
    weights
}

/// The live memory of each stack, summed over points in time.
fn live_at_points(scope: &Scope<'_>) -> IdVec<ContextId, f64> {
    let profile = scope.profile();
    let parts = Timeline::new(profile, POINTS);
    let classes = profile.classes().len();
    let points = scope.fold_large(
        classes * size_of::<u64>(),
        || vec![0_u64; classes],
        |points, stay| {
            let end = if stay.ends() {
                parts.slot(stay.end)
            } else {
                POINTS
            };
            points[stay.class.index()] += end.saturating_sub(parts.slot(stay.start)) as u64;
        },
        |all, part| {
            for (points, part) in all.iter_mut().zip(part) {
                *points += part;
            }
        },
    );
    let mut weights = IdVec::like(profile.contexts(), 0.0);
    for (class, points) in profile.classes().iter().zip(points) {
        weights[class.context] += scope.weights()[class.kind].bytes.value * points as f64;
    }
    weights
}

/// The size by which groups are ranked: the maximum of live memory, or the total. `None` for groups
/// without blocks.
pub(super) fn of_groups(scope: &Scope<'_>, measure: Measure, groups: &Groups) -> Vec<Option<f64>> {
    let profile = scope.profile();
    if !measure.is_live() {
        return groups
            .sums(scope)
            .iter()
            .map(|amount| (!amount.is_empty()).then_some(amount.bytes.value))
            .collect();
    }
    let parts = Timeline::new(profile, POINTS);
    let (changes, is_used) = scope.fold(
        || (vec![0.0; groups.len() * POINTS], vec![false; groups.len()]),
        |(changes, is_used), stay| {
            let group = groups.of(profile, stay) as usize;
            is_used[group] = true;
            let row = group * POINTS;
            let weight = scope.bytes(&stay);
            changes[row + parts.slot(stay.start)] += weight;
            if stay.ends() {
                changes[row + parts.slot(stay.end)] -= weight;
            }
        },
        |(changes, is_used), (more, more_used)| {
            for (change, more) in changes.iter_mut().zip(more) {
                *change += more;
            }
            for (is_used, more) in is_used.iter_mut().zip(more_used) {
                *is_used |= more;
            }
        },
    );
    changes
        .chunks(POINTS)
        .zip(is_used)
        .map(|(changes, is_used)| {
            let mut live = 0.0;
            let most = changes.iter().fold(0.0, |most: f64, change| {
                live += change;
                most.max(live)
            });
            is_used.then_some(most)
        })
        .collect()
}
