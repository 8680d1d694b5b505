//! Keeps the recording of a long run within a size.
//!
//! Events go in, and a trace comes out whose size does not grow with the run. Blocks that are alive are
//! kept one by one, and so are those that died lately. Older blocks are merged: those with the same stack,
//! length and heap that were allocated in one interval of time, promoted in one, and freed in one become a
//! single record with their samples together and the means of their times. At the boundaries between
//! intervals all sums are what they were, with their errors, because every estimate is a sum over sampled
//! blocks. Intervals get longer with age. Of the work of the garbage collector the latest is kept, and the counters before it.

mod collections;
mod gaps;
mod intervals;
mod record;
mod stacks;
mod write;

use crate::tail::Pause;
use crate::{Alloc, Collection, Locations, Mark, Visitor};
use hashbrown::HashMap;

use collections::Collections;
use gaps::Gaps;
use intervals::Intervals;
use record::{Lengths, NEVER, Record, micros};
use stacks::{Node, StackTable};

/// Promotions and collections that may be waiting for the allocation of their block: threads that
/// exchange blocks may write them first.
const MAX_EARLY: usize = 1 << 16;

/// Domains and threads that are told apart: each takes an encoder.
const MAX_LANES: usize = 4096;

/// Bytes of a record in the trace, until one was written: few, so that nothing is given up for a guess.
const FIRST_GUESS: f64 = 12.0;

/// The most bytes of a record: a trace with a few blocks of many names says nothing of one with many.
const MAX_RECORD: f64 = 512.0;

/// The intervals that are left before stacks are cut.
const FEW_INTERVALS: usize = 8;

/// Frames that are kept of merged blocks when stacks are first cut, and when intervals are given up too.
const DEEP: usize = 64;
const SHALLOW: usize = 4;

/// The history of a run, within a size.
///
/// ```
/// use heapline_trace::keep::Keeper;
/// use heapline_trace::{Decoder, Options, Step};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
/// let mut decoder = Decoder::new(Options::new());
/// decoder.push(&std::fs::read(path)?);
/// decoder.finish();
/// let mut keeper = Keeper::new(40_000);
/// while decoder.visit_packet(&mut keeper)? != Step::End {
///     keeper.fit();
/// }
/// let info = decoder.info().unwrap().clone();
/// let mut trace = Vec::new();
/// // What an event takes is not known before the first one is written.
/// while keeper.write(&info, decoder.locations(), None, &mut trace)? > 40_000 && !keeper.is_full() {
///     trace.clear();
///     keeper.fit();
/// }
/// assert!(trace.len() <= 40_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Keeper {
    /// Bytes that the trace may have.
    budget: u64,
    /// Bytes of a record, as they were last time.
    record_bytes: f64,
    stacks: StackTable,
    /// The last stack of each lane, frame by frame.
    lanes: HashMap<u16, Vec<Node>>,
    /// Blocks that are alive, by id.
    live: HashMap<u64, Record>,
    /// What became of blocks that were not allocated yet.
    early: HashMap<u64, Early>,
    /// Blocks that died lately.
    recent: Vec<Record>,
    /// Blocks that died before the last boundary, merged.
    merged: Vec<Record>,
    intervals: Intervals,
    gaps: Gaps,
    collections: Collections,
    /// Which lengths are merged.
    lengths: Lengths,
    /// Frames that are kept of the stacks of merged blocks.
    depth: Option<usize>,
    /// The time of the latest event.
    now: u64,
    is_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Early {
    promotion: f64,
    death: f64,
}

