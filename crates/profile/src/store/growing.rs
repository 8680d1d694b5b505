//! A profile in the making: batches in, snapshots out.

use std::io;
use std::sync::Arc;

use heapline_model::{
    Batch, Birth, BlockIndex, Damage, Event, EventKind, Header, InputSize, Mark, Snapshot, Source,
};

use super::Moment;
use super::classes::ClassTable;
use super::clock::Clock;
use super::collections::Collections;
use super::ids::{ClassId, ContextId};
use super::kinds::{Kind, KindTable};
use super::lanes::LaneSet;
use super::live::Live;
use super::order::{self, LateEvents};
use super::profile::Unmatched;
use super::profile::{EventClock, Profile, Segment, Segments, Tables};
use super::read_ahead::for_each_batch;
use super::sealed::{MemoryLimit, Pending, Sealed};
use super::segment::{Column, Lives, SEGMENT};
use super::shared::Shared;
use super::stack_log::StackLog;
use super::stacks::StackReader;
use super::stored::{StoredClock, StoredSegments};
use super::tallies::Tallies;
use crate::sampling::{Estimator, Sampling};

/// Options of a [`Store`].
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreOptions {
    /// The stacks of recursive calls.
    pub recursion: Recursion,
}

/// The stacks of recursive calls: each function once, where it was first called, or every frame, of
/// which there can be many. See [`Scope::keep_recursion`](crate::Scope::keep_recursion).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recursion {
    /// Each function once.
    #[default]
    Collapse,
    /// Each function once, and every frame [if asked](Profile::with_recursion): what that takes is
    /// kept, some 10 bytes a block.
    OnDemand,
    /// Every frame, always.
    Keep,
}

/// A profile that grows.
///
/// ```
/// use heapline_model::{Batch, Birth, Damage, InputSize, LocationId, Space};
/// # use heapline_model::{Capabilities, Frame, Header, Runtime, Scheme};
/// use heapline_profile::{Store, StoreOptions};
///
/// # let header = Header {
/// #     format: "test", format_version: 1, runtime: Runtime::Native, program: "demo".into(),
/// #     host: String::new(), pid: 1, start_time: 0, seed: None, first_lane: 0, context: None, word_bytes: 1,
/// #     scheme: Scheme::Exact,
/// #     tells: Capabilities { lifetimes: true, promotions: false, gc_parameters: false, lanes: true,
/// #         sizes: true },
/// # };
/// let mut store = Store::new(header, StoreOptions::default());
/// let mut batch = Batch::default();
/// batch.define(LocationId(0), 0x40, [Frame { name: b"main", ..Frame::UNKNOWN }]);
/// let birth = Birth { size: 100, samples: 1, space: Space::Native, ..Birth::default() };
/// batch.birth(5, 0, 1, birth, [LocationId(0)].into_iter());
/// store.append(&batch);
/// batch.clear();
/// let first = store.snapshot(Damage::default(), InputSize::default());
///
/// batch.death(9, 0, 1);
/// store.append(&batch);
/// let second = store.snapshot(Damage::default(), InputSize::default());
/// assert_eq!((first.events(), second.events()), (1, 2));
/// assert!(first.epoch() < second.epoch());
/// ```
#[derive(Debug)]
pub struct Store {
    header: Arc<Header>,
    sampling: Sampling,
    epoch: u64,
    options: StoreOptions,
    limit: Option<MemoryLimit>,
    sealed: Option<Sealed>,
    /// Why sealing failed: what comes after that is lost.
    failure: Option<io::Error>,
    /// The number of segments that are sealed.
    first_segment: usize,
    /// Those that are not sealed.
    segments: Vec<GrowingSegment>,
    index: BlockIndex,
    clock: Shared<Clock>,
    kinds: KindTable,
    classes: ClassTable,
    stacks: StackReader,
    /// Empty: room for the contexts of a batch.
    contexts: Vec<ContextId>,
    log: Option<Shared<StackLog>>,
    live: Live,
    tallies: Tallies,
    lanes: LaneSet,
    /// Events about blocks that had not been allocated yet: with several lanes the source may have
    /// the allocation later.
    early: Vec<Early>,
    late: LateEvents,
    last_event_time: u64,
    unmatched: Unmatched,
    snapshots: Vec<(Moment, Snapshot)>,
    marks: Vec<Mark>,
    boundaries: Vec<u64>,
    gaps: Vec<(u64, u64)>,
    collections: Collections,
}

