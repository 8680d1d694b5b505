//! A profile in the making: batches in, snapshots out.

use std::sync::Arc;

use heapline_model::{
    Batch, Birth, BlockIndex, Damage, Event, EventKind, Header, InputSize, Mark, Snapshot, Source,
};

use super::Moment;
use super::classes::ClassTable;
use super::clock::Clock;
use super::ids::{ClassId, ContextId};
use super::kinds::{Kind, KindTable};
use super::lanes::LaneSet;
use super::live::Live;
use super::order::{self, LateEvents};
use super::profile::Unmatched;
use super::profile::{Profile, Segment, Tables};
use super::read_ahead::for_each_batch;
use super::segment::{Column, Lives, SEGMENT};
use super::shared::Shared;
use super::stack_log::StackLog;
use super::stacks::StackReader;
use super::tallies::Tallies;
use crate::estimate::{Estimator, Sampling};

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
/// #     host: String::new(), pid: 1, start_time: 0, first_lane: 0, context: None, word_bytes: 1,
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
}

#[derive(Debug)]
struct GrowingSegment {
    lives: Shared<Lives>,
    /// The class of each block.
    class: Shared<Vec<ClassId>>,
}

#[derive(Clone, Copy, Debug)]
struct Early {
    id: u64,
    event: u64,
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
            self.append_read(batch, contexts);
        });
        self.stacks = stacks;
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
            self.early.push(Early { id, event, column });
            return;
        };
        let segment = &mut self.segments[block / SEGMENT];
        let lives = segment.lives.get_mut();
        // Clocks of lanes may disagree a little: nothing dies before it was born.
        let time = if time < self.late.latest() {
            let birth = lives.birth(block % SEGMENT);
            time.max(self.clock.get().get(birth))
        } else {
            time
        };
        let clock = self.clock.get_mut();
        let event = clock.len();
        self.late.note(time);
        clock.push(time);
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
        self.late.note(time);
        clock.push(time);
        clock.len() - 1
    }

    /// Applies events that came before the allocation of their block, if that has come since.
    fn adopt_early(&mut self) {
        let (index, segments) = (&mut self.index, &mut self.segments);
        let (clock, late, unmatched) = (&self.clock, &mut self.late, &mut self.unmatched);
        let (classes, tallies) = (&self.classes, &mut self.tallies);
        self.early.retain(|early| {
            let Some(block) = index.find(early.id) else {
                return true;
            };
            let segment = &mut segments[block / SEGMENT];
            let lives = segment.lives.get_mut();
            let clock = clock.get();
            let block = block % SEGMENT;
            if order::apply(lives, clock, block, early.column, early.event) {
                let kind = classes.kind(segment.class.get()[block]);
                tallies.changed(kind, early.column, lives, block);
            } else {
                unmatched.add(early.column);
            }
            // The source has the allocation later, and perhaps at a later time.
            late.reopen(clock.get(early.event));
            false
        });
    }

    /// Puts events in the order of their times.
    fn settle(&mut self) {
        self.adopt_early();
        if let Some(from) = self.late.take() {
            let lives = self.segments.iter_mut().map(|segment| &mut segment.lives);
            let mut lives: Vec<&mut Shared<Lives>> = lives.collect();
            order::sort(self.clock.get_mut(), &mut lives, from);
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
        });
        let segments = segments.collect();
        self.profile(tables, segments, damage, size)
    }

    /// The stacks so far; the store is left with none.
    fn take_stacks(&mut self) -> StackReader {
        std::mem::replace(&mut self.stacks, StackReader::new(true))
    }

    /// The profile, now that nothing more will come.
    #[must_use]
    pub fn finish(mut self, damage: Damage, size: InputSize) -> Profile {
        self.settle();
        // Lookup tables are not needed any more, and take memory.
        self.index = BlockIndex::default();
        self.clock.get_mut().shrink();
        let classes = std::mem::take(&mut self.classes).finish();
        let (stacks, symbols) = self.take_stacks().finish();
        let tables = Tables {
            kinds: self.kinds.kinds().clone(),
            classes,
            stacks,
            symbols,
        };
        if let Some(last) = self.segments.last_mut() {
            last.lives.get_mut().shrink();
            last.class.get_mut().shrink_to_fit();
        }
        let segments = std::mem::take(&mut self.segments);
        let segments = segments.into_iter().map(|mut segment| Segment {
            lives: segment.lives.share(),
            class: segment.class.share(),
        });
        let segments = segments.collect();
        self.profile(tables, segments, damage, size)
    }

    fn profile(
        &mut self,
        tables: Tables,
        segments: Vec<Segment>,
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
            clock: self.clock.share(),
            tables,
            log: self.log.as_mut().map(Shared::share),
            lanes: self.lanes.to_vec(),
            last_event_time: self.last_event_time,
            unmatched,
            tallies: self.tallies.clone(),
            snapshots: self.snapshots.clone(),
            marks: self.marks.clone(),
            boundaries: self.boundaries.clone(),
            gaps: self.gaps.clone(),
        });
        if let Some(peak) = self.live.peak() {
            profile.set_peak(Estimator::default(), peak);
        }
        profile
    }
}

impl Profile {
    /// Loads everything that a source has.
    pub fn load(
        source: &mut dyn Source,
        options: StoreOptions,
    ) -> Result<Self, heapline_model::Error> {
        let mut store = Store::new(source.header().clone(), options);
        store.extend(source)?;
        Ok(store.finish(source.damage(), source.size()))
    }
}
