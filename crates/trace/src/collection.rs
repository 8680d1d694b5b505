//! The work of the garbage collector, in packets that only Heapline reads.
//!
//! Each lane has packets of its own, with [`OWN_PID`] as their process. Behind the header comes the byte [`COLLECTIONS`], then
//! one piece of work after the other, in the order in which they ended:
//!
//! | field | |
//! | --- | --- |
//! | u8 | lower 3 bits: the kind; next 3: the phase; highest: counters follow |
//! | number | from the end of the one before to the end of this, in nanoseconds; the first one's from the start of the packet |
//! | number | its length in nanoseconds |
//! | u8 | with counters: how many |
//! | numbers | with counters: their differences to those before in the packet, zigzag |
//!
//! Readers skip counters that they do not know.

use std::borrow::BorrowMut;
use std::io;

use crate::format::{CacheCheck, OWN_PID, PacketHeader, VERSION};
use crate::varint::{MAX_NUMBER, encode_number, number};
use crate::writer::{PacketBuffer, PacketMemory, PacketSink};

/// The first byte behind the header of a packet with the work of the collector.
pub(crate) const COLLECTIONS: u8 = 4;

const HAS_COUNTERS: u8 = 0x80;

/// Number of counters that are written.
const COUNTERS: usize = 11;

/// The most that a piece of work takes.
const MAX_EVENT: usize = 2 + (2 + COUNTERS) * MAX_NUMBER;

/// A piece of work of the garbage collector, for which its domain stood still, or a reading of its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The domain that did the work.
    pub domain: u16,
    /// What was done.
    pub kind: CollectionKind,
    /// When it began, in nanoseconds since the start of the trace.
    pub start: u64,
    /// How long it took, in nanoseconds.
    pub length: u64,
    /// The phase of the major collector when it began; `None` if it is not known.
    pub phase: Option<Phase>,
    /// The counters when it had ended; `None` if they are not known.
    pub counters: Option<CollectorCounters>,
}

/// A kind of work of the garbage collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionKind {
    /// The minor heap was emptied.
    Minor = 1,
    /// A slice of a major collection.
    Slice,
    /// A whole major collection that the program asked for, in runtimes that have no slices for that.
    Forced,
    /// Finalisers ran. They are functions of the program: other collections may happen meanwhile.
    Finalisers,
    /// No work: the counters were read.
    Reading,
}

impl CollectionKind {
    fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Minor,
            Self::Slice,
            Self::Forced,
            Self::Finalisers,
            Self::Reading,
        ];
        all.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A phase of the major collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reachable blocks are marked.
    Mark = 1,
    /// What dies with blocks that were not marked is cleaned.
    Clean,
    /// Blocks that were not marked are freed.
    Sweep,
    /// Between collections.
    Idle,
}

impl Phase {
    fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Mark, Self::Clean, Self::Sweep, Self::Idle];
        all.into_iter().find(|phase| *phase as u8 == number)
    }
}

/// The counters of the collector: of a domain, or of the program in OCaml 4. Totals since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectorCounters {
    /// Words allocated on the minor heap, headers included.
    pub minor_words: u64,
    /// Words moved to the major heap.
    pub promoted_words: u64,
    /// Words allocated on the major heap, those promoted included.
    pub major_words: u64,
    /// Words of the major heap, in use or free.
    pub heap_words: u64,
    /// The part of them that is free.
    pub free_words: u64,
    /// Minor collections of the program.
    pub minor_collections: u64,
    /// Major collections that the program has completed.
    pub major_collections: u64,
    /// Compactions of the program.
    pub compactions: u64,
    /// Whole major collections that were done at once: for the program, or in OCaml 4 to find out whether to compact the heap.
    pub forced_major_collections: u64,
    /// The part of `minor_words` that the sampler allocated for itself: some words for each sample.
    pub sampler_minor_words: u64,
    /// The part of `major_words` that the sampler allocated for itself.
    pub sampler_major_words: u64,
}

impl CollectorCounters {
    /// In the order in which they are written.
    fn fields(&self) -> [u64; COUNTERS] {
        [
            self.minor_words,
            self.promoted_words,
            self.major_words,
            self.heap_words,
            self.free_words,
            self.minor_collections,
            self.major_collections,
            self.compactions,
            self.forced_major_collections,
            self.sampler_minor_words,
            self.sampler_major_words,
        ]
    }

    fn from_fields(fields: [u64; COUNTERS]) -> Self {
        let [
            minor_words,
            promoted_words,
            major_words,
            heap_words,
            free_words,
            minor_collections,
            major_collections,
            compactions,
            forced_major_collections,
            sampler_minor_words,
            sampler_major_words,
        ] = fields;
        Self {
            minor_words,
            promoted_words,
            major_words,
            heap_words,
            free_words,
            minor_collections,
            major_collections,
            compactions,
            forced_major_collections,
            sampler_minor_words,
            sampler_major_words,
        }
    }
}

