//! The sans-IO decoder: bytes in, events out.

mod clock;
mod domain;
mod events;
mod framing;
mod input;
mod measure;
mod names;
mod resume;

use crate::coarse::{CoarseHistory, WithMerged};
use crate::collection::Collection;
use crate::damage::{Damage, Flaw, FlawKind};
use crate::ending::EarlyEnd;
use crate::error::Error;
use crate::event::Event;
use crate::format::{NO_CHECK, PacketHeader, TIME_BITS, code};
use crate::info::TraceInfo;
use crate::location::Locations;
use crate::visitor::{OnEvent, Visitor};
use clock::PacketTime;
use domain::{Domain, Domains};
use events::{Cursor, Outcome, Packet};
use framing::{End, Frame, Framed};
use input::Input;
pub(crate) use measure::{PacketEnd, measure};
use resume::OpenPackets;
pub use resume::PacketPart;

/// Options for reading a trace. By default, everything is read, and damage is tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub struct Options {
    stacks: bool,
    strict: bool,
    eager: bool,
    partial_packets: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stacks: true,
            strict: false,
            eager: false,
            partial_packets: true,
        }
    }
}

impl Options {
    /// Everything, forgivingly.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets if call stacks are decoded (default: yes). Reading is about twice as fast without.
    #[must_use]
    pub fn stacks(mut self, yes: bool) -> Self {
        self.stacks = yes;
        self
    }

    /// Sets if any damage is an error (default: no): everything that memtrace's own reader refuses
    /// (cache verifiers, ids, times, locations) and what it skips, such as packets of a forked
    /// child or a truncated packet. Without stacks there are no verifiers to check.
    #[must_use]
    pub fn strict(mut self, yes: bool) -> Self {
        self.strict = yes;
        self
    }

    /// Sets if a packet is returned as soon as its last byte is available (default: no). Otherwise
    /// the decoder waits for the four bytes that follow, by which it detects a damaged size field.
    /// For traces that are still being written: the next packet may be half a minute away.
    #[must_use]
    pub fn eager(mut self, yes: bool) -> Self {
        self.eager = yes;
        self
    }

    /// Sets if the events of a packet that is truncated by the end of the file are used (default:
    /// yes; memtrace's reader does not use them).
    #[must_use]
    pub fn partial_packets(mut self, yes: bool) -> Self {
        self.partial_packets = yes;
        self
    }
}

/// The result of [`Decoder::next_packet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It decoded a packet and handed out its events.
    Packet(PacketSummary),
    /// It needs more input.
    NeedInput,
    /// There was no more to decode after [`Decoder::finish`].
    End,
}

/// A summary of a decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSummary {
    /// The domain that wrote it.
    pub domain: u16,
    /// Events that it held, location names not counted.
    pub events: u64,
    /// The expected offset of the next packet, in bytes from the start of the trace.
    pub end_offset: u64,
}

/// Decodes a trace whose bytes are pushed in.
///
/// The decoder does no input of its own, so that files, pipes, sockets and files that are still
/// growing are all the same to it. [`Reader`](crate::Reader) drives one from anything that
/// implements [`Read`](std::io::Read).
///
/// ```
/// use heapline_trace::{Decoder, Event, Options, Step};
///
/// fn allocations(chunks: impl Iterator<Item = Vec<u8>>) -> Result<u64, heapline_trace::Error> {
///     let mut decoder = Decoder::new(Options::new());
///     let mut chunks = chunks.fuse();
///     let mut allocations = 0;
///     loop {
///         match decoder.next_packet(|event, _| {
///             allocations += u64::from(matches!(event, Event::Alloc(_)));
///         })? {
///             Step::Packet(_) => {}
///             Step::NeedInput => match chunks.next() {
///                 Some(chunk) => decoder.push(&chunk),
///                 None => decoder.finish(),
///             },
///             Step::End => return Ok(allocations),
///         }
///     }
/// }
/// # let trace = include_bytes!("../../../../fixtures/mix-ocaml53/trace.ctf");
/// # let chunks = trace.chunks(1000).map(<[u8]>::to_vec);
/// assert_eq!(allocations(chunks)?, 2787);
/// # Ok::<(), heapline_trace::Error>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    options: Options,
    input: Input,
    trace: Option<Trace>,
    domains: Domains,
    locations: Locations,
    coarse: CoarseHistory,
    /// The work of the collector in packets that were skipped on the way to the next one of events.
    collections: Vec<Collection>,
    damage: Damage,
    packets: u64,
    /// The number of losses that cannot be attributed to a domain.
    losses: u64,
    /// The start of a run of bytes that are not a packet, and its length so far.
    garbage: Option<(u64, u64)>,
    open: OpenPackets,
}

