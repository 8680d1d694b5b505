//! The lane of one domain of the program.

use std::cell::UnsafeCell;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU32, Ordering};

use heapline_trace::tail::layout::LaneWord;
use heapline_trace::{
    Block, CollectionEncoder, Detached, Encoder, Frames, PacketMemory, PacketSink, Pending,
};

use crate::clock::{Clock, Reading};
use crate::file::TraceFile;
use crate::tail::Page;

/// Events of a kind after which the counters are brought up to date, and the time of one is taken
/// for all.
const MEASURED: u64 = 64;

/// Upper bound for the duration of an event, in nanoseconds: if it took longer, the thread was
/// preempted.
const LONGEST: u32 = 100_000;

/// Records the events of one domain, for one thread at a time.
///
/// The threads of a domain never run concurrently, so there is no contention. Ending the recording takes
/// all lanes for good.
#[derive(Debug)]
#[repr(C)]
pub struct Lane {
    /// 1 or 0, because the processor can test and set a bit of a word atomically. First, so that its
    /// address is that of the lane.
    taken: AtomicU32,
    domain: UnsafeCell<Domain>,
}

// SAFETY: `domain` is only reached by who has `taken` the lane.
unsafe impl Sync for Lane {}

impl Lane {
    pub(crate) fn new(domain: Domain) -> Self {
        Self {
            taken: AtomicU32::new(0),
            domain: UnsafeCell::new(domain),
        }
    }

    /// The address of its part of the tail, which begins with its page of words.
    ///
    /// # Safety
    ///
    /// Nobody uses the lane any more.
    pub(crate) unsafe fn mapping(&self) -> *const u8 {
        // SAFETY: as the caller's.
        unsafe { &*self.domain.get() }.sink.page.address()
    }

    /// Takes the lane, if nobody has it.
    #[inline]
    pub(crate) fn take(&self) -> Option<TakenLane<'_>> {
        if self.taken.fetch_or(1, Ordering::Acquire) & 1 == 1 {
            return None;
        }
        Some(TakenLane { lane: self })
    }

    /// Fast path for small minor blocks whose frames are all cached: takes note of the block, and
    /// returns its id. Otherwise the error is to be passed to
    /// [`Recorder::finish`](crate::Recorder::finish); there is none if another thread has the lane.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    pub fn try_alloc<'s>(
        &self,
        now: Reading,
        block: Block,
        stack: impl Into<Frames<'s>>,
    ) -> Result<u64, Option<PendingBlock<'_>>> {
        let Some(mut domain) = self.take() else {
            return Err(None);
        };
        let time = domain.begin(now);
        let Work { encoder, ids, .. } = &mut domain.work;
        let tried = encoder.try_alloc(time, ids.fast_end, block, stack);
        if let Err(pending) = tried.map_err(Pending::detach) {
            return Err(Some(PendingBlock { domain, pending }));
        }
        let id = encoder.next_id().wrapping_add(domain.id_offset);
        domain.count(|counters| &mut counters.blocks);
        Ok(id)
    }

    /// Takes note that a block was promoted, if that is like nearly always. False if it is not:
    /// [`Recorder::promote`](crate::Recorder::promote) takes all.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    pub fn try_promote(&self, now: Reading, id: u64) -> bool {
        let kind: Kind = |counters| &mut counters.promotions;
        self.try_mark(now, id, kind, Encoder::try_promote)
    }

    /// Like [`try_promote`](Self::try_promote), for a block that is dead.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    pub fn try_collect(&self, now: Reading, id: u64) -> bool {
        let kind: Kind = |counters| &mut counters.collections;
        self.try_mark(now, id, kind, Encoder::try_collect)
    }

    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    fn try_mark(
        &self,
        now: Reading,
        id: u64,
        kind: Kind,
        encode: fn(&mut LaneEncoder, u64, u64) -> bool,
    ) -> bool {
        let Some(mut domain) = self.take() else {
            return false;
        };
        let time = domain.begin(now);
        // Blocks of a recorder before this one are refused as too old.
        let id = id.wrapping_sub(domain.id_offset).wrapping_sub(1);
        if !encode(&mut domain.work.encoder, time, id) {
            domain.refuse();
            return false;
        }
        domain.count(kind);
        true
    }
}

