//! A trace in memory: columns of sampled blocks, the tree of their stacks, and the clock.

mod classes;
mod clock;
mod kinds;
mod loader;
mod names;
mod stack_worker;
mod stacks;
mod symbols;
mod tree_builder;

use std::sync::OnceLock;

use heapline_trace::{Damage, TraceInfo};
use serde::Serialize;

pub(crate) use classes::Class;
pub(crate) use clock::Clock;
pub use kinds::Kind;
pub use loader::{LoadError, LoadOptions, Loader};
pub(crate) use names::is_anonymous;
pub(crate) use stacks::{CallTree, Context, NONE, ROOT};
pub use symbols::{FrameInfo, Function, Symbols};

use crate::estimate::{Amount, Estimator, Sampling};
use crate::query::Query;
use crate::scope::Scope;

/// The event that never comes: the death of a block that outlives the trace.
pub(crate) const NEVER: u32 = u32::MAX;

/// A moment of the run: how many events have happened by then.
///
/// Events of all domains are put in the order of their times; those of the same microsecond stay
/// as the trace has them. What is alive at a moment is therefore beyond doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub(crate) u32);

/// A loaded trace, ready for questions.
///
/// It takes some 18 bytes a sampled block, and what the distinct stacks need.
#[derive(Debug)]
pub struct Profile {
    pub(crate) info: TraceInfo,
    pub(crate) damage: Damage,
    pub(crate) sampling: Sampling,
    pub(crate) blocks: Blocks,
    pub(crate) clock: Clock,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) classes: Vec<Class>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) tree: CallTree,
    pub(crate) symbols: Symbols,
    /// Stacks of which only a part was kept.
    pub(crate) shortened_stacks: u64,
    /// Promotions and collections of blocks that the trace does not have.
    pub(crate) unmatched: u64,
    pub(crate) peaks: [OnceLock<Peak>; 2],
}

/// One row a sampled block, in the order of the trace.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The number of the event that allocated it.
    pub(crate) birth: Vec<u32>,
    /// The event that promoted it, or [`NEVER`].
    pub(crate) promotion: Vec<u32>,
    /// The event that collected it, or [`NEVER`].
    pub(crate) death: Vec<u32>,
    /// Its kind and its stack.
    pub(crate) class: Vec<u32>,
}

/// When most was alive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// The moment.
    #[serde(skip)]
    pub moment: Moment,
    /// Seconds since the start of the trace.
    pub time: f64,
}

impl Profile {
    /// What the trace says of itself.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// What was found wrong with the trace.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// How the trace was sampled.
    #[must_use]
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The names in the trace.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Stacks of which only the outer part was kept, because there were too many different ones.
    #[must_use]
    pub fn shortened_stacks(&self) -> u64 {
        self.shortened_stacks
    }

    /// Promotions and collections of blocks that the trace does not have.
    #[must_use]
    pub fn unmatched_events(&self) -> u64 {
        self.unmatched
    }

    /// How many blocks were sampled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.birth.len()
    }

    /// Whether no block was sampled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Seconds from the start of the trace to its last event.
    #[must_use]
    pub fn duration(&self) -> f64 {
        self.micros(self.end()) as f64 / 1e6
    }

    /// The moment after the last event.
    #[must_use]
    pub fn end(&self) -> Moment {
        Moment(u32::try_from(self.clock.len()).unwrap_or(NEVER - 1))
    }

    /// The moment just before the first event at or after a time, in microseconds.
    #[must_use]
    pub fn before(&self, micros: u64) -> Moment {
        let events = self.clock.count_before(|time| time >= micros);
        Moment(u32::try_from(events).unwrap_or(NEVER - 1))
    }

    /// The moment just after the last event at or before a time, in microseconds.
    #[must_use]
    pub fn after(&self, micros: u64) -> Moment {
        let events = self.clock.count_before(|time| time > micros);
        Moment(u32::try_from(events).unwrap_or(NEVER - 1))
    }

    /// The time of the last event before a moment, in microseconds.
    #[must_use]
    pub fn micros(&self, moment: Moment) -> u64 {
        match moment.0 {
            0 => 0,
            n => self.clock.get(n as usize - 1),
        }
    }

    /// Seconds since the start of the trace.
    #[must_use]
    pub fn seconds(&self, moment: Moment) -> f64 {
        self.micros(moment) as f64 / 1e6
    }

    /// When most was alive: the first of the moments with the largest sum of bytes.
    #[must_use]
    pub fn peak(&self, estimator: Estimator) -> Peak {
        *self.peaks[estimator as usize]
            .get_or_init(|| self.peak_at(Scope::new(self, &Query::default(), estimator).peak()))
    }

    /// Notes when the peak is, if it is not known yet.
    fn set_peak(&self, estimator: Estimator, moment: Moment) {
        self.peaks[estimator as usize].get_or_init(|| self.peak_at(moment));
    }

    fn peak_at(&self, moment: Moment) -> Peak {
        Peak {
            moment,
            time: self.seconds(moment),
        }
    }

    /// What each kind of block stands for, by number.
    pub(crate) fn weights(&self, estimator: Estimator) -> Vec<Amount> {
        let kinds = self.kinds.iter();
        kinds
            .map(|kind| {
                let Kind { length, source, .. } = *kind;
                self.sampling
                    .amount(estimator, length, source, kind.samples)
            })
            .collect()
    }

    /// The kind of a block, by number.
    #[inline]
    pub(crate) fn kind_of(&self, block: usize) -> u32 {
        self.classes[self.blocks.class[block] as usize].kind
    }

    /// The frame of the allocation itself, or [`NONE`].
    pub(crate) fn site_frame(&self, context: u32) -> u32 {
        match self.contexts[context as usize].site {
            NONE => NONE,
            site => self.symbols.innermost(site),
        }
    }

    /// Bytes of memory that a block takes, on average, without the stacks.
    #[must_use]
    pub fn bytes_per_block(&self) -> f64 {
        let columns = 4 * size_of::<u32>();
        columns as f64 + self.clock.memory() as f64 / self.len().max(1) as f64
    }
}
