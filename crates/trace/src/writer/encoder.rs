//! The events of one domain, written.

use std::borrow::BorrowMut;
use std::io;

use super::cache::{MAX_FRAME, MAX_FRAMES, StackCache};
use super::names::{FrameSink, Names};
use super::packet::{PacketBuffer, PacketMemory, PacketSink};
use super::stack::{Stack, TaggedCode};
use super::{Block, zeros};
use crate::event::Source;
use crate::format::{
    CacheCheck, MAX_ALLOC, MAX_HEADER, MAX_MARK, MAX_WRITTEN_PACKET, PacketHeader, VERSION, code,
    event_head, event_word, put_vint, small_vint,
};

/// A packet is closed when it has lasted this long. The format can express 33 seconds.
const MAX_SPAN: u64 = 30_000_000;

/// The most that a stack may take: an event must fit into a packet.
const MAX_STACK: usize = MAX_WRITTEN_PACKET - MAX_HEADER - MAX_ALLOC;

/// Innermost frames that are kept of a stack that is too large all the same.
const KEPT_INNERMOST: usize = 32;

/// The code that stands for the frames left out of a stack that no packet can hold.
pub const OMITTED_FRAMES: u64 = 0x3fff_ffff_ffff_fff7;

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
    cache: StackCache,
    last_stack: Stack,
    /// How many of its frames are those that were given.
    intact: usize,
    /// The packet that is being filled.
    events: PacketBuffer<M>,
    /// Location events that must be written before it.
    names: Names<M>,
    /// Code words of a stack that may belong to the next packet.
    code_words: Box<PacketMemory>,
    /// The rest of its event.
    event: Vec<u8>,
    check: CacheCheck,
    time_begin: u64,
    /// The first time at which the packet takes no events any more: at any if it has none yet.
    time_full: u64,
    last_time: u64,
    first_id: u64,
    next_id: u64,
    shortened: u64,
    /// Whether a packet could not be written: the reader's state is not ours any more.
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
        events: PacketBuffer<M>,
        names: PacketBuffer<M>,
    ) -> Self {
        Self {
            pid,
            domain,
            cache: StackCache::new(),
            last_stack: Stack::default(),
            intact: 0,
            events,
            names: Names::new(names),
            code_words: zeros(),
            event: Vec::new(),
            // The reader's cache is empty when the first packet comes; there is nothing to check.
            check: CacheCheck::NONE,
            time_begin: start_time,
            time_full: 0,
            last_time: start_time,
            first_id: 0,
            next_id: 0,
            shortened: 0,
            broken: false,
        }
    }

    /// How many stacks had to be shortened because no packet can hold them.
    ///
    /// That takes thousands of different frames, never seen before, in one stack. The outermost
    /// frames and the 32 innermost ones are kept then, with [`OMITTED_FRAMES`] between.
    #[must_use]
    pub fn shortened_stacks(&self) -> u64 {
        self.shortened
    }

    /// Encodes an allocation.
    ///
    /// `stack` has the innermost function first. `resolve` is asked for the frames of codes that
    /// this domain has not named yet.
    #[inline]
    pub fn alloc(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: &[TaggedCode],
        resolve: impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        self.alloc_sharing(time, id, block, stack, 0, resolve, sink)
    }

    /// Like [`alloc`](Self::alloc), for a stack that is known to share its `shared` outermost
    /// frames with the last one, so that they need not be compared.
    #[expect(clippy::too_many_arguments, reason = "one more than the public one")]
    #[inline]
    pub(super) fn alloc_sharing(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: &[TaggedCode],
        shared: usize,
        mut resolve: impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        let time = time.max(self.last_time);
        if id == self.next_id
            && time < self.time_full
            && let Some(code) = short_code(block)
            && self.alloc_short(time, code, stack, shared)
        {
            if !self.cache.missed().is_empty() {
                self.name(&mut resolve, sink)?;
            }
            self.seal_alloc(time);
            return Ok(());
        }
        self.alloc_any(time, id, block, stack, shared, &mut resolve, sink)
    }

    /// Encodes an allocation as nearly all are: small, with a stack that is not much deeper than the
    /// last one, and sure to fit into the packet, so that it is written right there. Otherwise does
    /// nothing, and returns false.
    #[expect(clippy::inline_always, reason = "its arguments are at hand")]
    #[inline(always)]
    fn alloc_short(&mut self, time: u64, code: u32, stack: &[TaggedCode], shared: usize) -> bool {
        let common = self.common_frames(stack, shared);
        let new = &stack[..stack.len() - common];
        let (memory, start) = self.events.memory();
        let most = start + MAX_ALLOC + MAX_FRAME * new.len();
        if new.len() >= MAX_FRAMES || most > memory.len() {
            return false;
        }
        let (Ok(common_short), Some(head)) = (
            u16::try_from(common),
            memory.get_mut(start..).and_then(<[u8]>::first_chunk_mut),
        ) else {
            return false;
        };
        // What is behind the number is written over.
        let (number, len) = small_vint(common_short);
        *head = (u64::from(event_word(code, time)) | number << 32).to_le_bytes();
        let count_at = start + 4 + len;
        self.last_stack.change(common, new);
        self.intact = usize::MAX;
        self.cache.begin();
        let end = self.cache.code(new, memory, count_at + 1);
        let [words, ..] = self.cache.words().to_le_bytes();
        memory[count_at] = words;
        self.events.end_at(end);
        true
    }

    /// How many of its outermost frames a stack has in common with the last one.
    #[inline]
    fn common_frames(&self, stack: &[TaggedCode], shared: usize) -> usize {
        // A stack that had to be shortened is not what it was.
        let known = shared.min(self.intact);
        self.last_stack.shared_with(stack, known)
    }

    /// Encodes an allocation whatever it is, into whatever packet.
    #[expect(clippy::too_many_arguments, reason = "one more than the public one")]
    #[cold]
    fn alloc_any(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: &[TaggedCode],
        shared: usize,
        resolve: &mut impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        self.check_usable()?;
        if id != self.next_id {
            self.start_packet_at(id, sink)?;
        }
        // Coding changes the cache. If it turns out that the event belongs to the next packet,
        // that packet is to be checked against the cache as it is now.
        let check_before = self.cache.check();
        let common = self.common_frames(stack, shared);
        let len = self.code_stack(common, &stack[..stack.len() - common]);
        let words = self.cache.words();
        self.name(resolve, sink)?;
        if self.events.room() < MAX_ALLOC + len || self.lasts_too_long(time) {
            self.flush(sink)?;
            self.check = check_before;
        }
        self.event.clear();
        match (short_code(block), u8::try_from(words)) {
            (Some(code), Ok(words)) => {
                self.event.extend_from_slice(&event_head(code, time));
                put_vint(&mut self.event, saturating(common as u64));
                self.event.push(words);
            }
            _ => {
                self.event.extend_from_slice(&event_head(code::ALLOC, time));
                put_vint(&mut self.event, saturating(block.length));
                put_vint(&mut self.event, saturating(block.samples));
                self.event.push(match block.source {
                    Source::Minor => 0,
                    Source::Major => 1,
                    Source::External => 2,
                });
                put_vint(&mut self.event, saturating(common as u64));
                // A packet has no room for more.
                let words = u16::try_from(words).unwrap_or(u16::MAX);
                self.event.extend_from_slice(&words.to_le_bytes());
            }
        }
        self.open(time);
        self.events.put(&self.event);
        self.events.put(&self.code_words[..len]);
        self.seal_alloc(time);
        Ok(())
    }

    /// Encodes the promotion of a block.
    #[inline]
    pub fn promote(&mut self, time: u64, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        self.mark(code::PROMOTE, time, id, sink)
    }

    /// Encodes the collection of a block.
    #[inline]
    pub fn collect(&mut self, time: u64, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        self.mark(code::COLLECT, time, id, sink)
    }

    /// Writes what has been encoded: the locations that are new, then the events.
    pub fn flush(&mut self, sink: &mut impl PacketSink) -> io::Result<()> {
        self.check_usable()?;
        self.broken = true;
        self.time_full = 0;
        self.names.flush(sink)?;
        if !self.events.is_empty() {
            self.events.write(sink)?;
            self.cache.next_check();
        }
        self.broken = false;
        self.first_id = self.next_id;
        self.check = self.cache.check();
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
            time_begin: if self.events.is_empty() {
                self.last_time
            } else {
                self.time_begin
            },
            time_end: self.last_time,
            version: VERSION,
            pid: self.pid,
            domain: self.domain,
            check: self.check,
            first_id: self.first_id,
            end_id: self.next_id,
        }
    }

    /// Codes the new part of a stack into `code_words`, and remembers the stack. Returns how many
    /// bytes it took.
    fn code_stack(&mut self, common: usize, new: &[TaggedCode]) -> usize {
        const OMITTED: TaggedCode = TaggedCode::new(OMITTED_FRAMES);
        self.last_stack.change(common, new);
        self.intact = usize::MAX;
        let mut len = 0;
        let mut left = new;
        self.cache.begin();
        while !left.is_empty() {
            // Frames that fit whatever they are coded as. If not all do, then the innermost must,
            // and what stands for those before them.
            let mut fit = (MAX_STACK - len) / MAX_FRAME;
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
                self.last_stack.extend(inner);
            }
            len = self.cache.code(outer, &mut self.code_words, len);
            left = inner;
        }
        len
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
        let time_full = std::mem::take(&mut self.time_full);
        for tagged in self.cache.missed().drain(..) {
            self.names.add(tagged.code(), header, resolve, sink)?;
        }
        self.time_full = time_full;
        self.broken = false;
        Ok(())
    }

    /// Encodes a promotion or a collection.
    #[inline]
    fn mark(
        &mut self,
        code: u32,
        time: u64,
        id: u64,
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        let time = time.max(self.last_time);
        let age = self.next_id.wrapping_sub(1).wrapping_sub(id);
        if time < self.time_full
            && let Ok(age) = u16::try_from(age)
            && let (memory, start) = self.events.memory()
            && let Some(place) = memory.get_mut(start..).and_then(<[u8]>::first_chunk_mut)
        {
            let (age, len) = small_vint(age);
            *place = (u64::from(event_word(code, time)) | age << 32).to_le_bytes();
            self.events.end_at(start + 4 + len);
            self.seal(time);
            return Ok(());
        }
        self.mark_any(code, time, id, sink)
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
        // The reference reader does not take promotions of ids beyond the packet's, as they occur
        // when domains exchange blocks: a packet whose ids begin later makes it an earlier one.
        if code == code::PROMOTE && id >= self.next_id {
            self.start_packet_at(id.wrapping_add(1), sink)?;
        }
        if self.events.room() < MAX_MARK || self.lasts_too_long(time) {
            self.flush(sink)?;
        }
        let age = self.next_id.wrapping_sub(1).wrapping_sub(id).cast_signed();
        self.event.clear();
        self.event.extend_from_slice(&event_head(code, time));
        put_vint(&mut self.event, age);
        self.open(time);
        self.events.put(&self.event);
        self.seal(time);
        Ok(())
    }

    /// Opens a packet if there is none.
    fn open(&mut self, time: u64) {
        if self.events.is_empty() {
            self.last_time = time;
            self.time_begin = time;
            self.time_full = time.saturating_add(MAX_SPAN + 1);
            self.events.open(self.header());
        }
    }

    #[inline]
    fn seal_alloc(&mut self, time: u64) {
        self.next_id = self.next_id.wrapping_add(1);
        self.seal(time);
    }

    /// Makes the event that was appended part of the packet.
    #[inline]
    fn seal(&mut self, time: u64) {
        self.last_time = time;
        self.events.seal(time, self.next_id);
    }

    fn lasts_too_long(&self, time: u64) -> bool {
        !self.events.is_empty() && time >= self.time_full
    }

    /// Begins a packet whose first allocation has this id.
    fn start_packet_at(&mut self, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        self.flush(sink)?;
        self.first_id = id;
        self.next_id = id;
        Ok(())
    }
}

/// The code of the event that stands for a small block, if it is one.
#[inline]
fn short_code(block: Block) -> Option<u32> {
    match block {
        Block {
            length: length @ 1..=16,
            samples: 1,
            source: Source::Minor,
        } => Some(code::SHORT + u32::from(length.to_le_bytes()[0])),
        _ => None,
    }
}

fn saturating(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