/// A lane that the caller has taken, and access to its domain.
///
/// It is given back only on demand, not when this is dropped: after a panic, and when the recording
/// has ended, nobody may take the lane again. No reference to the domain outlives that, because
/// giving back consumes this.
#[derive(Debug)]
#[must_use = "the lane stays taken until it is given back"]
pub(crate) struct TakenLane<'l> {
    lane: &'l Lane,
}

impl Deref for TakenLane<'_> {
    type Target = Domain;

    #[inline]
    fn deref(&self) -> &Domain {
        // SAFETY: nobody else has the lane until it is given back, which consumes `self`.
        unsafe { &*self.lane.domain.get() }
    }
}

impl DerefMut for TakenLane<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Domain {
        // SAFETY: as above; and `self` is borrowed for as long as the result.
        unsafe { &mut *self.lane.domain.get() }
    }
}

impl TakenLane<'_> {
    /// Counts the event at hand, and gives the lane back.
    #[inline]
    pub(crate) fn count(mut self, kind: Kind) {
        if kind(&mut self.work.counters).count() {
            self.measure();
        } else {
            self.give_back();
        }
    }

    /// Takes the time of an event, for those before it too.
    #[cold]
    fn measure(mut self) {
        Domain::measure(&mut self);
        self.give_back();
    }

    /// Gives the lane back without anything having been done.
    #[cold]
    fn refuse(self) {
        self.give_back();
    }

    /// Lets others take the lane.
    #[inline]
    pub(crate) fn give_back(self) {
        self.lane.taken.store(0, Ordering::Release);
    }
}

/// A block that the [fast path](Lane::try_alloc) did not complete. Its lane stays taken until it is
/// [finished](crate::Recorder::finish).
#[derive(Debug)]
#[must_use = "the lane stays taken until the block is finished"]
pub struct PendingBlock<'l> {
    pub(crate) domain: TakenLane<'l>,
    pub(crate) pending: Detached,
}

/// A domain's state.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) work: Work,
    pub(crate) sink: LaneSink,
    pub(crate) clock: Clock,
    /// The start of the current event, in nanoseconds of the second.
    pub(crate) began: u32,
    /// The offset from the next id in the trace to the id of the last block outside of it.
    pub(crate) id_offset: u64,
}

/// Fills packets in the tail.
type LaneEncoder = Encoder<&'static mut PacketMemory>;

/// The state that changes with every event.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) encoder: LaneEncoder,
    pub(crate) collections: CollectionEncoder<&'static mut PacketMemory>,
    pub(crate) ids: Ids,
    pub(crate) counters: Counters,
}

/// Ids that were taken for a domain, as they are in the trace.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// The next one. Blocks that were taken fast are not counted yet.
    start: u64,
    end: u64,
    /// The end of the ids that follow the last one in the packet, for which the fast path may be
    /// used.
    fast_end: u64,
}

impl Ids {
    /// Catches up with blocks that were taken fast.
    pub(crate) fn catch_up(&mut self, encoder: &LaneEncoder) {
        if self.fast_end != 0 {
            self.start = encoder.next_id();
        }
    }

    /// The next one; if none is left, `more` gives some.
    pub(crate) fn next(&mut self, more: impl FnOnce() -> Range<u64>) -> u64 {
        if self.start == self.end {
            Range {
                start: self.start,
                end: self.end,
            } = more();
        }
        self.start
    }

    /// The next one was used.
    pub(crate) fn advance(&mut self) {
        self.start += 1;
    }

    /// Gives none out any more.
    pub(crate) fn end(&mut self) {
        self.end = self.start;
    }

