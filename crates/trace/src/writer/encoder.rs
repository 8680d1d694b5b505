//! Encodes the events of one domain.

use std::borrow::BorrowMut;
use std::io;

use super::cache::{Coded, MAX_FRAME, MAX_FRAMES, StackCache};
use super::current::Current;
use super::names::{FrameSink, Names};
use super::packet::{PacketBuffer, PacketMemory, PacketSink};
use super::pending::{Detached, Pending};
use super::stack::{Frames, LastStack, TaggedCode, compare};
use super::{Block, zeros};
use crate::event::Source;
use crate::format::{
    CacheCheck, EventBytes, MAX_ALLOC, MAX_HEADER, MAX_MARK, MAX_WRITTEN_PACKET, PacketHeader,
    VERSION, code,
};

/// A packet is closed when it has lasted this long. The format can express 33 seconds.
const MAX_SPAN: u64 = 30_000_000;

/// The most that a stack may take: an event must fit into a packet.
const MAX_STACK: usize = MAX_WRITTEN_PACKET - MAX_HEADER - MAX_ALLOC;

/// Innermost frames that are kept of a stack that is too large all the same.
const KEPT_INNERMOST: usize = 32;

/// The code that stands for the frames left out of a stack that no packet can hold.
pub const OMITTED_FRAMES: u64 = 0x3fff_ffff_ffff_fff7;

/// The code that stands for the outer frames of a stack that was recorded up to a given depth.
pub const DEEPER_CALLS: u64 = OMITTED_FRAMES - 1;

/// Encodes the events of one domain.
///
/// Packets are handed to a [`PacketSink`] whenever one is full, and by [`flush`](Self::flush).
/// Nothing is allocated once the tables have their size, and nothing is shared with the encoders
/// of other domains: a recorder gives each domain its own and lets them write to one file.
///
/// [`Writer`](super::Writer) is simpler where that does not matter.
///
/// `M` is the memory that packets are filled in. If it is [given](Self::within) and outlives the
/// process, then nothing is lost when the process is killed.
#[derive(Debug)]
pub struct Encoder<M = Box<PacketMemory>> {
    pid: u64,
    domain: u16,
    /// The packet that is being filled.
    current: Current<M>,
    last_stack: LastStack,
    /// The number of its frames that were given.
    intact: usize,
    /// Location events that must be written before it.
    names: Names<M>,
    /// Code words of a stack that may belong to the next packet.
    code_words: Box<PacketMemory>,
    check: CacheCheck,
    time_begin: u64,
    first_id: u64,
    shortened: u64,
    /// True if a packet could not be written: the reader's state differs from ours.
    broken: bool,
}

impl Encoder {
    /// An encoder for a domain of process `pid`, for events not before `start_time` (microseconds
    /// since the Unix epoch).
    #[must_use]
    pub fn new(pid: u64, domain: u16, start_time: u64) -> Self {
        Self::with_buffers(
            pid,
            domain,
            start_time,
            PacketBuffer::new(),
            PacketBuffer::new(),
        )
    }
}

impl<M: BorrowMut<PacketMemory>> Encoder<M> {
    /// An encoder that fills its packets in the given memory: `events` for what happened, `names`
    /// for the locations that must be written before.
    ///
    /// After every call the packet in each of them is whole, as far as it goes, header included;
    /// where there is none, the first four bytes are 0.
    #[must_use]
    pub fn within(pid: u64, domain: u16, start_time: u64, events: M, names: M) -> Self {
        let (events, names) = (PacketBuffer::within(events), PacketBuffer::within(names));
        Self::with_buffers(pid, domain, start_time, events, names)
    }