#[derive(Debug)]
struct Trace {
    info: TraceInfo,
    version: u16,
}

impl Decoder {
    /// A decoder that has seen nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            input: Input::new(),
            trace: None,
            domains: Domains::default(),
            locations: Locations::default(),
            coarse: CoarseHistory::default(),
            collections: Vec::new(),
            damage: Damage::default(),
            packets: 0,
            losses: 0,
            garbage: None,
            open: OpenPackets::default(),
        }
    }

    /// Adds bytes to be decoded. [`space`](Self::space) avoids the copy.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.input.space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            self.input.filled(n);
            bytes = &bytes[n..];
        }
    }

    /// A buffer to read into, never empty; say with [`filled`](Self::filled) how much was read.
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space()
    }

    /// Says that the first `n` bytes of [`space`](Self::space) are input now.
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// Says that no more input will come.
    pub fn finish(&mut self) {
        self.input.finish();
    }

    /// Like [`finish`](Self::finish), because the compressed data cannot be read any further.
    pub fn finish_broken(&mut self, reason: String) -> Result<(), Error> {
        let offset = self.input.offset() + self.input.unread().len() as u64;
        self.input.finish();
        if self.trace.is_none() && self.input.unread().is_empty() {
            return Err(Error::BrokenCompression { reason });
        }
        self.flaw(offset, FlawKind::BrokenCompression { reason })
    }

    /// The metadata of the trace, once its first packet was decoded.
    #[must_use]
    pub fn info(&self) -> Option<&TraceInfo> {
        self.trace.as_ref().map(|trace| &trace.info)
    }

    /// The version of the trace's format, once its first packet was decoded.
    #[must_use]
    pub fn version(&self) -> Option<u16> {
        self.trace.as_ref().map(|trace| trace.version)
    }

    /// The locations seen so far.
    #[must_use]
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// The intervals whose events are summed up, and the blocks that were merged there.
    #[must_use]
    pub fn coarse(&self) -> &CoarseHistory {
        &self.coarse
    }

    /// The damage found so far.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Packets decoded so far, the first one included.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes decoded or skipped so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Decodes the next packet and hands its events to `on_event`, in order, with the locations
    /// known so far.
    pub fn next_packet(
        &mut self,
        on_event: impl FnMut(Event<'_>, &Locations),
    ) -> Result<Step, Error> {
        self.visit_packet(&mut OnEvent(on_event))
    }

    /// Decodes the next packet like [`next_packet`](Self::next_packet), without a closure: a
    /// [`Visitor`] has a method for each kind of event, which saves time in tight loops.
    pub fn visit_packet(&mut self, visitor: &mut impl Visitor) -> Result<Step, Error> {
        let framed = self.frame();
        for work in self.collections.drain(..) {
            visitor.collection(&work);
        }
        let frame = match framed? {
            Framed::Packet(frame) => frame,
            Framed::NeedInput => return Ok(Step::NeedInput),
            Framed::End => return Ok(Step::End),
        };
        let events = match &self.trace {
            None => {
                self.trace = Some(self.read_info(&frame)?);
                if let Some(end) = EarlyEnd::of(&frame.header) {
                    self.end_early(end);
                }
                0
            }
            Some(_) if self.is_info(&frame) => {
                self.input.abandon();
                let kind = FlawKind::SecondTrace;
                self.flaw(self.input.offset(), kind)?;
                return Ok(Step::End);
            }
            Some(trace) => {
                let start_time = trace.info.start_time;
                if self.options.stacks {
                    self.read_events::<true>(&frame, start_time, visitor)?
                } else {
                    self.read_events::<false>(&frame, start_time, visitor)?
                }
            }
        };
        self.packets += 1;
        self.input.consume(frame.extent);
        Ok(Step::Packet(PacketSummary {
            domain: frame.header.domain,
            events,
            end_offset: self.input.offset(),
        }))
    }

    /// Notes that the recording has ended before its program. That is part of the first packet, but
    /// not while the program is being recorded.
    pub fn end_early(&mut self, end: EarlyEnd) {
        // Not an error where damage is: memtrace's reader takes it, and all that is there is right.
        self.damage.record(Flaw {
            offset: 0,
            kind: FlawKind::EndedEarly(end),
        });
    }

    /// Notes a flaw, or makes it an error.
    fn flaw(&mut self, offset: u64, kind: FlawKind) -> Result<(), Error> {
        record(&mut self.damage, self.options.strict, offset, kind)
    }

    fn read_info(&self, frame: &Frame) -> Result<Trace, Error> {
        let header = &frame.header;
        let bad = |reason| Error::BadTraceInfo { reason };
        let payload = self
            .input
            .unread()
            .get(header.len()..frame.extent)
            .unwrap_or_default();
        let mut cursor = Cursor::new(payload);
        let mut read = || -> Option<(u32, TraceInfo)> {
            let head = cursor.u32()?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (sample_rate, word_size) = (f64::from_bits(cursor.u64()?), cursor.u8()?);
            let (executable_name, host_name) = (text(cursor.string()?), text(cursor.string()?));
            let (ocaml_runtime_params, seed) = TraceInfo::split_seed(text(cursor.string()?));
            let info = TraceInfo {
                sample_rate,
                word_size,
                executable_name,
                host_name,
                ocaml_runtime_params,
                seed,
                pid: cursor.u64()?,
                start_time: header.time_begin,
                initial_domain: header.domain,
                context: if header.version >= 2 {
                    Some(text(cursor.string()?)).filter(|context| !context.is_empty())
                } else {
                    None
                },
            };
            Some((head, info))
        };
        let (head, info) = read().ok_or(bad("it ends too early"))?;
        if head >> TIME_BITS != code::INFO {
            return Err(bad("it does not start a trace"));
        }
        // At the lowest rate one sample stands for terabytes.
        if !(1e-12..=1.0).contains(&info.sample_rate) {
            return Err(bad("its sampling rate is not between 1e-12 and 1"));
        }
        if ![8, 32, 64].contains(&info.word_size) {
            return Err(bad("its word size is not 8, 32 or 64 bits"));
        }
        if self.options.strict && !cursor.is_at_end() {
            return Err(bad("it is too long"));
        }
        Ok(Trace {
            info,
            version: header.version,
        })
    }

    /// Returns true if a packet begins another trace. One event code is not enough evidence: it may
    /// be a damaged one.
    fn is_info(&self, frame: &Frame) -> bool {
        let at = frame.header.len();
        let code = self
            .input
            .unread()
            .get(at + 3)
            .map(|byte| u32::from(byte >> 1));
        code == Some(code::INFO) && self.read_info(frame).is_ok()
    }

    fn read_events<const STACKS: bool>(
        &mut self,
        frame: &Frame,
        start_time: u64,
        visitor: &mut impl Visitor,
    ) -> Result<u64, Error> {
        let offset = self.input.offset();
        let time = self.begin_packet::<STACKS>(&frame.header, start_time, offset)?;
        let header = &frame.header;
        let packet = Packet {
            bytes: self.input.padded(header.len(), frame.extent),
            end: frame.extent - header.len(),
            number: header.domain,
            time,
            first_id: header.first_id,
            start: 0,
            last_delta: 0,
        };
        let domain = self
            .domains
            .get(header.domain, start_time, self.losses, STACKS);
        let room_for_frames = domain.stack.capacity();
        let outcome = if self.coarse.has_merged() {
            let mut visitor = WithMerged::new(&self.coarse, visitor);
            events::decode::<STACKS>(&packet, domain, &mut self.locations, &mut visitor)
        } else {
            events::decode::<STACKS>(&packet, domain, &mut self.locations, visitor)
        };
        let mut report = Report {
            damage: &mut self.damage,
            strict: self.options.strict,
            offset,
        };
        report.outcome(&outcome, frame, domain)?;
        self.domains.limit_stacks(header.domain, room_for_frames);
        Ok(outcome.events)
    }

    /// Checks the state of a domain against the header of its next packet, which is at an offset.
    /// Returns the times of the packet's events.
    fn begin_packet<const STACKS: bool>(
        &mut self,
        header: &PacketHeader,
        start_time: u64,
        offset: u64,
    ) -> Result<PacketTime, Error> {
        let mut report = Report {
            damage: &mut self.damage,
            strict: self.options.strict,
            offset,
        };
        let domain = self
            .domains
            .get(header.domain, start_time, self.losses, STACKS);
        // Until version 3 there is one domain, whose ids have no gaps.
        let missing = header.first_id.saturating_sub(domain.next_id);
        if header.version < 3 && missing > 0 && header.ids_are_plausible() {
            domain.stacks_uncertain = true;
            domain.names_uncertain = true;
            report.flaw(FlawKind::MissingPackets {
                allocations: missing,
            })?;
        }
        // Bytes were lost that may have been packets of this domain. If they held allocations,
        // ids are missing; if they held names, there is no telling.
        if domain.losses_seen != self.losses {
            domain.losses_seen = self.losses;
            domain.names_uncertain = true;
            domain.stacks_uncertain |= domain.next_id != header.first_id;
        }
        if STACKS && header.check.bucket != NO_CHECK {
            let location = self.locations.find(header.check.code);
            if !domain.agrees_with(header.check, location) {
                if !domain.stacks_uncertain {
                    report.flaw(FlawKind::CacheMismatch {
                        domain: header.domain,
                    })?;
                }
                domain.stacks_uncertain = true;
                domain.correct(header.check, self.locations.intern(header.check.code));
            }
        }
        let (begin, end) = (header.time_begin, header.time_end);
        domain
            .clock
            .packet(begin, end, start_time, |kind| report.flaw(kind))
    }
}

