//! What belongs to one domain of the program.

use std::cell::UnsafeCell;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use heapline_trace::{Encoder, PacketMemory, PacketSink};

use crate::clock::Reading;
use crate::file::TraceFile;
use crate::tail::{LaneWord, Page};

/// Events of a kind after which the counters are brought up to date, and the time of one is taken.
const MEASURED: u64 = 64;

/// No event takes so long, in nanoseconds: another process had the processor meanwhile.
const LONGEST: u64 = 100_000;

/// A domain's encoder, for one thread at a time.
///
/// The threads of a domain never run at once, so that nobody waits here. Who ends the recording
/// takes all lanes for good.
#[derive(Debug)]
pub(crate) struct Lane {
    taken: AtomicBool,
    domain: UnsafeCell<Domain>,
}

// SAFETY: `domain` is only reached by who has `taken` the lane.
unsafe impl Sync for Lane {}

impl Lane {
    pub(crate) fn new(domain: Domain) -> Self {
        Self {
            taken: AtomicBool::new(false),
            domain: UnsafeCell::new(domain),
        }
    }

    /// Takes the lane, if nobody has it.
    #[expect(clippy::mut_from_ref, reason = "that is what `taken` is for")]
    pub(crate) fn take(&self) -> Option<&mut Domain> {
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: nobody else has the lane until it is given back.
        Some(unsafe { &mut *self.domain.get() })
    }

    /// Lets others take the lane. Whoever calls this has taken it, and is done with it.
    pub(crate) fn give_back(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

/// A domain's state.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) work: Work,
    pub(crate) sink: LaneSink,
    /// When the event at hand began.
    pub(crate) now: Reading,
}

/// What changes with every event.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) encoder: Encoder<&'static mut PacketMemory>,
    /// Ids that were taken for this domain and not used yet.
    pub(crate) ids: Range<u64>,
    pub(crate) counters: Counters,
}

/// Events that a domain had.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) blocks: u64,
    pub(crate) promotions: u64,
    pub(crate) collections: u64,
    /// The time that they took.
    nanos: u64,
    /// Blocks that are not collected, as far as they were asked for.
    outstanding: i64,
}

impl Counters {
    /// Blocks minus collections since this was asked for last.
    pub(crate) fn more_outstanding(&mut self) -> i64 {
        let outstanding = self.blocks.wrapping_sub(self.collections).cast_signed();
        outstanding - std::mem::replace(&mut self.outstanding, outstanding)
    }
}

/// One of the counters.
pub(crate) type Kind = fn(&mut Counters) -> &mut u64;

impl Domain {
    /// Counts the event at hand. The time of some is taken, for all.
    #[inline]
    pub(crate) fn count(&mut self, kind: Kind) {
        let count = kind(&mut self.work.counters);
        *count += 1;
        if count.is_multiple_of(MEASURED) {
            self.measure();
        }
    }

    #[cold]
    fn measure(&mut self) {
        let took = Reading::now().nanos().saturating_sub(self.now.nanos());
        self.work.counters.nanos += took.min(LONGEST) * MEASURED;
        self.publish();
    }

    /// Brings the counters in the tail up to date.
    pub(crate) fn publish(&mut self) {
        let counters = &self.work.counters;
        for (word, value) in [
            (
                LaneWord::Events,
                counters.blocks + counters.promotions + counters.collections,
            ),
            (LaneWord::Nanos, counters.nanos),
            (LaneWord::Blocks, counters.blocks),
            (LaneWord::Shortened, self.work.encoder.shortened_stacks()),
        ] {
            self.sink.page.set(word as usize, value);
        }
    }
}

/// Writes a domain's packets to the trace, so that nothing is lost or doubled whenever the process
/// ends.
#[derive(Debug)]
pub(crate) struct LaneSink {
    /// The domain's page in the tail.
    pub(crate) page: Page,
    pub(crate) file: &'static TraceFile,
    /// The address of the memory in which the domain puts names together.
    pub(crate) names_at: usize,
    /// Where a packet could not be written.
    pub(crate) failed_at: Option<u64>,
    /// Whether a packet was written that nobody asked for yet.
    pub(crate) wrote: bool,
}

impl PacketSink for LaneSink {
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        let place = self.file.take_place(bytes.len());
        let is_names = bytes.as_ptr().addr() == self.names_at;
        self.page
            .set(LaneWord::Writing as usize, u64::from(is_names));
        compiler_fence(Ordering::Release);
        self.page.set(LaneWord::Place as usize, place + 1);
        compiler_fence(Ordering::Release);
        self.wrote = true;
        self.file.write(bytes, place).inspect_err(|_| {
            self.failed_at = Some(place);
        })
    }

    fn released(&mut self) {
        self.page.set(LaneWord::Place as usize, 0);
        compiler_fence(Ordering::Release);
    }
}