    /// Lets blocks be taken fast, if that is possible.
    pub(crate) fn set_fast(&mut self, encoder: &LaneEncoder) {
        // When a domain tells of another's block, packets begin with other ids.
        let follows = self.start == encoder.next_id();
        self.fast_end = if follows { self.end } else { 0 };
    }
}

/// Events that a domain had.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) blocks: Counter,
    pub(crate) promotions: Counter,
    pub(crate) collections: Counter,
    /// The time that they took.
    nanos: u64,
    /// Blocks that are not collected, as far as they were asked for.
    outstanding: i64,
}

impl Counters {
    /// Blocks minus collections since this was asked for last.
    pub(crate) fn more_outstanding(&mut self) -> i64 {
        let (blocks, collections) = (self.blocks.total(), self.collections.total());
        let outstanding = blocks.wrapping_sub(collections).cast_signed();
        outstanding - std::mem::replace(&mut self.outstanding, outstanding)
    }
}

/// One of the counters.
pub(crate) type Kind = fn(&mut Counters) -> &mut Counter;

/// Counts events, down to the next one that is measured: that takes two instructions.
#[derive(Debug)]
pub(crate) struct Counter {
    left: u64,
    /// The total when none is left.
    then: u64,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            left: MEASURED,
            then: MEASURED,
        }
    }
}

impl Counter {
    /// Counts an event. Returns whether it is one to be measured.
    #[inline]
    pub(crate) fn count(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = MEASURED;
        self.then += MEASURED;
        true
    }

    fn total(&self) -> u64 {
        self.then - self.left
    }
}

impl Domain {
    /// An event begins. Returns its time.
    #[inline]
    pub(crate) fn begin(&mut self, now: Reading) -> u64 {
        self.began = now.nanos();
        self.clock.time(now)
    }

    fn measure(&mut self) {
        let second = 1_000_000_000;
        let took = (Reading::now().nanos() + second - self.began) % second;
        self.work.counters.nanos += u64::from(took.min(LONGEST)) * MEASURED;
        self.publish();
    }

    /// Brings the counters in the tail up to date.
    pub(crate) fn publish(&mut self) {
        let counters = &self.work.counters;
        let blocks = counters.blocks.total();
        let marks = counters.promotions.total() + counters.collections.total();
        for (word, value) in [
            (LaneWord::Events, blocks + marks),
            (LaneWord::Nanos, counters.nanos),
            (LaneWord::Blocks, blocks),
            (LaneWord::Shortened, self.work.encoder.shortened_stacks()),
        ] {
            self.sink.set(word, value);
        }
    }
}

/// Moves a domain's packets to the trace, so that nothing is lost or doubled whenever the process
/// ends or somebody reads.
#[derive(Debug)]
pub(crate) struct LaneSink {
    /// The domain's page in the tail.
    pub(crate) page: Page,
    pub(crate) file: &'static TraceFile,
    /// The addresses of the memory of the domain's packets: as [`LaneWord::Writing`] numbers them.
    pub(crate) packets_at: [usize; 3],
    /// True if a packet was written since the last query.
    pub(crate) wrote: bool,
}

impl PacketSink for LaneSink {
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        let at = bytes.as_ptr().addr();
        let number = self.packets_at.iter().position(|packet| *packet == at);
        let mut end = self.file.end();
        self.set(LaneWord::Writing, number.unwrap_or(0) as u64);
        self.set(LaneWord::Place, end.offset() + 1);
        self.wrote = true;
        end.write(bytes)?;
        // From here on the packet belongs to the trace. No other domain may write before that.
        self.set(LaneWord::Written, end.offset());
        Ok(())
    }

    fn released(&mut self) {
        self.set(LaneWord::Place, 0);
    }
}

impl LaneSink {
    pub(crate) fn set(&self, word: LaneWord, value: u64) {
        self.page.set(word as usize, value);
    }
}
