//! The part of a store that is no longer in memory.
//!
//! When there are too many segments for the memory that a store may use, the older ones are *sealed*: written to a storage. What
//! happens to their blocks later is collected in a log, and applied when everything has been read.
//!
//! Events up to the last birth in a sealed segment have their final numbers. An event that comes later, but happened before that,
//! is moved to the moment of the sealing: that takes a lane whose events come millions of others late.

use std::io;
use std::sync::Arc;

use super::clock::Clock;
use super::growing::GrowingSegment;
use super::order::put_in_order;
use super::segment::{Column, NEVER, SEGMENT};
use super::stored::{
    ChangeLog, CreateStorage, LoggedChange, PAGE, PageEntry, SegmentEntry, Storage, StoredSegment,
    Times,
};

/// Where a store puts what does not fit in memory, and when.
#[derive(Clone)]
pub struct MemoryLimit {
    /// Bytes that the profile may take.
    pub bytes: u64,
    /// Makes storages for the rest.
    pub create: CreateStorage,
}

impl std::fmt::Debug for MemoryLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLimit")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Bytes that a block in memory takes while a trace is read: its columns, two events in the clock, and what it takes to put these
/// in order.
const BLOCK_BYTES: u64 = 72;

/// Bytes that the changes of a block take while they are applied: a promotion and a death, and room to sort them.
const CHANGE_BYTES: usize = 96;

/// Segments that are in memory at least.
const FEWEST: usize = 4;

/// Segments whose changes are applied together at most: more of them at once are not faster.
const MOST_CHANGED: usize = 64;

impl MemoryLimit {
    /// Segments that are in memory at most while a trace is read. The rest of the memory is for stacks and names.
    pub(crate) fn segments(&self) -> usize {
        let blocks = self.bytes / 10 * 6 / BLOCK_BYTES;
        usize::try_from(blocks / SEGMENT as u64)
            .unwrap_or(usize::MAX)
            .max(FEWEST)
    }

    /// The bytes of a part of the memory: a half, a third, a quarter.
    pub(crate) fn share(&self, parts: u64) -> usize {
        usize::try_from(self.bytes / parts).unwrap_or(usize::MAX)
    }

    /// Segments whose changes are applied together, so that these take a quarter of the memory at most.
    fn segments_changed_at_once(&self) -> usize {
        let changes = self.share(4) / (SEGMENT * CHANGE_BYTES);
        changes.clamp(1, MOST_CHANGED)
    }
}

/// A change of a block of a sealed segment, whose number may still change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) block: usize,
    pub(crate) column: Column,
    pub(crate) event: u64,
}

/// The sealed part of a store.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// For segments whose blocks may still change.
    scratch: Arc<dyn Storage>,
    /// For what has its final state.
    output: Arc<dyn Storage>,
    segments: Vec<SegmentEntry>,
    pages: Vec<PageEntry>,
    /// The time up to which events have their final numbers.
    pub(crate) time: u64,
    /// The number of these events.
    events: u64,
    pub(crate) pending: Vec<Pending>,
    log: ChangeLog,
}

impl Sealed {
    pub(crate) fn new(limit: &MemoryLimit) -> io::Result<Self> {
        let scratch = (limit.create)()?;
        Ok(Self {
            log: ChangeLog::new(Arc::clone(&scratch), limit.segments_changed_at_once()),
            scratch,
            output: (limit.create)()?,
            segments: Vec::new(),
            pages: Vec::new(),
            time: 0,
            events: 0,
            pending: Vec::new(),
        })
    }

