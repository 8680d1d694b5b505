//! The work of the program's garbage collector.

use heapline_trace::{Collection, CollectionKind, CollectorCounters, Phase};

use crate::clock::Reading;
use crate::recorder::Recorder;

/// A piece of work of the garbage collector, or a reading of its counters.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// What was done.
    pub kind: CollectionKind,
    /// When it began.
    pub began: Reading,
    /// When it had ended: not before the last one of its domain.
    pub ended: Reading,
    /// The phase of the major collector when it began, if it is known.
    pub phase: Option<Phase>,
    /// The counters when it had ended, if they are known.
    pub counters: Option<CollectorCounters>,
}

impl Recorder {
    /// Takes note of work that the garbage collector did in a domain. It takes the place of no event, and is ignored when the
    /// recording has ended.
    pub fn collection(&self, domain: usize, work: &Work) {
        let Some(mut taken) = self.taken_lane(domain) else {
            return;
        };
        let clock = taken.clock;
        let [start, end] = [work.began, work.ended].map(|time| self.nanos_since_start(clock, time));
        self.work(&mut taken, |lane, sink| {
            let work = Collection {
                domain: u16::try_from(domain).unwrap_or(u16::MAX),
                kind: work.kind,
                start,
                length: end.saturating_sub(start),
                phase: work.phase,
                counters: work.counters,
            };
            lane.collections.push(&work, sink)
        });
        taken.give_back();
    }
}
