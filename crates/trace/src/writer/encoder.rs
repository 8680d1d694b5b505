//! The events of one domain, written.

use std::io;

use super::Block;
use super::cache::StackCache;
use super::names::{FrameSink, Names};
use super::packet::{PacketBuffer, PacketSink};
use crate::event::Source;
use crate::format::{
    CacheCheck, EventBytes, MAX_HEADER, MAX_WRITTEN_PACKET, PacketHeader, VERSION, code,
};

/// A packet is closed when it has lasted this long. The format can express 33 seconds.
const MAX_SPAN: u64 = 30_000_000;

const MAX_ALLOC: usize = EventBytes::MAX;

/// The most that a promotion or collection takes.
const MAX_MARK: usize = 4 + 9;

/// The most that a frame takes in a stack.
const MAX_FRAME: usize = 10;

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
pub struct Encoder<M = Vec<u8>> {
    pid: u64,
    domain: u16,
    cache: StackCache,
    last_stack: Vec<u64>,
    /// How many of its frames are those that were given.
    intact: usize,
    /// The packet that is being filled.
    events: PacketBuffer<M>,
    /// Location events that must be written before it.
    names: Names<M>,
    /// Code words of the stack at hand.
    code_words: Vec<u8>,
    /// Codes of the stack at hand that the cache did not have.
    unnamed: Vec<u64>,
    check: CacheCheck,
    time_begin: u64,
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

impl<M: AsMut<[u8]>> Encoder<M> {
    /// An encoder that fills its packets in the given memory, each of [`MAX_WRITTEN_PACKET`] bytes
    /// at least: `events` for what happened, `names` for the locations that must be written before.
    ///
    /// After every call the packet in each of them is whole, as far as it goes, header included;
    /// where there is none, the first four bytes are 0.
    ///
    /// # Panics
    ///
    /// If the memory is too small.
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
            last_stack: Vec::new(),
            intact: 0,
            events,
            names: Names::new(names),
            code_words: Vec::new(),
            unnamed: Vec::new(),
            // The reader's cache is empty when the first packet comes; there is nothing to check.
            check: CacheCheck::NONE,
            time_begin: start_time,
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
    /// `stack` has the outermost caller first. `resolve` is asked for the frames of codes that
    /// this domain has not named yet.
    pub fn alloc(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: &[u64],
        resolve: impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        self.alloc_sharing(time, id, block, stack, 0, resolve, sink)
    }

    /// Like [`alloc`](Self::alloc), for a stack that is known to begin with `shared` frames of the
    /// last one, so that they need not be compared.
    #[expect(clippy::too_many_arguments, reason = "one more than the public one")]
    pub(super) fn alloc_sharing(
        &mut self,
        time: u64,
        id: u64,
        block: Block,
        stack: &[u64],
        shared: usize,
        mut resolve: impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        self.check_usable()?;
        let time = time.max(self.last_time);
        if id != self.next_id {
            self.start_packet_at(id, sink)?;
        }
        // Coding changes the cache. If it turns out that the event belongs to the next packet,
        // that packet is to be checked against the cache as it is now.
        let check_before = self.cache.check();
        // A stack that had to be shortened is not what it was.
        let shared = shared
            .min(self.intact)
            .min(self.last_stack.len())
            .min(stack.len());
        let common = shared + common_prefix(&self.last_stack[shared..], &stack[shared..]);
        let words = self.code_stack(common, &stack[common..], &mut resolve, sink)?;
        if self.events.room() < MAX_ALLOC + self.code_words.len() || self.lasts_too_long(time) {
            self.flush(sink)?;
            self.check = check_before;
        }

        let short = block.samples == 1 && block.source == Source::Minor;
        match (u32::try_from(block.length), u8::try_from(words)) {
            (Ok(length @ 1..=16), Ok(words)) if short => {
                let mut event = EventBytes::new(code::SHORT + length, time);
                event.put_vint(saturating(common as u64));
                event.put_byte(words);
                self.put(time, &event);
            }
            _ => {
                let mut event = EventBytes::new(code::ALLOC, time);
                event.put_vint(saturating(block.length));
                event.put_vint(saturating(block.samples));
                event.put_byte(match block.source {
                    Source::Minor => 0,
                    Source::Major => 1,
                    Source::External => 2,
                });
                event.put_vint(saturating(common as u64));
                event.put_u16(words);
                self.put(time, &event);
            }
        }
        self.events.put(&self.code_words);
        self.next_id = self.next_id.wrapping_add(1);
        self.events.seal(time, self.next_id);
        Ok(())
    }

