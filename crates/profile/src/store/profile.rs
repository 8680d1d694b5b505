//! A snapshot of a store: columns of sampled blocks, the tree of their stacks, and the clock.

use std::io;
use std::sync::{Arc, OnceLock};

use heapline_model::{Capabilities, Damage, Header, InputSize, LocationId, Mark, Snapshot, Space};
use serde::{Deserialize, Serialize};

use super::classes::{Class, ClassTable};
use super::clock::Clock;
use super::collections::Collections;
use super::ids::{ClassId, ContextId, FrameId, Id, IdVec, KindId};
use super::kinds::Kind;
use super::memo::Memo;
use super::segment::{Column, Lives};
use super::stack_log::StackLog;
use super::stacks::{self, CallTree, Context, Stacks};
use super::stored::{Storage, StoredClock, StoredSegments, Times, Zone};
use super::symbols::Symbols;
use super::tallies::{Tallies, Tally};
use super::{Moment, Peak};
use crate::amount::{Amount, Overshoot};
use crate::sampling::{Estimator, Sampling};

/// A profile, ready for questions: what a [`Store`](crate::Store) held at some moment.
///
/// It takes some 18 bytes a sampled block, and what the distinct stacks need.
#[derive(Debug)]
pub struct Profile {
    parts: Parts,
    len: usize,
    peaks: [OnceLock<Peak>; 2],
    overshoots: [OnceLock<Overshoot>; 2],
    /// The profile with every frame of recursive calls.
    with_recursion: OnceLock<Box<Profile>>,
    memo: Memo,
}

/// The parts of a profile.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) epoch: u64,
    pub(super) header: Arc<Header>,
    pub(super) damage: Damage,
    pub(super) size: InputSize,
    pub(super) sampling: Sampling,
    pub(super) segments: Segments,
    pub(super) clock: EventClock,
    pub(super) tables: Tables,
    pub(super) log: Option<Arc<StackLog>>,
    /// True if stacks have every frame of recursive calls.
    pub(super) has_recursion: bool,
    pub(super) lanes: Vec<u16>,
    pub(super) last_event_time: u64,
    pub(super) moved: u64,
    pub(super) unmatched: Unmatched,
    pub(super) tallies: Tallies,
    pub(super) snapshots: Vec<(Moment, Snapshot)>,
    pub(super) marks: Vec<Mark>,
    pub(super) boundaries: Vec<u64>,
    pub(super) gaps: Vec<(u64, u64)>,
    pub(super) collections: Collections,
}

/// Lookup tables that blocks share: kinds, classes, stacks, symbols.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) kinds: IdVec<KindId, Kind>,
    pub(super) classes: IdVec<ClassId, Class>,
    pub(super) stacks: Stacks,
    pub(super) symbols: Arc<Symbols>,
}

/// Blocks that follow each other in the source.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) lives: Arc<Lives>,
    /// The class of each block.
    pub(crate) class: Arc<Vec<ClassId>>,
    /// The times of its events, if it was stored: those of others are in the clock.
    pub(crate) times: Option<Arc<Times>>,
}

/// All blocks, in memory or not.
#[derive(Debug)]
pub(super) enum Segments {
    Memory(Vec<Segment>),
    Stored(StoredSegments),
}

impl Segments {
    /// The number of blocks.
    fn blocks(&self) -> usize {
        match self {
            Self::Memory(segments) => segments.iter().map(|segment| segment.lives.len()).sum(),
            Self::Stored(stored) => {
                let entries = stored.entries().iter();
                entries.map(|entry| entry.blocks as usize).sum()
            }
        }
    }
}

/// The times of all events, in memory or not.
#[derive(Clone, Debug)]
pub(super) enum EventClock {
    Memory(Arc<Clock>),
    Stored(Arc<StoredClock>),
}

impl EventClock {
    #[inline]
    fn len(&self) -> u64 {
        match self {
            Self::Memory(clock) => clock.len(),
            Self::Stored(clock) => clock.len(),
        }
    }

    #[inline]
    fn get(&self, event: u64) -> u64 {
        match self {
            Self::Memory(clock) => clock.get(event),
            Self::Stored(clock) => clock.get(event),
        }
    }

    fn count_before(&self, after: impl Fn(u64) -> bool) -> u64 {
        match self {
            Self::Memory(clock) => clock.count_before(after),
            Self::Stored(clock) => clock.count_before(after),
        }
    }
}

/// Events about blocks that the source does not have, or that cannot be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unmatched {
    pub(crate) promotions: u64,
    pub(crate) deaths: u64,
}