/// A segment in memory.
#[derive(Debug)]
pub(crate) struct GrowingSegment {
    pub(crate) lives: Shared<Lives>,
    /// The class of each block.
    pub(crate) class: Shared<Vec<ClassId>>,
}

/// An event about a block that had not been allocated yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Early {
    id: u64,
    pub(crate) event: u64,
    time: u64,
    column: Column,
}

impl Store {
    /// An empty store for a source that says this of itself.
    #[must_use]
    pub fn new(header: Header, options: StoreOptions) -> Self {
        Self {
            sampling: Sampling::new(header.scheme, header.word_bytes),
            header: Arc::new(header),
            epoch: 0,
            options,
            limit: None,
            sealed: None,
            failure: None,
            first_segment: 0,
            segments: Vec::new(),
            index: BlockIndex::default(),
            clock: Shared::default(),
            kinds: KindTable::default(),
            classes: ClassTable::default(),
            stacks: StackReader::new(options.recursion != Recursion::Keep),
            contexts: Vec::new(),
            log: (options.recursion == Recursion::OnDemand).then(Shared::default),
            live: Live::default(),
            tallies: Tallies::default(),
            lanes: LaneSet::default(),
            early: Vec::new(),
            late: LateEvents::default(),
            last_event_time: 0,
            unmatched: Unmatched::default(),
            snapshots: Vec::new(),
            marks: Vec::new(),
            boundaries: Vec::new(),
            gaps: Vec::new(),
            collections: Collections::default(),
        }
    }

    /// An empty store that puts into storages what does not fit in memory. It gives no snapshots.
    pub(super) fn limited(header: Header, options: StoreOptions, limit: MemoryLimit) -> Self {
        Self {
            limit: Some(limit),
            ..Self::new(header, options)
        }
    }

    /// Takes all events of a batch.
    pub fn append(&mut self, batch: &Batch) {
        let mut contexts = std::mem::take(&mut self.contexts);
        self.stacks.read(batch, &mut contexts);
        self.append_read(batch, &contexts);
        contexts.clear();
        self.contexts = contexts;
    }

    /// Takes all batches that a source has now. Returns false if there are none.
    pub fn extend(&mut self, source: &mut dyn Source) -> Result<bool, heapline_model::Error> {
        let mut stacks = self.take_stacks();
        let mut is_changed = false;
        let result = for_each_batch(source, &mut stacks, |batch, contexts| {
            is_changed = true;
            if self.failure.is_none() {
                self.append_read(batch, contexts);
                self.seal_if_large();
            }
        });
        self.stacks = stacks;
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        result.map(|()| is_changed)
    }

    /// Takes all events of a batch whose stacks have been looked up.
    fn append_read(&mut self, batch: &Batch, contexts: &[ContextId]) {
        let events_before = self.clock.get().len();
        let mut births = batch.births().iter().zip(contexts);
        for event in batch.events() {
            self.lanes.insert(event.lane);
            match event.kind {
                EventKind::Birth => {
                    if let Some((birth, &context)) = births.next() {
                        self.birth(event, birth, context);
                    }
                }
                EventKind::Promotion => self.change(event, Column::Promotion),
                EventKind::Death => self.change(event, Column::Death),
            }
        }
        if let Some(event) = batch.events().last() {
            self.last_event_time = event.time;
        }
        if let Some(log) = &mut self.log {
            log.get_mut().append(batch);
        }
        for &(events, snapshot) in batch.snapshots() {
            let moment = Moment(events_before + events as u64);
            self.snapshots.push((moment, snapshot));
        }
        self.marks.extend_from_slice(batch.marks());
        self.gaps.extend_from_slice(batch.gaps());
        self.collections.append(batch.collections());
        if !batch.boundaries().is_empty() {
            self.boundaries.extend_from_slice(batch.boundaries());
            // It may be at one of these only.
            self.live.forget_peak();
        }
    }

