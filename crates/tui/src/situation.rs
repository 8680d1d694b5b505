//! The properties of the profile that the screen depends on.

use heapline_model::Capabilities;
use heapline_profile::query::TimePoint;
use heapline_profile::{Estimator, Profile};

use crate::moment::Moment;

/// The properties of the profile that the screen depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Situation {
    /// Counts the states of a trace that grows.
    pub epoch: u64,
    /// The program that was recorded.
    pub program: String,
    /// Microseconds that were recorded.
    pub duration: u64,
    /// The time of the peak, in microseconds.
    pub peak: u64,
    /// The times of the snapshots in microseconds, in order; empty for traces.
    pub snapshots: Vec<u64>,
    /// Sampled blocks.
    pub blocks: usize,
    /// True if the program is still being recorded.
    pub is_recording: bool,
    /// True if blocks that were allocated before the recording began are missing, because it began in a running program.
    pub is_attached: bool,
    /// Flaws found in the trace.
    pub flaws: u64,
    /// The properties that the source tells.
    pub tells: Capabilities,
    /// The moment to show first.
    pub first: Moment,
}

impl Situation {
    /// The properties of a profile.
    #[must_use]
    pub fn of(profile: &Profile, estimator: Estimator, epoch: u64, is_recording: bool) -> Self {
        let mut snapshots: Vec<u64> = profile
            .snapshots()
            .iter()
            .map(|&(moment, _)| profile.micros(moment))
            .collect();
        // Snapshots at the same time cannot be told apart by a time.
        snapshots.dedup();
        Self {
            epoch,
            program: profile.header().program.clone(),
            duration: profile.micros(profile.end()),
            peak: profile.micros(profile.peak(estimator).moment),
            snapshots,
            blocks: profile.len(),
            is_recording,
            is_attached: profile.header().attached_to().is_some(),
            flaws: profile.damage().count,
            tells: profile.tells(),
            first: Moment::Now,
        }
    }

    /// The situation, to be shown at a time first.
    #[must_use]
    pub fn starting_at(self, time: &TimePoint, profile: &Profile, estimator: Estimator) -> Self {
        let first = match time {
            TimePoint::Peak => Moment::Peak,
            time => Moment::at(time.micros(profile, estimator), &self),
        };
        Self { first, ..self }
    }

    /// The number of the last snapshot up to a time, from 0.
    #[must_use]
    pub fn snapshot(&self, micros: u64) -> Option<usize> {
        self.snapshots
            .partition_point(|&time| time <= micros)
            .checked_sub(1)
    }
}