impl Unmatched {
    pub(super) fn add(&mut self, column: Column) {
        match column {
            Column::Promotion => self.promotions += 1,
            _ => self.deaths += 1,
        }
    }
}

impl Profile {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            len: parts.segments.blocks(),
            parts,
            peaks: Default::default(),
            overshoots: Default::default(),
            with_recursion: OnceLock::new(),
            memo: Memo::default(),
        }
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Results that reports keep for the next one.
    pub(crate) fn memo(&self) -> &Memo {
        &self.memo
    }

    /// Which of the store's snapshots this is: a number that grows.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.parts.epoch
    }

    /// The header of the source.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.parts.header
    }

    /// The damage of the source.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.parts.damage
    }

    /// How much was read of the source.
    #[must_use]
    pub fn input_size(&self) -> InputSize {
        self.parts.size
    }

    /// How the program was sampled.
    #[must_use]
    pub fn sampling(&self) -> &Sampling {
        &self.parts.sampling
    }

    /// The names in the profile.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.parts.tables.symbols
    }

    /// The properties that the source tells. Only a program with a minor heap promotes: where there is no block on
    /// it, as in traces of Rust programs, there is nothing to tell of promotions.
    #[must_use]
    pub fn tells(&self) -> Capabilities {
        let mut kinds = self.kinds().iter();
        let has_minor_heap = self.is_empty() || kinds.any(|kind| kind.space == Space::Minor);
        let tells = self.header().tells;
        Capabilities {
            promotions: tells.promotions && has_minor_heap,
            ..tells
        }
    }

    /// The moments at which the source counted what was alive, in order. Empty if it tells what
    /// happened in between.
    #[must_use]
    pub fn snapshots(&self) -> &[(Moment, Snapshot)] {
        &self.parts.snapshots
    }

    /// The events that the program noted, in order.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.parts.marks
    }

    /// The ends of the intervals whose events the source has summed up, in microseconds since the start:
    /// within an interval only sums and means are known. Empty if every event is there.
    #[must_use]
    pub fn boundaries(&self) -> &[u64] {
        &self.parts.boundaries
    }

    /// The times in which no new blocks were recorded, from and to, in microseconds since the start.
    #[must_use]
    pub fn gaps(&self) -> &[(u64, u64)] {
        &self.parts.gaps
    }

    /// The work of the garbage collector. Empty if the source does not tell it.
    #[must_use]
    pub fn collections(&self) -> &Collections {
        &self.parts.collections
    }

    /// Stacks of which only the outer part was kept, because there were too many different ones.
    #[must_use]
    pub fn shortened_stacks(&self) -> u64 {
        self.parts.tables.stacks.shortened
    }

    /// Promotions and deaths of blocks that the source does not have.
    #[must_use]
    pub fn unmatched_events(&self) -> u64 {
        self.parts.unmatched.promotions + self.parts.unmatched.deaths
    }

    /// Events that came so late that they could not be put in order within the [`MemoryLimit`](crate::MemoryLimit): they are
    /// at a later time than they should be.
    #[must_use]
    pub fn moved_events(&self) -> u64 {
        self.parts.moved
    }

    pub(crate) fn unmatched(&self) -> Unmatched {
        self.parts.unmatched
    }

    /// How many blocks were sampled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no block was sampled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many events there are.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.parts.clock.len()
    }

    /// The lanes (domains or threads) that events came from, in order.
    #[must_use]
    pub fn lanes(&self) -> &[u16] {
        &self.parts.lanes
    }

    /// The time of the last event in the order of the source, in microseconds.
    pub(crate) fn last_event_time(&self) -> u64 {
        self.parts.last_event_time
    }

    /// Seconds from the start to the last event.
    #[must_use]
    pub fn duration(&self) -> f64 {
        self.micros(self.end()) as f64 / 1e6
    }

    /// The moment after the last event.
    #[must_use]
    pub fn end(&self) -> Moment {
        Moment(self.parts.clock.len())
    }

    /// The moment just before the first event at or after a time, in microseconds. Within an interval that
    /// is summed up, where nothing is known of moments: its start.
    #[must_use]
    pub fn before(&self, micros: u64) -> Moment {
        let micros = self.known_time(micros).unwrap_or(micros);
        Moment(self.parts.clock.count_before(|time| time >= micros))
    }

    /// The moment just after the last event at or before a time, in microseconds. Within an interval that
    /// is summed up: its start.
    #[must_use]
    pub fn after(&self, micros: u64) -> Moment {
        match self.known_time(micros) {
            Some(start) => self.before(start),
            None => Moment(self.parts.clock.count_before(|time| time > micros)),
        }
    }

    /// The start of the interval that a time is in, if that is summed up.
    fn known_time(&self, micros: u64) -> Option<u64> {
        let ends = self.boundaries();
        let number = ends.partition_point(|&end| end <= micros);
        let start = number.checked_sub(1).map_or(0, |before| ends[before]);
        (number < ends.len()).then_some(start)
    }

    /// The moments at the boundaries of intervals that are summed up. Until the last one, nothing is known
    /// of others.
    pub(crate) fn known_moments(&self) -> Vec<Moment> {
        let ends = self.boundaries().iter();
        ends.map(|&end| self.before(end)).collect()
    }

    /// The time of the last event before a moment, in microseconds.
    #[must_use]
    pub fn micros(&self, moment: Moment) -> u64 {
        match moment.0 {
            0 => 0,
            n => self.parts.clock.get(n - 1),
        }
    }

    /// Seconds since the start.
    #[must_use]
    pub fn seconds(&self, moment: Moment) -> f64 {
        self.micros(moment) as f64 / 1e6
    }

    /// Tells why data could not be read from the file it is in, if that happened: reports are wrong then. Profiles in memory never
    /// fail.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        let of_segments = match &self.parts.segments {
            Segments::Memory(_) => None,
            Segments::Stored(stored) => stored.failure(),
        };
        let of_clock = || match &self.parts.clock {
            EventClock::Memory(_) => None,
            EventClock::Stored(clock) => clock.failure(),
        };
        let of_collections = || self.parts.collections.failure();
        of_segments.or_else(of_clock).or_else(of_collections)
    }

    /// Notes that data of the profile cannot be read or written.
    pub(crate) fn fail(&self, error: &io::Error) {
        if let Segments::Stored(stored) = &self.parts.segments {
            stored.fail(error);
        }
    }

    /// A storage for data as large as the profile, if that does not fit in memory.
    pub(crate) fn create_storage(&self) -> Option<io::Result<Arc<dyn Storage>>> {
        match &self.parts.segments {
            Segments::Memory(_) => None,
            Segments::Stored(stored) => Some((stored.limit().create)()),
        }
    }

    /// Bytes that a report may use for tables that it could do with fewer of: about as many as the blocks in memory take.
    pub(crate) fn report_memory(&self) -> usize {
        /// Enough for the tables of small profiles, on every core.
        const LEAST: usize = 64 << 20;
        match &self.parts.segments {
            Segments::Memory(_) => LEAST + self.len * 32,
            Segments::Stored(stored) => stored.limit().share(4).max(LEAST),
        }
    }

    /// Returns true if blocks are read from a file as they are needed.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        matches!(self.parts.segments, Segments::Stored(_))
    }

    /// The time of an event, in microseconds; that of the last one for events that never come. For the events of a block,
    /// [`Segment::times`] is faster if it has them.
    #[inline]
    pub(crate) fn time(&self, event: u64) -> u64 {
        let clock = &self.parts.clock;
        clock.get(event.min(clock.len().saturating_sub(1)))
    }

    /// When most was alive: the first of the moments with the largest sum of bytes. `find` looks for
    /// it if it is not known.
    pub(crate) fn peak_or(&self, estimator: Estimator, find: impl FnOnce() -> Moment) -> Peak {
        *self.peaks[estimator as usize].get_or_init(|| self.peak_at(find()))
    }

    /// How far the estimate of the peak is too high. `find` looks for it if it is not known.
    pub(crate) fn overshoot_or(
        &self,
        estimator: Estimator,
        find: impl FnOnce() -> Overshoot,
    ) -> Overshoot {
        *self.overshoots[estimator as usize].get_or_init(find)
    }

    /// Notes how far that is.
    pub(super) fn set_overshoot(&self, estimator: Estimator, overshoot: Overshoot) {
        self.overshoots[estimator as usize].get_or_init(|| overshoot);
    }

    /// Notes when the peak is.
    pub(super) fn set_peak(&self, estimator: Estimator, moment: Moment) {
        self.peaks[estimator as usize].get_or_init(|| self.peak_at(moment));
    }

    fn peak_at(&self, moment: Moment) -> Peak {
        Peak {
            moment,
            time: self.seconds(moment),
        }
    }

    /// The number of segments: pieces of [`SEGMENT`](super::SEGMENT) blocks.
    pub(crate) fn segment_count(&self) -> usize {
        match &self.parts.segments {
            Segments::Memory(segments) => segments.len(),
            Segments::Stored(stored) => stored.entries().len(),
        }
    }

    /// A segment.
    pub(crate) fn segment(&self, number: usize) -> Segment {
        match &self.parts.segments {
            Segments::Memory(segments) => segments[number].clone(),
            Segments::Stored(stored) => stored.get(number),
        }
    }

    /// The events of a segment, as far as they are known without reading it.
    pub(crate) fn zone(&self, number: usize) -> Zone {
        match &self.parts.segments {
            Segments::Memory(_) => Zone::ANY,
            Segments::Stored(stored) => stored.entries()[number].zone,
        }
    }

    pub(crate) fn kinds(&self) -> &IdVec<KindId, Kind> {
        &self.parts.tables.kinds
    }

    /// Births, promotions and deaths of the blocks of each kind.
    pub(crate) fn tallies(&self) -> &IdVec<KindId, Tally> {
        self.parts.tallies.by_kind()
    }

    /// The size of a block in words, without the header; in bytes where the program has no words.
    #[inline]
    pub(crate) fn words(&self, kind: &Kind) -> u64 {
        kind.size / self.header().word_bytes.max(1)
    }

    #[inline]
    pub(crate) fn classes(&self) -> &IdVec<ClassId, Class> {
        &self.parts.tables.classes
    }

    pub(crate) fn contexts(&self) -> &IdVec<ContextId, Context> {
        &self.parts.tables.stacks.contexts
    }

    pub(crate) fn tree(&self) -> &CallTree {
        &self.parts.tables.stacks.tree
    }

    /// The weight of each kind of block.
    pub(crate) fn weights(&self, estimator: Estimator) -> IdVec<KindId, Amount> {
        let kinds = self.kinds().iter();
        kinds
            .map(|kind| kind.amount(self.sampling(), estimator))
            .collect()
    }

    /// The frame of the allocation itself, if it is known.
    pub(crate) fn site_frame(&self, context: ContextId) -> Option<FrameId> {
        let site = self.contexts()[context].site;
        (site != LocationId::NONE).then(|| self.symbols().innermost(site))
    }

    /// Bytes of memory that a block takes, on average, without the stacks.
    #[must_use]
    pub fn bytes_per_block(&self) -> f64 {
        let columns = 4 * size_of::<u32>();
        match &self.parts.clock {
            EventClock::Memory(clock) => {
                columns as f64 + clock.memory() as f64 / self.len().max(1) as f64
            }
            EventClock::Stored(_) => 0.0,
        }
    }

    /// The profile with every frame of recursive calls in its stacks. It is built when it is
    /// first asked for; the profile itself if the store did not keep what that takes.
    #[must_use]
    pub fn with_recursion(&self) -> &Self {
        match &self.parts.log {
            None => self,
            Some(log) => self
                .with_recursion
                .get_or_init(|| Box::new(self.expanded(log))),
        }
    }

    /// Returns true if the frames of recursive calls are not known, because they took too much memory, or an index does not have them.
    #[must_use]
    pub fn lacks_recursion(&self) -> bool {
        self.is_stored() && !self.parts.has_recursion
    }

    fn expanded(&self, log: &StackLog) -> Self {
        let symbols = Arc::clone(&self.parts.tables.symbols);
        let (stacks, contexts) = stacks::with_recursion(log, &symbols);
        let mut table = ClassTable::default();
        let mut rest = &contexts[..];
        let segments = (0..self.segment_count()).map(|number| {
            let segment = self.segment(number);
            let (now, later) = rest.split_at(segment.class.len().min(rest.len()));
            rest = later;
            let class = segment
                .class
                .iter()
                .zip(now)
                .map(|(&class, &context)| table.number(context, self.classes()[class].kind));
            Segment {
                class: Arc::new(class.collect()),
                lives: segment.lives,
                times: segment.times,
            }
        });
        let segments = Segments::Memory(segments.collect());
        let expanded = Self::new(Parts {
            header: Arc::clone(&self.parts.header),
            damage: self.parts.damage.clone(),
            segments,
            clock: self.parts.clock.clone(),
            tables: Tables {
                kinds: self.kinds().clone(),
                classes: table.finish(),
                stacks,
                symbols,
            },
            log: None,
            has_recursion: true,
            lanes: self.parts.lanes.clone(),
            tallies: self.parts.tallies.clone(),
            snapshots: self.parts.snapshots.clone(),
            marks: self.parts.marks.clone(),
            boundaries: self.parts.boundaries.clone(),
            gaps: self.parts.gaps.clone(),
            collections: self.parts.collections.clone(),
            ..self.parts
        });
        for (peak, known) in expanded.peaks.iter().zip(&self.peaks) {
            if let Some(known) = known.get() {
                peak.get_or_init(|| *known);
            }
        }
        for (overshoot, known) in expanded.overshoots.iter().zip(&self.overshoots) {
            if let Some(known) = known.get() {
                overshoot.get_or_init(|| *known);
            }
        }
        expanded
    }
}