    #[inline]
    fn birth(&mut self, event: &Event, birth: &Birth, context: ContextId) {
        let kind = Kind {
            size: birth.size,
            samples: birth.samples,
            merged: birth.merged,
            space: birth.space,
            lane: event.lane,
            passed: birth.passed,
        };
        let kind = self.kinds.number(kind, |kind| {
            let amount = kind.amount(&self.sampling, Estimator::default());
            self.live.weights.push(amount.bytes.value);
            self.tallies.add_kind();
        });
        self.tallies.born(kind);
        let class = self.classes.number(context, kind);
        self.index.push(event.block);
        let event = self.tick(event.time);
        if !birth.passed {
            self.live.born(kind, event);
        }
        if self
            .segments
            .last()
            .is_none_or(|segment| segment.lives.get().is_full())
        {
            self.segments.push(GrowingSegment {
                lives: Shared::Owned(Lives::starting_at(event)),
                class: Shared::Owned(Vec::with_capacity(SEGMENT)),
            });
        }
        if let Some(segment) = self.segments.last_mut() {
            let lives = segment.lives.get_mut();
            lives.push(event);
            if birth.passed {
                // It ends where it begins, so it is never alive.
                let block = lives.len() - 1;
                lives.set(Column::Death, block, event);
                self.tallies.changed(kind, Column::Death, lives, block);
            }
            segment.class.get_mut().push(class);
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "the column is known where it is called"
    )]
    #[inline(always)]
    fn change(&mut self, event: &Event, column: Column) {
        let (id, time) = (event.block, event.time);
        let Some(block) = self.index.find(id) else {
            let event = self.tick(time);
            self.early.push(Early {
                id,
                event,
                time,
                column,
            });
            return;
        };
        let Some(number) = (block / SEGMENT).checked_sub(self.first_segment) else {
            self.change_sealed(block, time, column);
            return;
        };
        let segment = &mut self.segments[number];
        let lives = segment.lives.get_mut();
        // Clocks of lanes may disagree a little: nothing dies before it was born.
        let time = if time < self.late.latest() {
            let birth = lives.birth(block % SEGMENT);
            time.max(self.clock.get().get(birth))
        } else {
            time
        };
        let event = self.tick(time);
        let clock = self.clock.get();
        let segment = &mut self.segments[number];
        let lives = segment.lives.get_mut();
        if order::apply(lives, clock, block % SEGMENT, column, event) {
            let class = segment.class.get()[block % SEGMENT];
            let kind = self.classes.kind(class);
            self.tallies.changed(kind, column, lives, block % SEGMENT);
            if column == Column::Death {
                self.live.died(kind);
            }
        } else {
            self.unmatched.add(column);
        }
    }

    /// Gives an event its number.
    #[inline]
    fn tick(&mut self, time: u64) -> u64 {
        let clock = self.clock.get_mut();
        let time = self.late.note(time);
        clock.push(time);
        clock.len() - 1
    }

    /// Notes what happened to a block that is not in memory.
    #[cold]
    fn change_sealed(&mut self, block: usize, time: u64, column: Column) {
        let event = self.tick(time);
        if let Some(sealed) = &mut self.sealed {
            sealed.pending.push(Pending {
                block,
                column,
                event,
            });
        }
    }