    /// Seals the first segments of a store, all of whose events are in order.
    pub(crate) fn seal(
        &mut self,
        segments: Vec<GrowingSegment>,
        rest: &[GrowingSegment],
        clock: &mut Clock,
    ) -> io::Result<()> {
        let births = |segment: &GrowingSegment| {
            let lives = segment.lives.get();
            (0..lives.len()).map(|i| lives.birth(i)).collect::<Vec<_>>()
        };
        if rest.is_empty() {
            self.events = clock.len();
            self.time = u64::MAX;
        } else {
            let last = segments.iter().flat_map(births).max().unwrap_or(0);
            self.time = self.time.max(clock.get(last));
            self.events = clock.count_before(|time| time > self.time);
        }
        for mut segment in segments {
            self.seal_segment(&mut segment, clock)?;
        }
        let events = self.events;
        let (is_final, pending) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|change: &Pending| change.event < events);
        self.pending = pending;
        for Pending {
            block,
            column,
            event,
        } in is_final
        {
            self.log.add(LoggedChange {
                block,
                column,
                event,
                time: clock.get(event),
            })?;
        }
        // Blocks in memory still need the times of their events.
        let needed = rest.iter().flat_map(births).min().unwrap_or(u64::MAX);
        self.write_clock(clock, events.min(needed), rest.is_empty())
    }

    fn seal_segment(&mut self, segment: &mut GrowingSegment, clock: &Clock) -> io::Result<()> {
        let first = self.segments.len() * SEGMENT;
        let lives = segment.lives.get_mut();
        put_in_order(lives);
        for i in 0..lives.len() {
            for (column, event) in [
                (Column::Promotion, lives.promotion(i)),
                (Column::Death, lives.death(i)),
            ] {
                if event != NEVER && event >= self.events {
                    lives.set(column, i, NEVER);
                    let block = first + i;
                    self.pending.push(Pending {
                        block,
                        column,
                        event,
                    });
                }
            }
        }
        let times = Times::of_events(lives, |event| clock.get(event));
        let entry = SegmentEntry::write(&*self.scratch, lives, segment.class.get(), &times)?;
        self.segments.push(entry);
        Ok(())
    }

    /// Writes the pages of the clock that are full, and in the end all.
    fn write_clock(&mut self, clock: &mut Clock, events: u64, is_all: bool) -> io::Result<()> {
        let mut first = clock.first();
        while first + PAGE as u64 <= events || is_all && first < events {
            let end = events.min(first + PAGE as u64);
            let times: Vec<u64> = (first..end).map(|event| clock.get(event)).collect();
            self.pages.push(PageEntry::write(&*self.output, &times)?);
            first = end;
        }
        clock.forget_before(first);
        Ok(())
    }

    /// Applies all changes. Hands over each segment then, and before that the changes that could not be applied.
    pub(crate) fn finish(
        mut self,
        classes: usize,
        mut unmatched: impl FnMut(Column),
        mut finished: impl FnMut(&StoredSegment),
    ) -> io::Result<SealedColumns> {
        let mut entries = Vec::with_capacity(self.segments.len());
        let sealed = std::mem::take(&mut self.segments);
        for (bucket, segments) in sealed.chunks(self.log.segments()).enumerate() {
            let changes = self.log.take(bucket)?;
            let mut changes = &changes[..];
            for entry in segments {
                let mut segment = entry.read(&*self.scratch, classes, self.events)?;
                let end = (entries.len() + 1) * SEGMENT;
                let here = changes.partition_point(|change| change.block < end);
                let (here, rest) = changes.split_at(here);
                changes = rest;
                for change in here {
                    let i = change.block % SEGMENT;
                    if !segment.apply(i, change) {
                        unmatched(change.column);
                    }
                }
                if !here.is_empty() {
                    segment.put_in_order();
                }
                let StoredSegment {
                    lives,
                    class,
                    times,
                } = &segment;
                finished(&segment);
                entries.push(SegmentEntry::write(&*self.output, lives, class, times)?);
            }
        }
        Ok(SealedColumns {
            storage: self.output,
            segments: entries,
            pages: self.pages,
        })
    }
}

/// The columns of a profile, stored.
#[derive(Debug)]
pub(crate) struct SealedColumns {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) segments: Vec<SegmentEntry>,
    pub(crate) pages: Vec<PageEntry>,
}

#[cfg(test)]
pub(crate) mod tests;

impl StoredSegment {
    /// Applies a change, unless the block has such a change already, or was dead before.
    fn apply(&mut self, i: usize, change: &LoggedChange) -> bool {
        let (promotion, death) = (self.lives.promotion(i), self.lives.death(i));
        let is_taken = match change.column {
            Column::Promotion => {
                let was_dead =
                    death != NEVER && (self.times.death[i], death) < (change.time, change.event);
                was_dead || promotion != NEVER
            }
            _ => death != NEVER,
        };
        if !is_taken {
            self.lives.set(change.column, i, change.event);
            self.times.set(change.column, i, change.time);
        }
        !is_taken
    }

    /// Swaps events that are the wrong way round: a block is born, promoted, and dies.
    fn put_in_order(&mut self) {
        let (lives, times) = (&mut self.lives, &mut self.times);
        for i in 0..lives.len() {
            let mut events = vec![(lives.birth(i), times.birth[i], Column::Birth)];
            if lives.promotion(i) != NEVER {
                events.push((lives.promotion(i), times.promotion(i), Column::Promotion));
            }
            if lives.death(i) != NEVER {
                events.push((lives.death(i), times.death[i], Column::Death));
            }
            if events.is_sorted_by_key(|event| event.0) {
                continue;
            }
            let columns: Vec<Column> = events.iter().map(|event| event.2).collect();
            events.sort_by_key(|event| event.0);
            for (&(event, time, _), column) in events.iter().zip(columns) {
                lives.set(column, i, event);
                times.set(column, i, time);
            }
        }
    }
}
