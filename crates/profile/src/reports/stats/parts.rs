//! Statistics of time slices: equal ones, and phases.

use serde::Serialize;

use super::super::Figures;
use super::Moments;
use crate::amount::Amount;
use crate::estimate::Estimate;
use crate::phases::phases;
use crate::scope::Scope;
use crate::store::Profile;
use crate::timeline::{self, Timeline};

/// Parts of the run among which phases are looked for.
const PHASE_PARTS: usize = 128;

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Segment {
    /// Seconds since the start.
    pub from: f64,
    /// Seconds since the start.
    pub to: f64,
    /// Memory allocated in this time.
    pub allocated: Figures,
    /// Bytes per second; null if no time passed.
    pub allocation_rate: Option<Estimate>,
    /// Mean words of a block, without the header; null if there are none.
    pub mean_size: Option<f64>,
    /// The standard deviation of that; null if there are none.
    pub sd_size: Option<f64>,
    /// Blocks of more than 256 words in percent of all; null if there are none.
    pub large_percent: Option<f64>,
    /// The promoted part of that memory, in percent of bytes; null if there is none, or if the
    /// source does not record promotions.
    pub promoted_percent: Option<f64>,
    /// Bytes alive at the end of the part.
    pub live_at_end: f64,
}

/// The ends of equal parts of the run, in microseconds.
fn equal_parts(profile: &Profile, parts: usize) -> Vec<u64> {
    let end = profile.micros(profile.end());
    (1..=parts)
        .map(|part| timeline::time(end, part, parts))
        .collect()
}

/// Sums for a time slice.
#[derive(Clone, Copy, Default)]
struct Part {
    allocated: Amount,
    sizes: Moments,
    /// Bytes of those that were promoted, be it later.
    promoted: f64,
    /// By how much the live bytes changed.
    live: f64,
}

impl Part {
    fn merge(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.sizes.merge(&other.sizes);
        self.promoted += other.promoted;
        self.live += other.live;
    }
}

/// Equal time slices of the run, and its phases, from one pass over the blocks: phases are unions
/// of equal slices.
pub(super) fn parts_of_run(scope: &Scope<'_>, segments: usize) -> (Vec<Segment>, Vec<Segment>) {
    let profile = scope.profile();
    let segment_ends = equal_parts(profile, segments);
    let fine_ends = equal_parts(profile, PHASE_PARTS);
    let mut ends = [&segment_ends[..], &fine_ends].concat();
    ends.sort_unstable();
    ends.dedup();
    let parts = parts(scope, &ends);

    let allocated: Vec<f64> = put_together(&ends, &parts, &fine_ends)
        .iter()
        .map(|part| part.allocated.bytes.value)
        .collect();
    let phase_ends: Vec<u64> = phases(&allocated)
        .into_iter()
        .map(|end| fine_ends[end - 1])
        .collect();
    let [segments, phases] = [segment_ends, phase_ends]
        .map(|coarse| described(profile, &put_together(&ends, &parts, &coarse), &coarse));
    (segments, phases)
}

/// The sums for the time slices that end at the given times, in order.
fn parts(scope: &Scope<'_>, ends: &[u64]) -> Vec<Part> {
    let profile = scope.profile();
    let moments = ends.iter().map(|&end| profile.after(end).0).collect();
    let timeline = Timeline::of_moments(moments, profile);
    scope.fold(
        || vec![Part::default(); ends.len()],
        |parts, stay| {
            let kind = profile.classes()[stay.class].kind;
            let weight = scope.weights()[kind];
            let part = &mut parts[timeline.slot(stay.start)];
            part.allocated += weight;
            part.sizes
                .add(profile.words(&profile.kinds()[kind]), weight);
            if stay.is_promoted() {
                part.promoted += weight.bytes.value;
            }
            part.live += weight.bytes.value;
            if stay.ends() {
                parts[timeline.slot(stay.end)].live -= weight.bytes.value;
            }
        },
        |parts, more| {
            for (part, more) in parts.iter_mut().zip(&more) {
                part.merge(more);
            }
        },
    )
}

/// Puts parts together that end at some times to fewer ones, which end at some of those times.
fn put_together(ends: &[u64], parts: &[Part], coarse: &[u64]) -> Vec<Part> {
    let mut together = vec![Part::default(); coarse.len()];
    let mut place = 0;
    for (end, part) in ends.iter().zip(parts) {
        while place + 1 < coarse.len() && coarse[place] < *end {
            place += 1;
        }
        together[place].merge(part);
    }
    together
}

/// The statistics of the time slices that end at the given times.
fn described(profile: &Profile, parts: &[Part], ends: &[u64]) -> Vec<Segment> {
    let promotes = profile.tells().promotions;
    let (mut from, mut alive) = (0.0, 0.0_f64);
    parts
        .iter()
        .zip(ends)
        .map(|(part, &end)| {
            let to = end as f64 / 1e6;
            let seconds = to - from;
            let bytes = part.allocated.bytes;
            alive += part.live;
            let segment = Segment {
                from,
                to,
                allocated: Figures::new(&part.allocated),
                allocation_rate: (seconds > 0.0).then(|| bytes.estimate().per(seconds)),
                mean_size: part.sizes.mean(),
                sd_size: part.sizes.variance().map(f64::sqrt),
                large_percent: part.sizes.percent(part.sizes.large),
                promoted_percent: (promotes && bytes.value > 0.0)
                    .then(|| 100.0 * part.promoted / bytes.value),
                live_at_end: alive.max(0.0),
            };
            from = to;
            segment
        })
        .collect()
}