impl Keeper {
    /// An empty history for a trace of so many bytes.
    #[must_use]
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            record_bytes: FIRST_GUESS,
            stacks: StackTable::default(),
            lanes: HashMap::new(),
            live: HashMap::new(),
            early: HashMap::new(),
            recent: Vec::new(),
            merged: Vec::new(),
            intervals: Intervals::default(),
            gaps: Gaps::default(),
            collections: Collections::default(),
            lengths: Lengths::Same,
            depth: None,
            now: 0,
            is_full: false,
        }
    }

    /// Returns true if what is alive does not fit into the size, even without any history. Events are
    /// ignored then.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The time of the latest event, in microseconds since the start.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Records that are kept: blocks, and merged ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len() + self.recent.len() + self.merged.len()
    }

    /// Returns true if no block was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The boundaries between intervals that are summed up, in microseconds since the start.
    #[must_use]
    pub fn boundaries(&self) -> &[u64] {
        self.intervals.boundaries()
    }

    /// Takes note of a time in which no new blocks were recorded. The same one may come again when it has
    /// ended.
    pub fn add_pause(&mut self, pause: Pause) {
        self.gaps.add(pause);
    }

    /// The times in which no new blocks were recorded, from and to, in microseconds since the start.
    #[must_use]
    pub fn gaps(&self) -> Vec<(u64, u64)> {
        self.gaps.until(self.now)
    }

    /// Makes the history coarser if it is too large. To be called after every few thousand events.
    pub fn fit(&mut self) {
        if self.stacks.is_crowded(self.len()) {
            self.drop_unused_stacks();
        }
        let is_large = self.len() as f64 * self.record_bytes > self.budget as f64;
        if is_large && !self.is_full {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        let room = self.budget as f64 / self.record_bytes - self.live.len() as f64;
        // Without room for some history, each new block would lead to here.
        if room < self.live.len() as f64 / 8.0 {
            self.is_full = true;
            return;
        }
        self.merge_oldest(records(room / 4.0));
        let most = records(room / 2.0);
        loop {
            record::merge(&mut self.merged, &self.intervals, self.lengths);
            if self.merged.len() <= most {
                break;
            }
            if !self.give_up_detail() {
                self.is_full = true;
                return;
            }
        }
        self.drop_unused_stacks();
    }

    /// Makes the merged history coarser: first in time, then in the lengths of blocks and in their stacks.
    /// Returns false if there is nothing more to give up.
    fn give_up_detail(&mut self) -> bool {
        let depth = self.depth.unwrap_or(2 * DEEP);
        let has_few = self.intervals.len() <= FEW_INTERVALS;
        if has_few && self.lengths == Lengths::Same {
            self.lengths = Lengths::Similar;
            return true;
        }
        let is_cut_first = has_few && depth > SHALLOW;
        if !is_cut_first && self.intervals.thin(self.now) {
            return true;
        }
        if depth == 1 {
            return false;
        }
        self.depth = Some(depth / 2);
        for record in &mut self.merged {
            record.stack = self.stacks.cut(record.stack, depth / 2);
        }
        true
    }

    /// Moves all but the latest of the blocks that died lately to those that are merged.
    fn merge_oldest(&mut self, kept: usize) {
        let Some(excess) = self.recent.len().checked_sub(kept.max(1)) else {
            return;
        };
        let (_, first_kept, _) = self
            .recent
            .select_nth_unstable_by(excess, |a, b| a.death.total_cmp(&b.death));
        let mut end = micros(first_kept.death);
        if self.recent.iter().all(|record| micros(record.death) >= end) {
            // All that are not kept died at the same moment.
            end = end.saturating_add(1);
        }
        self.intervals.extend_to(end);
        let merged = self
            .recent
            .extract_if(.., |record| micros(record.death) < end);
        let first = self.merged.len();
        self.merged.extend(merged);
        if let Some(depth) = self.depth {
            for record in &mut self.merged[first..] {
                record.stack = self.stacks.cut(record.stack, depth);
            }
        }
    }

    fn drop_unused_stacks(&mut self) {
        // They are built again from the next stack.
        self.lanes.values_mut().for_each(Vec::clear);
        let live = self.live.values_mut();
        let records = live.chain(&mut self.recent).chain(&mut self.merged);
        let mut stacks: Vec<&mut Node> = records.map(|record| &mut record.stack).collect();
        self.stacks.retain(&mut stacks);
    }

    /// The stack of an allocation.
    fn stack(&mut self, alloc: &Alloc<'_>) -> Option<Node> {
        if self.lanes.len() >= MAX_LANES && !self.lanes.contains_key(&alloc.domain) {
            return None;
        }
        let path = self.lanes.entry(alloc.domain).or_default();
        let frames = alloc.stack.frames();
        path.truncate(alloc.stack.shared());
        for &location in frames.get(path.len()..).unwrap_or_default() {
            let parent = path.last().copied().unwrap_or_default();
            path.push(self.stacks.child(parent, location)?);
        }
        Some(path.last().copied().unwrap_or_default())
    }

    /// Takes note of what becomes of a block.
    fn change(&mut self, mark: Mark, change: impl FnOnce(&mut f64, &mut f64)) {
        if self.is_full {
            return;
        }
        self.now = self.now.max(mark.time);
        if let Some(record) = self.live.get_mut(&mark.id) {
            change(&mut record.promotion, &mut record.death);
            if record.death < NEVER {
                self.bury(mark.id);
            }
        } else if self.early.len() < MAX_EARLY {
            let unknown = Early {
                promotion: NEVER,
                death: NEVER,
            };
            let early = self.early.entry(mark.id).or_insert(unknown);
            change(&mut early.promotion, &mut early.death);
        }
    }

    fn bury(&mut self, id: u64) {
        self.recent
            .extend(self.live.remove(&id).map(Record::in_order));
    }
}

impl Visitor for Keeper {
    fn alloc(&mut self, alloc: &Alloc<'_>, _: &Locations) {
        if self.is_full {
            return;
        }
        let Some(stack) = self.stack(alloc) else {
            self.is_full = true;
            return;
        };
        self.now = self.now.max(alloc.time);
        let mut record = Record {
            birth: alloc.time as f64,
            promotion: NEVER,
            death: NEVER,
            words: alloc.length.saturating_mul(alloc.merged.saturating_add(1)),
            samples: alloc.samples,
            blocks: alloc.merged.saturating_add(1),
            stack,
            lane: alloc.domain,
            source: alloc.source,
        };
        if !self.early.is_empty()
            && let Some(early) = self.early.remove(&alloc.id)
        {
            record.promotion = early.promotion;
            record.death = early.death;
        }
        if let Some(replaced) = self.live.insert(alloc.id, record) {
            // Only a damaged trace has an id twice: the first block is never heard of again.
            let replaced = Record {
                death: record.birth,
                ..replaced
            };
            self.recent.push(replaced.in_order());
        }
        if record.death < NEVER {
            self.bury(alloc.id);
        }
    }

    fn promote(&mut self, mark: Mark, _: &Locations) {
        self.change(mark, |promotion, _| {
            *promotion = promotion.min(mark.time as f64);
        });
    }

    fn collect(&mut self, mark: Mark, _: &Locations) {
        self.change(mark, |_, death| {
            *death = death.min(mark.time as f64);
        });
    }

    fn collection(&mut self, work: &Collection) {
        self.collections.push(work, self.budget);
    }
}

/// A number of records.
fn records(number: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates"
    )]
    let number = number as usize;
    number
}