    /// Seals the older half of the segments if they are too many for the memory.
    fn seal_if_large(&mut self) {
        let most = self
            .limit
            .as_ref()
            .map_or(usize::MAX, MemoryLimit::segments);
        let mut result = Ok(());
        if self.segments.len() >= most {
            result = self.seal(most / 2);
        }
        if let (Ok(()), Some(limit)) = (&result, &self.limit) {
            result = self.collections.spill(limit);
        }
        self.failure = result.err();
    }

    /// Seals the first segments.
    fn seal(&mut self, segments: usize) -> io::Result<()> {
        self.settle();
        // What only is known of blocks in memory is given up.
        self.live.forget_peak();
        self.log = None;
        let sealed = match (&mut self.sealed, &self.limit) {
            (Some(sealed), _) => sealed,
            (none, Some(limit)) => none.insert(Sealed::new(limit)?),
            (None, None) => return Ok(()),
        };
        let rest = self.segments.split_off(segments);
        let first = std::mem::replace(&mut self.segments, rest);
        self.first_segment += first.len();
        sealed.seal(first, &self.segments, self.clock.get_mut())?;
        self.late.seal(sealed.time);
        Ok(())
    }

    /// Applies events that came before the allocation of their block, if that has come since.
    fn adopt_early(&mut self) {
        let (first_segment, sealed) = (self.first_segment, &mut self.sealed);
        let (index, segments) = (&mut self.index, &mut self.segments);
        let (clock, late, unmatched) = (&self.clock, &mut self.late, &mut self.unmatched);
        let (classes, tallies) = (&self.classes, &mut self.tallies);
        self.early.retain(|early| {
            let Some(block) = index.find(early.id) else {
                return true;
            };
            // The source has the allocation later, and perhaps at a later time.
            late.reopen(early.time);
            let (column, event) = (early.column, early.event);
            let Some(number) = (block / SEGMENT).checked_sub(first_segment) else {
                if let Some(sealed) = sealed {
                    sealed.pending.push(Pending {
                        block,
                        column,
                        event,
                    });
                }
                return false;
            };
            let segment = &mut segments[number];
            let lives = segment.lives.get_mut();
            let clock = clock.get();
            let block = block % SEGMENT;
            if order::apply(lives, clock, block, column, event) {
                let kind = classes.kind(segment.class.get()[block]);
                tallies.changed(kind, column, lives, block);
            } else {
                unmatched.add(column);
            }
            false
        });
    }

    /// Puts events in the order of their times.
    fn settle(&mut self) {
        self.adopt_early();
        if let Some(from) = self.late.take() {
            let lives = self.segments.iter_mut().map(|segment| &mut segment.lives);
            let mut lives: Vec<&mut Shared<Lives>> = lives.collect();
            let pending = self
                .sealed
                .as_mut()
                .map_or(&mut [][..], |sealed| &mut sealed.pending);
            let clock = self.clock.get_mut();
            order::sort(clock, &mut lives, pending, &mut self.early, from);
            self.live.forget_peak();
        }
        self.epoch += 1;
    }

    /// Everything so far, to be asked questions. The store can grow on meanwhile.
    ///
    /// A snapshot shares what it can with the store and copies the rest: the call tree, and what the
    /// store changes afterwards.
    #[must_use]
    pub fn snapshot(&mut self, damage: Damage, size: InputSize) -> Profile {
        self.settle();
        let (stacks, symbols) = self.stacks.snapshot();
        let tables = Tables {
            kinds: self.kinds.kinds().clone(),
            classes: self.classes.classes().clone(),
            stacks,
            symbols,
        };
        let segments = self.segments.iter_mut().map(|segment| Segment {
            lives: segment.lives.share(),
            class: segment.class.share(),
            times: None,
        });
        let segments = Segments::Memory(segments.collect());
        let clock = EventClock::Memory(self.clock.share());
        self.profile(tables, (segments, clock), damage, size)
    }