/// Collects the flaws of one packet.
struct Report<'a> {
    damage: &'a mut Damage,
    strict: bool,
    offset: u64,
}

impl Report<'_> {
    fn flaw(&mut self, kind: FlawKind) -> Result<(), Error> {
        record(self.damage, self.strict, self.offset, kind)
    }

    fn outcome(
        &mut self,
        outcome: &Outcome,
        frame: &Frame,
        domain: &mut Domain,
    ) -> Result<(), Error> {
        let header = &frame.header;
        self.damage.uncertain_stacks += outcome.uncertain_stacks;
        self.damage.uncertain_names += outcome.uncertain_names;
        domain.next_id = outcome.next_id;
        if outcome.bad_times > 0 {
            self.flaw(FlawKind::TimeOutOfBounds {
                events: outcome.bad_times,
            })?;
        }
        if outcome.shares_nothing {
            self.flaw(FlawKind::CacheMismatch {
                domain: header.domain,
            })?;
        }
        if outcome.future_promotion {
            self.flaw(FlawKind::FuturePromotion)?;
        }
        if outcome.unnamed > 0 {
            self.flaw(FlawKind::UnnamedLocations {
                locations: outcome.unnamed,
            })?;
        }
        if outcome.too_deep {
            self.flaw(FlawKind::StackTooDeep {
                kept: domain.depth as u64,
            })?;
        }
        if let Some(code) = outcome.conflict {
            self.flaw(FlawKind::ConflictingLocation { code })?;
        }
        if outcome.names_out_of_step {
            self.flaw(FlawKind::BadLocations {
                reason: "reference to an undefined name",
                lost_bytes: 0,
            })?;
        }
        let unread = (frame.extent - header.len() - outcome.stopped_at) as u64;
        let failure = match (outcome.failure, frame.end) {
            (_, End::OfFile) => Some("the file ends inside it"),
            (_, End::AtNextPacket) => Some("another packet begins inside it"),
            (failure, End::AsSaid) => failure,
        };
        let Some(reason) = failure else {
            if outcome.next_id != header.end_id {
                self.flaw(FlawKind::WrongIds {
                    expected: header.end_id,
                    found: outcome.next_id,
                })?;
            }
            return Ok(());
        };
        self.offset += (header.len() + outcome.stopped_at) as u64;
        // A packet of names holds no events: they are all still there.
        if outcome.named > 0 && outcome.only_locations && header.first_id == header.end_id {
            domain.names.forget();
            // What is wrong may have begun before it was noticed.
            self.damage.uncertain_names += outcome.named - outcome.uncertain_names;
            return self.flaw(FlawKind::BadLocations {
                reason,
                lost_bytes: unread,
            });
        }
        domain.stacks_uncertain = true;
        domain.names_uncertain = true;
        let mut lost = 0;
        if header.ids_are_plausible() {
            lost = header.end_id.saturating_sub(outcome.next_id);
            domain.next_id = header.end_id;
        }
        self.flaw(match frame.end {
            End::OfFile => FlawKind::Truncated {
                lost_bytes: unread,
                lost_allocations: lost,
                kept_events: outcome.events,
            },
            _ => FlawKind::BadPacket {
                reason,
                kept_events: outcome.events,
                lost_bytes: unread,
                lost_allocations: lost,
            },
        })
    }
}

/// Notes a flaw, or makes it an error.
fn record(damage: &mut Damage, strict: bool, offset: u64, kind: FlawKind) -> Result<(), Error> {
    let flaw = Flaw { offset, kind };
    if strict {
        return Err(Error::Damaged(flaw));
    }
    damage.record(flaw);
    Ok(())
}