    fn with_buffers(
        pid: u64,
        domain: u16,
        start_time: u64,
        mut events: PacketBuffer<M>,
        names: PacketBuffer<M>,
    ) -> Self {
        events.set_time_end(start_time);
        events.set_end_id(0);
        Self {
            pid,
            domain,
            current: Current {
                cache: StackCache::new(),
                events,
                time_full: 0,
                unnamed: 0,
            },
            last_stack: LastStack::default(),
            intact: 0,
            names: Names::new(names),
            code_words: zeros(),
            // The reader's cache is empty when the first packet comes; there is nothing to check.
            check: CacheCheck::NONE,
            time_begin: start_time,
            first_id: 0,
            shortened: 0,
            broken: false,
        }
    }

    /// The number of stacks that were truncated because they do not fit into a packet.
    ///
    /// That takes thousands of different frames, never seen before, in one stack. The outermost
    /// frames and the 32 innermost ones are kept then, with [`OMITTED_FRAMES`] between.
    #[must_use]
    pub fn shortened_stacks(&self) -> u64 {
        self.shortened
    }

    /// Encodes an allocation.
    ///
    /// `stack` has the innermost function first ([`Frames`]). `resolve` is asked for the frames of codes that
    /// this domain has not named yet.
    #[inline]
    pub fn alloc<'s>(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: impl Into<Frames<'s>>,
        mut resolve: impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        if self.is_half_done() {
            return Err(io::Error::other("the allocation before was not finished"));
        }
        let stack = stack.into();
        if id == self.next_id() && self.try_short(time, block, stack) {
            return Ok(());
        }
        self.finish_alloc(time, id, block, stack, &mut resolve, sink)
    }

    /// Fast path for small minor blocks whose frames are all cached: encodes the allocation with the
    /// [next id](Self::next_id) if that is below `end`, and if it is sure to fit into the packet.
    /// Otherwise the error [finishes](Pending::finish) it, on the slow path.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    pub fn try_alloc<'s>(
        &mut self,
        time: u64,
        end: u64,
        block: Block,
        stack: impl Into<Frames<'s>>,
    ) -> Result<(), Pending<'_, M>> {
        if self.next_id() < end && self.try_short(time, block, stack.into()) {
            return Ok(());
        }
        Err(Pending { encoder: self })
    }

    /// Encodes the next allocation, if it is small and sure to fit into the packet.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    fn try_short(&mut self, time: u64, block: Block, stack: Frames<'_>) -> bool {
        // A stack that had to be shortened is not what it was.
        let known = stack.shared.min(self.intact);
        let last_stack = &mut self.last_stack;
        let is_done = short_length(block).is_some_and(|length| {
            let codes = stack.codes;
            self.current
                .try_alloc(time, length, codes, last_stack, known)
        });
        if is_done {
            self.intact = usize::MAX;
        }
        is_done
    }

    /// Resumes an allocation that was [detached](Pending::detach) from this encoder. Nothing else may
    /// have been encoded since.
    #[inline]
    pub fn attach(&mut self, _detached: Detached) -> Pending<'_, M> {
        Pending { encoder: self }
    }

    /// Returns true if a [pending](Self::try_alloc) allocation changed the reader's state, so that
    /// it must be finished.
    #[must_use]
    pub fn is_half_done(&self) -> bool {
        self.current.unnamed != 0
    }

    /// The id of the next allocation, if it is to go on in the same packet.
    #[inline]
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.current.events.end_id()
    }

    fn last_time(&self) -> u64 {
        self.current.events.time_end()
    }

    /// Completes an allocation that is not encoded fast.
    #[inline]
    pub(super) fn finish_alloc(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: Frames<'_>,
        resolve: &mut impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        match std::mem::take(&mut self.current.unnamed) {
            0 => self.alloc_any(time, id, block, stack, resolve, sink),
            end => {
                self.intact = usize::MAX;
                self.name(resolve, sink)?;
                self.current.seal_alloc(end);
                Ok(())
            }
        }
    }

    /// Encodes an allocation whatever it is, into whatever packet.
    #[cold]
    fn alloc_any(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: Frames<'_>,
        resolve: &mut impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        self.check_usable()?;
        let known = stack.shared.min(self.intact);
        let stack = stack.codes;
        let time = time.max(self.last_time());
        if id != self.next_id() {
            self.start_packet_at(id, sink)?;
        }
        // Coding changes the cache. If it turns out that the event belongs to the next packet,
        // that packet is to be checked against the cache as it is now.
        let check_before = self.current.cache.check();
        self.last_stack.reserve(stack.len());
        let last = self.last_stack.memory(stack.len());
        let new = compare::<true>(last, stack, known).map_or(0, |(_, _, inner)| inner.len() + 1);
        let common = stack.len() - new;
        let coded = self.code_stack(common, &stack[..new]);
        let (len, words) = (coded.end, coded.words(0));
        if !self.current.cache.missed().is_empty() {
            self.name(resolve, sink)?;
        }
        if self.current.events.room() < MAX_ALLOC + len || self.lasts_too_long(time) {
            self.flush(sink)?;
            self.check = check_before;
        }
        let mut event;
        match (short_length(block), u8::try_from(words)) {
            (Some(length), Ok(words)) => {
                event = EventBytes::new(code::SHORT + length, time);
                event.put_vint(saturating(common as u64));
                event.put([words]);
            }
            _ => {
                event = EventBytes::new(code::ALLOC, time);
                event.put_vint(saturating(block.length));
                event.put_vint(saturating(block.samples));
                event.put([match block.source {
                    Source::Minor => 0,
                    Source::Major => 1,
                    Source::External => 2,
                }]);
                event.put_vint(saturating(common as u64));
                // A packet has no room for more.
                let words = u16::try_from(words).unwrap_or(u16::MAX);
                event.put(words.to_le_bytes());
            }
        }
        self.open(time);
        let pieces = [event.as_slice(), &self.code_words[..len]];
        let end = self.current.events.put(pieces);
        self.current.events.set_time_end(time);
        self.current.seal_alloc(end);
        Ok(())
    }

    /// Encodes the promotion of a block.
    #[inline]
    pub fn promote(&mut self, time: u64, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        if self.try_promote(time, id) {
            return Ok(());
        }
        self.mark_any(code::PROMOTE, time, id, sink)
    }

    /// Fast path for the promotion of a recent block, that is one followed by less than 65,536 others.
    /// Returns false, and does nothing, for other blocks, or if it may not fit into the packet.
    #[inline]
    pub fn try_promote(&mut self, time: u64, id: u64) -> bool {
        self.current.try_mark(code::PROMOTE, time, id)
    }

    /// Encodes the collection of a block.
    #[inline]
    pub fn collect(&mut self, time: u64, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        if self.try_collect(time, id) {
            return Ok(());
        }
        self.mark_any(code::COLLECT, time, id, sink)
    }

    /// Like [`try_promote`](Self::try_promote), for a collection.
    #[inline]
    pub fn try_collect(&mut self, time: u64, id: u64) -> bool {
        self.current.try_mark(code::COLLECT, time, id)
    }

    /// Writes what has been encoded: the locations that are new, then the events.
    pub fn flush(&mut self, sink: &mut impl PacketSink) -> io::Result<()> {
        self.check_usable()?;
        self.broken = true;
        self.current.time_full = 0;
        self.names.flush(sink)?;
        if !self.current.events.is_empty() {
            self.current.events.write(sink)?;
            self.current.cache.next_check();
        }
        self.broken = false;
        self.first_id = self.next_id();
        self.check = self.current.cache.check();
        Ok(())
    }

    fn check_usable(&self) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("an earlier packet could not be written"));
        }
        Ok(())
    }

    /// The header of the packet that is being filled.
    fn header(&self) -> PacketHeader {
        PacketHeader {
            size: 0,
            time_begin: if self.current.events.is_empty() {
                self.last_time()
            } else {
                self.time_begin
            },
            time_end: self.last_time(),
            flush_duration: 0,
            version: VERSION,
            pid: self.pid,
            domain: self.domain,
            check: self.check,
            first_id: self.first_id,
            end_id: self.next_id(),
        }
    }

    /// Codes the new part of a stack into `code_words`, and remembers the stack. Returns how many
    /// bytes it took.
    fn code_stack(&mut self, common: usize, new: &[TaggedCode]) -> Coded {
        const OMITTED: TaggedCode = TaggedCode::new(OMITTED_FRAMES);
        self.last_stack.change(common, new);
        self.intact = usize::MAX;
        let mut coded = Coded::none(0);
        let mut left = new;
        while !left.is_empty() {
            // Frames that fit whatever they are coded as. If not all do, then the innermost must,
            // and what stands for those before them.
            let mut fit = (MAX_STACK - coded.end) / MAX_FRAME;
            if fit < left.len() {
                fit -= KEPT_INNERMOST + 1;
            }
            let (mut inner, mut outer) =
                left.split_at(left.len() - fit.min(MAX_FRAMES).min(left.len()));
            if outer.is_empty() {
                inner = &left[..KEPT_INNERMOST];
                outer = &[OMITTED];
                self.shortened += 1;
                self.intact = common + new.len() - left.len();
                self.last_stack.change(self.intact, outer);
                self.last_stack.change(self.intact + 1, inner);
            }
            coded = self.current.cache.code(outer, &mut self.code_words, coded);
            left = inner;
        }
        coded
    }

    /// Names the codes that the last stack brought.
    #[cold]
    fn name(
        &mut self,
        resolve: &mut impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        let header = self.header();
        self.broken = true;
        let time_full = std::mem::take(&mut self.current.time_full);
        for tagged in self.current.cache.missed().drain(..) {
            self.names.add(tagged.code(), header, resolve, sink)?;
        }
        self.current.time_full = time_full;
        self.broken = false;
        Ok(())
    }

    /// Encodes a promotion or a collection whatever it is, into whatever packet.
    #[cold]
    fn mark_any(
        &mut self,
        code: u32,
        time: u64,
        id: u64,
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        let time = time.max(self.last_time());
        // The reference reader does not take promotions of ids beyond the packet's, as they occur
        // when domains exchange blocks: a packet whose ids begin later makes it an earlier one.
        if code == code::PROMOTE && id >= self.next_id() {
            self.start_packet_at(id.wrapping_add(1), sink)?;
        }
        if self.current.events.room() < MAX_MARK || self.lasts_too_long(time) {
            self.flush(sink)?;
        }
        let age = self
            .next_id()
            .wrapping_sub(1)
            .wrapping_sub(id)
            .cast_signed();
        let mut event = EventBytes::new(code, time);
        event.put_vint(age);
        self.open(time);
        let end = self.current.events.put([event.as_slice()]);
        self.current.events.set_time_end(time);
        self.current.events.seal(end);
        Ok(())
    }

    /// Opens a packet if there is none.
    fn open(&mut self, time: u64) {
        if self.current.events.is_empty() {
            self.current.events.set_time_end(time);
            self.time_begin = time;
            self.current.time_full = time.saturating_add(MAX_SPAN + 1);
            self.current.events.open(self.header());
        }
    }

    fn lasts_too_long(&self, time: u64) -> bool {
        !self.current.events.is_empty() && time >= self.current.time_full
    }

    /// Begins a packet whose first allocation has this id.
    fn start_packet_at(&mut self, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        self.flush(sink)?;
        self.first_id = id;
        self.current.events.set_end_id(id);
        Ok(())
    }
}

/// The length of a block that is so small that there is a kind of event for it.
#[inline]
fn short_length(block: Block) -> Option<u32> {
    match block {
        Block {
            length: length @ 1..=16,
            samples: 1,
            source: Source::Minor,
        } => Some(u32::from(length.to_le_bytes()[0])),
        _ => None,
    }
}

fn saturating(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