/// Encodes the work of the collector in one domain.
///
/// Like [`Encoder`](crate::Encoder) it hands whole packets to a [`PacketSink`], and can fill them in memory that outlives the
/// process.
#[derive(Debug)]
pub struct CollectionEncoder<M = Box<PacketMemory>> {
    domain: u16,
    /// The start of the trace, in microseconds since the Unix epoch.
    start_time: u64,
    packet: PacketBuffer<M>,
    /// The end of the last piece of work in the packet, in nanoseconds since the start of the trace.
    last_end: u64,
    /// The last counters in the packet.
    last: [u64; COUNTERS],
}

impl CollectionEncoder {
    /// An encoder for a domain of a trace that began at `start_time` (microseconds since the Unix epoch).
    #[must_use]
    pub fn new(domain: u16, start_time: u64) -> Self {
        Self::with_packet(domain, start_time, PacketBuffer::new())
    }
}

impl<M: BorrowMut<PacketMemory>> CollectionEncoder<M> {
    /// An encoder that fills its packets in the given memory, where the packet is whole after every call; if there is none, the
    /// first four bytes are 0.
    #[must_use]
    pub fn within(domain: u16, start_time: u64, memory: M) -> Self {
        Self::with_packet(domain, start_time, PacketBuffer::within(memory))
    }

    fn with_packet(domain: u16, start_time: u64, packet: PacketBuffer<M>) -> Self {
        Self {
            domain,
            start_time,
            packet,
            last_end: 0,
            last: [0; COUNTERS],
        }
    }

    /// Encodes a piece of work. One that ends before the last one ended is taken to end with it; its domain is the encoder's.
    pub fn push(&mut self, work: &Collection, sink: &mut impl PacketSink) -> io::Result<()> {
        if self.packet.room() < 1 + MAX_EVENT {
            self.flush(sink)?;
        }
        let is_first = self.packet.is_empty();
        let end = work.start.saturating_add(work.length).max(self.last_end);
        let micros = self.start_time.saturating_add(end / 1000);
        if is_first {
            self.last_end = end / 1000 * 1000;
            self.last = [0; COUNTERS];
            self.packet.open(PacketHeader {
                size: 0,
                time_begin: micros,
                time_end: micros,
                flush_duration: 0,
                version: VERSION,
                pid: OWN_PID,
                domain: self.domain,
                check: CacheCheck::NONE,
                first_id: 0,
                end_id: 0,
            });
        }
        let mut event = Event::default();
        let phase = work.phase.map_or(0, |phase| phase as u8);
        let flag = if work.counters.is_some() {
            HAS_COUNTERS
        } else {
            0
        };
        event.put(&[work.kind as u8 | phase << 3 | flag]);
        event.number(end - self.last_end);
        event.number(work.length);
        if let Some(counters) = work.counters {
            event.put(&[COUNTERS.to_le_bytes()[0]]);
            let fields = counters.fields();
            for (now, before) in fields.into_iter().zip(self.last) {
                event.number(zigzag(now.wrapping_sub(before).cast_signed()));
            }
            self.last = fields;
        }
        self.last_end = end;
        self.packet.set_time_end(micros);
        let first: &[u8] = if is_first { &[COLLECTIONS] } else { &[] };
        let end = self.packet.put([first, event.bytes()]);
        self.packet.seal(end);
        Ok(())
    }

    /// Writes what has been encoded.
    pub fn flush(&mut self, sink: &mut impl PacketSink) -> io::Result<()> {
        if self.packet.is_empty() {
            return Ok(());
        }
        self.packet.write(sink)
    }
}

/// The bytes of a piece of work.
struct Event {
    bytes: [u8; MAX_EVENT],
    len: usize,
}

impl Default for Event {
    fn default() -> Self {
        Self {
            bytes: [0; MAX_EVENT],
            len: 0,
        }
    }
}

impl Event {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn number(&mut self, number: u64) {
        let mut bytes = [0; MAX_NUMBER];
        let len = encode_number(&mut bytes, number);
        self.put(&bytes[..len]);
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Reads the work of the collector behind the first byte of a packet's payload, and hands it over from that with number `from`
/// on. Returns how many there are; `None` if the packet is damaged: what comes before that is handed over.
pub(crate) fn decode_collections(
    header: &PacketHeader,
    start_time: u64,
    mut bytes: &[u8],
    from: usize,
    mut found: impl FnMut(Collection),
) -> Option<usize> {
    let mut end = header
        .time_begin
        .saturating_sub(start_time)
        .checked_mul(1000)?;
    let mut fields = [0u64; COUNTERS];
    let mut count = 0;
    while let Some((&head, rest)) = bytes.split_first() {
        bytes = rest;
        end = end.checked_add(number(&mut bytes)?)?;
        let length = number(&mut bytes)?;
        let has_counters = head & HAS_COUNTERS != 0;
        if has_counters {
            let (&written, rest) = bytes.split_first()?;
            bytes = rest;
            for at in 0..usize::from(written) {
                let change = unzigzag(number(&mut bytes)?);
                if let Some(field) = fields.get_mut(at) {
                    *field = field.wrapping_add(change.cast_unsigned());
                }
            }
        }
        // A later version may have other kinds.
        if let Some(kind) = CollectionKind::from_number(head & 7)
            && count >= from
        {
            found(Collection {
                domain: header.domain,
                kind,
                start: end.checked_sub(length)?,
                length,
                phase: Phase::from_number(head >> 3 & 7),
                counters: has_counters.then(|| CollectorCounters::from_fields(fields)),
            });
        }
        count += 1;
    }
    Some(count)
}

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)).cast_unsigned()
}

fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -((n & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decoder, Options, Step, TraceInfo, write_info};

    const START: u64 = 1_700_000_000_000_000;

    fn info() -> TraceInfo {
        TraceInfo {
            sample_rate: 1e-4,
            word_size: 64,
            executable_name: "program".into(),
            host_name: "host".into(),
            ocaml_runtime_params: "v=0".into(),
            seed: None,
            pid: 42,
            start_time: START,
            initial_domain: 0,
            context: None,
        }
    }

    fn work(domain: u16, n: u64) -> Collection {
        let kinds = [
            CollectionKind::Minor,
            CollectionKind::Slice,
            CollectionKind::Forced,
            CollectionKind::Finalisers,
            CollectionKind::Reading,
        ];
        let phases = [
            None,
            Some(Phase::Mark),
            Some(Phase::Clean),
            Some(Phase::Sweep),
            Some(Phase::Idle),
        ];
        let at = usize::try_from(n).unwrap();
        Collection {
            domain,
            kind: kinds[at % 5],
            start: n * 1_234_567 + 891,
            length: n % 1000 * 1000,
            phase: phases[at / 5 % 5],
            counters: (!n.is_multiple_of(11)).then(|| {
                CollectorCounters::from_fields([
                    n * 262_144,
                    n * 1000,
                    n * 3000,
                    n * 7919 % 100_000,
                    u64::MAX - n,
                    n,
                    n / 10,
                    0,
                    1,
                    n * 7,
                    n,
                ])
            }),
        }
    }

    struct Found(Vec<Collection>);

    impl crate::Visitor for Found {
        fn alloc(&mut self, _: &crate::Alloc<'_>, _: &crate::Locations) {}
        fn promote(&mut self, _: crate::Mark, _: &crate::Locations) {}
        fn collect(&mut self, _: crate::Mark, _: &crate::Locations) {}
        fn collection(&mut self, work: &Collection) {
            self.0.push(*work);
        }
    }

    fn decode(bytes: &[u8]) -> (Vec<Collection>, u64) {
        let mut decoder = Decoder::new(Options::new());
        decoder.push(bytes);
        decoder.finish();
        let mut found = Found(Vec::new());
        while decoder.visit_packet(&mut found).unwrap() != Step::End {}
        (found.0, decoder.damage().count)
    }

    fn trace() -> (Vec<u8>, Vec<Collection>) {
        let mut bytes = Vec::new();
        write_info(&info(), &mut bytes).unwrap();
        let mut expected = Vec::new();
        for domain in [0, 3] {
            let mut encoder = CollectionEncoder::new(domain, START);
            for n in 0..5000 {
                encoder.push(&work(domain, n), &mut bytes).unwrap();
                expected.push(work(domain, n));
            }
            encoder.flush(&mut bytes).unwrap();
        }
        (bytes, expected)
    }

    #[test]
    fn work_arrives_as_it_was_sent() {
        let (bytes, expected) = trace();
        let (found, flaws) = decode(&bytes);
        assert_eq!(flaws, 0);
        assert!(found == expected);
        let size = (bytes.len() / expected.len()) as u64;
        assert!(size < 40, "{size} bytes each");
    }

    #[test]
    fn damage_loses_what_is_behind_it_in_a_packet() {
        let (bytes, expected) = trace();
        // Ends in the middle of the last packet.
        let (found, flaws) = decode(&bytes[..bytes.len() - 3]);
        assert_eq!(flaws, 1);
        assert!(found.len() < expected.len() && expected.starts_with(&found));
        for at in (0..bytes.len()).step_by(997) {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let mut decoder = Decoder::new(Options::new());
                decoder.push(&bytes);
                decoder.finish();
                let mut found = Found(Vec::new());
                while decoder
                    .visit_packet(&mut found)
                    .is_ok_and(|step| step != Step::End)
                {}
                assert!(found.0.len() <= 2 * bytes.len());
            }
        }
    }

    #[test]
    fn what_ends_before_the_last_one_ends_with_it() {
        let mut bytes = Vec::new();
        write_info(&info(), &mut bytes).unwrap();
        let mut encoder = CollectionEncoder::new(0, START);
        let first = work(0, 900);
        encoder.push(&first, &mut bytes).unwrap();
        encoder.push(&work(0, 1), &mut bytes).unwrap();
        encoder.flush(&mut bytes).unwrap();
        let (found, flaws) = decode(&bytes);
        assert_eq!(flaws, 0);
        assert_eq!(found[1].start + found[1].length, first.start + first.length);
    }
}