    /// The stacks so far; the store is left with none.
    fn take_stacks(&mut self) -> StackReader {
        std::mem::replace(&mut self.stacks, StackReader::new(true))
    }

    /// The profile, now that nothing more will come.
    #[must_use]
    pub fn finish(mut self, damage: Damage, size: InputSize) -> Profile {
        self.settle();
        self.clock.get_mut().shrink();
        let tables = self.finish_tables();
        if let Some(last) = self.segments.last_mut() {
            last.lives.get_mut().shrink();
            last.class.get_mut().shrink_to_fit();
        }
        let segments = std::mem::take(&mut self.segments);
        let segments = segments.into_iter().map(|mut segment| Segment {
            lives: segment.lives.share(),
            class: segment.class.share(),
            times: None,
        });
        let segments = Segments::Memory(segments.collect());
        let clock = EventClock::Memory(self.clock.share());
        self.profile(tables, (segments, clock), damage, size)
    }

    /// The tables, when nothing more will come.
    fn finish_tables(&mut self) -> Tables {
        // Lookup tables are not needed any more, and take memory.
        self.index = BlockIndex::default();
        let classes = std::mem::take(&mut self.classes).finish();
        let (stacks, symbols) = self.take_stacks().finish();
        Tables {
            kinds: self.kinds.kinds().clone(),
            classes,
            stacks,
            symbols,
        }
    }

    /// The profile, now that nothing more will come, in memory if it fits.
    pub(super) fn finish_limited(mut self, damage: Damage, size: InputSize) -> io::Result<Profile> {
        if self.sealed.is_none() {
            return Ok(self.finish(damage, size));
        }
        self.seal(self.segments.len())?;
        let (Some(sealed), Some(limit)) = (self.sealed.take(), self.limit.take()) else {
            return Ok(self.finish(damage, size));
        };
        let events = self.clock.get().len();
        let tables = self.finish_tables();
        // Some changes were counted when they happened, and sealed later.
        let mut tallies = Tallies::of_kinds(tables.kinds.len());
        let columns = sealed.finish(
            tables.classes.len(),
            |column| self.unmatched.add(column),
            |segment| {
                let kind = |i: usize| tables.classes[segment.class[i]].kind;
                tallies.count(&segment.lives, kind);
            },
        )?;
        self.tallies = tallies;
        let storage = columns.storage;
        let clock = StoredClock::new(Arc::clone(&storage), columns.pages);
        let segments = StoredSegments::new(
            storage,
            columns.segments,
            tables.classes.len(),
            events,
            limit,
        );
        let columns = (
            Segments::Stored(segments),
            EventClock::Stored(Arc::new(clock)),
        );
        Ok(self.profile(tables, columns, damage, size))
    }

    fn profile(
        &mut self,
        tables: Tables,
        (segments, clock): (Segments, EventClock),
        damage: Damage,
        size: InputSize,
    ) -> Profile {
        let mut unmatched = self.unmatched;
        for early in &self.early {
            unmatched.add(early.column);
        }
        let profile = Profile::new(super::profile::Parts {
            epoch: self.epoch,
            header: Arc::clone(&self.header),
            damage,
            size,
            sampling: self.sampling,
            segments,
            clock,
            tables,
            log: self.log.as_mut().map(Shared::share),
            has_recursion: self.options.recursion == Recursion::Keep,
            lanes: self.lanes.to_vec(),
            last_event_time: self.last_event_time,
            moved: self.late.moved,
            unmatched,
            tallies: self.tallies.clone(),
            snapshots: self.snapshots.clone(),
            marks: self.marks.clone(),
            boundaries: self.boundaries.clone(),
            gaps: self.gaps.clone(),
            collections: self.collections.clone(),
        });
        if let Some(peak) = self.live.peak() {
            profile.set_peak(Estimator::default(), peak);
        }
        profile
    }
}
