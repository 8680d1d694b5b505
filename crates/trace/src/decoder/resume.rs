//! Decodes packets in parts, while they are being filled.

use hashbrown::HashMap;

use super::clock::PacketTime;
use super::events::{self, Packet};
use super::framing::{End, Frame};
use super::input::PADDING;
use super::{Decoder, Report};
use crate::collection::{COLLECTIONS, decode_collections};
use crate::error::Error;
use crate::format::{OWN_PID, PacketHeader, code};
use crate::visitor::Visitor;

/// Packets that are being filled, as far as they have been decoded: of each domain one of events, one of names, and one of
/// collections.
#[derive(Debug, Default)]
pub(super) struct OpenPackets {
    packets: HashMap<Key, OpenPacket>,
    /// Collections in the packet of each domain that were handed over.
    collections: HashMap<u16, usize>,
    /// The bytes of the packet at hand, with padding.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    domain: u16,
    is_names: bool,
}

/// The state at the end of the last part.
#[derive(Debug)]
struct OpenPacket {
    /// The events that were decoded.
    bytes: Vec<u8>,
    time: PacketTime,
    next_id: u64,
    last_delta: u32,
}

/// A packet of a trace that [grows](crate::GrowingTrace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPart<'a> {
    /// The packet from its header on, as far as it is there.
    pub bytes: &'a [u8],
    /// Its offset in the trace, or that at which it will be.
    pub offset: u64,
    /// True if more events may be added to it: it is going to be handed over again.
    pub is_open: bool,
}

impl Decoder {
    /// Decodes a packet that is given directly, not [pushed](Self::push). If an earlier part of it
    /// has been decoded, goes on behind that. Returns the number of events.
    ///
    /// The trace must be one that Heapline is recording, and its first packet must have been pushed.
    /// The result is the same as if each packet had been decoded at once.
    pub fn resume_packet(
        &mut self,
        part: PacketPart<'_>,
        visitor: &mut impl Visitor,
    ) -> Result<u64, Error> {
        if self.options.stacks {
            self.resume::<true>(part, visitor)
        } else {
            self.resume::<false>(part, visitor)
        }
    }

    fn resume<const STACKS: bool>(
        &mut self,
        part: PacketPart<'_>,
        visitor: &mut impl Visitor,
    ) -> Result<u64, Error> {
        let bad = |reason| Error::NotTheRecording { reason };
        let info = self.info().ok_or(bad("it has no first packet"))?;
        let (start_time, pid) = (info.start_time, info.pid);
        let header = PacketHeader::parse(part.bytes)
            .map_err(|_| bad("there is no packet where one should be"))?;
        let payload = part
            .bytes
            .get(header.len()..header.size)
            .ok_or(bad("a packet is incomplete"))?;
        if header.pid == OWN_PID {
            return self.resume_collections(&header, part, start_time, visitor);
        }
        if header.pid != pid {
            return Err(bad("a packet is of another process"));
        }
        let key = Key {
            domain: header.domain,
            is_names: payload
                .get(3)
                .is_some_and(|byte| u32::from(byte >> 1) == code::LOCATION),
        };
        let open = match self.open.packets.remove(&key) {
            Some(open) if payload.starts_with(&open.bytes) => Some(open),
            Some(_) => return Err(bad("a packet has changed")),
            None => None,
        };
        let is_new = open.is_none();
        let open = match open {
            Some(open) => OpenPacket {
                time: PacketTime {
                    span: header.time_end.saturating_sub(open.time.recorded),
                    ..open.time
                },
                ..open
            },
            None => OpenPacket {
                bytes: Vec::new(),
                time: if key.is_names {
                    // They have the time of the events that they are written before, some of which
                    // may have been decoded.
                    let losses = self.losses;
                    let domain = self.domains.get(header.domain, start_time, losses, STACKS);
                    domain.clock.held()
                } else {
                    self.begin_packet::<STACKS>(&header, start_time, part.offset)?
                },
                next_id: header.first_id,
                last_delta: 0,
            },
        };
        self.packets += u64::from(is_new);
        let mut decoded = open.bytes;
        let start = decoded.len();
        let mut scratch = std::mem::take(&mut self.open.scratch);
        scratch.clear();
        scratch.extend_from_slice(payload);
        scratch.resize(payload.len() + PADDING, 0);
        let packet = Packet {
            bytes: &scratch,
            end: payload.len(),
            number: header.domain,
            time: open.time,
            first_id: open.next_id,
            start,
            last_delta: open.last_delta,
        };
        let domain = self
            .domains
            .get(header.domain, start_time, self.losses, STACKS);
        let room_for_frames = domain.stack.capacity();
        let outcome = events::decode::<STACKS>(&packet, domain, &mut self.locations, visitor);
        self.open.scratch = scratch;
        let frame = Frame {
            extent: header.size,
            header,
            end: End::AsSaid,
        };
        let mut report = Report {
            damage: &mut self.damage,
            strict: self.options.strict,
            offset: part.offset,
        };
        report.outcome(&outcome, &frame, domain)?;
        self.domains.limit_stacks(header.domain, room_for_frames);
        if part.is_open && outcome.failure.is_none() {
            decoded.extend_from_slice(payload.get(start..).unwrap_or_default());
            self.open.packets.insert(
                key,
                OpenPacket {
                    bytes: decoded,
                    time: open.time,
                    next_id: outcome.next_id,
                    last_delta: outcome.last_delta,
                },
            );
        }
        Ok(outcome.events)
    }

    /// Hands over what is new in a packet of collections. These are small and few, so all is decoded again.
    fn resume_collections(
        &mut self,
        header: &PacketHeader,
        part: PacketPart<'_>,
        start_time: u64,
        visitor: &mut impl Visitor,
    ) -> Result<u64, Error> {
        let bad = |reason| Error::NotTheRecording { reason };
        let payload = part.bytes.get(header.len()..header.size);
        let Some((&COLLECTIONS, bytes)) = payload.and_then(<[u8]>::split_first) else {
            return Err(bad("a packet is of an unknown kind"));
        };
        let seen = self.open.collections.remove(&header.domain).unwrap_or(0);
        let mut events = 0;
        let count = decode_collections(header, start_time, bytes, seen, |work| {
            visitor.collection(&work);
            events += 1;
        });
        let count = count.ok_or(bad("a packet of collections is damaged"))?;
        if count < seen {
            return Err(bad("a packet has changed"));
        }
        if part.is_open {
            self.open.collections.insert(header.domain, count);
        }
        Ok(events)
    }
}