    /// Encodes the promotion of a block.
    pub fn promote(&mut self, time: u64, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        // The reference reader does not take promotions of ids beyond the packet's, as they occur
        // when domains exchange blocks: a packet whose ids begin later makes it an earlier one.
        if id >= self.next_id {
            self.start_packet_at(id.wrapping_add(1), sink)?;
        }
        self.mark(code::PROMOTE, time, id, sink)
    }

    /// Encodes the collection of a block.
    pub fn collect(&mut self, time: u64, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        self.mark(code::COLLECT, time, id, sink)
    }

    /// Writes what has been encoded: the locations that are new, then the events.
    pub fn flush(&mut self, sink: &mut impl PacketSink) -> io::Result<()> {
        self.check_usable()?;
        self.broken = true;
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

    /// Codes the new part of a stack into `code_words`, and remembers the stack.
    fn code_stack(
        &mut self,
        common: usize,
        new: &[u64],
        resolve: &mut impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<u16> {
        self.last_stack.truncate(common);
        self.intact = usize::MAX;
        self.code_words.clear();
        let mut coding = self.cache.begin();
        let mut i = 0;
        if new.len() <= MAX_STACK / MAX_FRAME {
            // It fits whatever it is coded as: nearly all stacks do.
            self.last_stack.extend_from_slice(new);
            i = new.len();
            for &code in new {
                // The code 0 is never missing: it is what an empty cache is full of.
                if coding.push(code, &mut self.code_words) || code == 0 {
                    self.unnamed.push(code);
                }
            }
        }
        while let Some(&code) = new.get(i) {
            let room = MAX_STACK - self.code_words.len();
            let omit =
                room < (KEPT_INNERMOST + 3) * MAX_FRAME && new.len() - i > KEPT_INNERMOST + 1;
            let code = if omit {
                self.shortened += 1;
                self.intact = self.last_stack.len();
                i = new.len() - KEPT_INNERMOST;
                OMITTED_FRAMES
            } else {
                i += 1;
                code
            };
            self.last_stack.push(code);
            if coding.push(code, &mut self.code_words) || code == 0 {
                self.unnamed.push(code);
            }
        }
        let words = coding.end(&mut self.code_words);
        if !self.unnamed.is_empty() {
            self.name(resolve, sink)?;
        }
        Ok(words)
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
        for code in self.unnamed.drain(..) {
            self.names.add(code, header, resolve, sink)?;
        }
        self.broken = false;
        Ok(())
    }

    /// Encodes a promotion or a collection.
    fn mark(
        &mut self,
        code: u32,
        time: u64,
        id: u64,
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        let time = time.max(self.last_time);
        if self.events.room() < MAX_MARK || self.lasts_too_long(time) {
            self.flush(sink)?;
        }
        let delta = self.next_id.wrapping_sub(1).wrapping_sub(id).cast_signed();
        let mut event = EventBytes::new(code, time);
        event.put_vint(delta);
        self.put(time, &event);
        self.events.seal(time, self.next_id);
        Ok(())
    }

    /// Appends an event to the packet; opens one if there is none.
    fn put(&mut self, time: u64, event: &EventBytes) {
        self.last_time = time;
        if self.events.is_empty() {
            self.time_begin = time;
            self.events.open(self.header());
        }
        self.events.put_padded(event.bytes(), event.len());
    }

    fn lasts_too_long(&self, time: u64) -> bool {
        !self.events.is_empty() && time - self.time_begin > MAX_SPAN
    }

    /// Begins a packet whose first allocation has this id.
    fn start_packet_at(&mut self, id: u64, sink: &mut impl PacketSink) -> io::Result<()> {
        self.flush(sink)?;
        self.first_id = id;
        self.next_id = id;
        Ok(())
    }
}

/// How many leading frames two stacks share.
fn common_prefix(a: &[u64], b: &[u64]) -> usize {
    // Stacks can be thousands of frames deep, and mostly share nearly all of them.
    const STRIDE: usize = 16;
    let strides = a.chunks_exact(STRIDE).zip(b.chunks_exact(STRIDE));
    let skipped = STRIDE * strides.take_while(|(a, b)| a == b).count();
    let rest = a[skipped..].iter().zip(&b[skipped..]);
    skipped + rest.take_while(|(a, b)| a == b).count()
}

fn saturating(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
