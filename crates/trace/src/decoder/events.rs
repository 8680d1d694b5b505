//! Decodes the events of a packet: the hot loop of everything that reads a trace.

use super::clock::PacketTime;
use super::domain::{Domain, MAX_DEPTH};
use super::names::Named;
use crate::event::{Alloc, Mark, Source, Stack};
use crate::format::{BUCKET_MASK, TIME_BITS, TIME_MASK, code, code63, tag};
use crate::location::{LocationId, Locations};
use crate::visitor::Visitor;

/// The number of predictions that are followed before checking if they are needed: in nine cases
/// out of ten two or fewer are, and excess ones are written behind the end of the stack.
const SPARE: usize = 2;

/// No block is larger than this many words (2 PiB), whatever the trace says.
const MAX_WORDS: i64 = 1 << 48;

/// A packet to be decoded: its events, and what its header says of them.
pub(super) struct Packet<'a> {
    /// The events, and at least eight bytes more.
    pub(super) bytes: &'a [u8],
    /// The end of the events in `bytes`.
    pub(super) end: usize,
    pub(super) number: u16,
    pub(super) time: PacketTime,
    /// The id of the next allocation.
    pub(super) first_id: u64,
    /// The offset in `bytes` of the first event to decode, and how long after the packet's begin the
    /// event before it was: both are 0 unless a packet is decoded in parts.
    pub(super) start: usize,
    pub(super) last_delta: u32,
}

/// The result of decoding a packet.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub(super) struct Outcome {
    /// The reason why it stopped before the end.
    pub(super) failure: Option<&'static str>,
    /// The offset in the packet at which it stopped: the start of the first event that could not be
    /// read.
    pub(super) stopped_at: usize,
    pub(super) events: u64,
    pub(super) next_id: u64,
    /// How long after the packet's begin the last event was.
    pub(super) last_delta: u32,
    pub(super) bad_times: u64,
    pub(super) uncertain_stacks: u64,
    /// Locations that were named.
    pub(super) named: u64,
    pub(super) uncertain_names: u64,
    pub(super) too_deep: bool,
    /// The domain's first stack claims to share frames with one before.
    pub(super) shares_nothing: bool,
    /// A block that was promoted before it was allocated.
    pub(super) future_promotion: bool,
    /// Locations that were used but never named.
    pub(super) unnamed: u64,
    /// The events are all locations, or there are none.
    pub(super) only_locations: bool,
    pub(super) names_out_of_step: bool,
    pub(super) conflict: Option<u64>,
}

/// Decodes a packet's events, as far as they go.
pub(super) fn decode<const STACKS: bool>(
    packet: &Packet<'_>,
    domain: &mut Domain,
    locations: &mut Locations,
    visitor: &mut impl Visitor,
) -> Outcome {
    let Packet {
        bytes, end, number, ..
    } = *packet;
    let mut outcome = Outcome {
        only_locations: true,
        ..Outcome::default()
    };
    let mut next_id = packet.first_id;
    let mut pos = packet.start;
    // Times are relative to the packet's, and must not decrease.
    let mut last = packet.last_delta;
    let mut last_bad_time = usize::MAX;
    let mut events = 0;
    let mut first_stack = !domain.has_stack;
    let begin = low_bits(packet.time.recorded);
    let span = u32::try_from(packet.time.span).unwrap_or(TIME_MASK);
    let too_short = "the packet ends inside an event";
    // What follows the packet must not get into the cache.
    let words = bytes.get(..=end).unwrap_or_default();

    while pos < end {
        // One load gets the event's head and, nearly always, all of its fixed part.
        let Some([h0, h1, h2, h3, byte4, byte5, _, _]) = load(bytes, pos) else {
            outcome.failure = Some(too_short);
            break;
        };
        let head = u32::from_le_bytes([h0, h1, h2, h3]);
        let mut delta = head.wrapping_sub(begin) & TIME_MASK;
        if delta < last || delta > span {
            outcome.bad_times += 1;
            last_bad_time = pos;
            delta = last;
        }
        last = delta;
        let time = packet.time.since_start + u64::from(delta);
        let event_code = head >> TIME_BITS;
        let mut cursor = Cursor {
            bytes,
            pos: pos + 4,
        };

        let alloc = if (code::SHORT_FIRST..=code::SHORT_LAST).contains(&event_code) {
            let header = if byte4 < 253 {
                cursor.pos += 2;
                Some((i64::from(byte4), usize::from(byte5)))
            } else {
                cursor.vint().zip(cursor.u8().map(usize::from))
            };
            header.map(|(prefix, count)| AllocHeader {
                length: i64::from(event_code - code::SHORT),
                samples: 1,
                source: Source::Minor,
                prefix,
                count,
            })
        } else if event_code == code::COLLECT || event_code == code::PROMOTE {
            outcome.only_locations = false;
            let delta = if byte4 < 253 {
                cursor.pos += 1;
                Some(i64::from(byte4))
            } else {
                let delta = cursor.vint();
                if event_code == code::PROMOTE && delta.is_some_and(i64::is_negative) {
                    outcome.future_promotion = true;
                }
                delta
            };
            let Some(delta) = delta.filter(|_| cursor.pos <= end) else {
                outcome.failure = Some(too_short);
                break;
            };
            let mark = Mark {
                time,
                id: next_id.wrapping_sub(1).wrapping_sub(delta.cast_unsigned()),
                domain: number,
            };
            if event_code == code::COLLECT {
                visitor.collect(mark, locations);
            } else {
                visitor.promote(mark, locations);
            }
            events += 1;
            pos = cursor.pos;
            continue;
        } else if event_code == code::ALLOC {
            match cursor.alloc_header() {
                Ok(header) => header,
                Err(reason) => {
                    outcome.failure = Some(reason);
                    break;
                }
            }
        } else if event_code == code::LOCATION {
            // Names are not to be made of what follows the packet.
            let mut cursor = Cursor {
                bytes: &bytes[..end],
                pos: cursor.pos,
            };
            let Some(named) = domain.names.read(&mut cursor, locations) else {
                outcome.failure = Some(too_short);
                break;
            };
            outcome.named += 1;
            match named {
                Named::Yes => outcome.uncertain_names += u64::from(domain.names_uncertain),
                Named::Unknown => outcome.uncertain_names += 1,
                Named::OutOfStep => {
                    outcome.uncertain_names += 1;
                    outcome.names_out_of_step = true;
                }
                Named::Conflict(code) => outcome.conflict = Some(code),
            }
            pos = cursor.pos;
            continue;
        } else {
            outcome.failure = Some("unknown event code");
            break;
        };

        outcome.only_locations = false;
        let Some(header) = alloc else {
            outcome.failure = Some(too_short);
            break;
        };
        let sane = 0..=MAX_WORDS;
        if !(sane.contains(&header.length) && sane.contains(&header.samples) && header.prefix >= 0)
        {
            outcome.failure = Some("invalid number");
            break;
        }
        let mut prefix = header.prefix.cast_unsigned();
        if first_stack {
            first_stack = false;
            outcome.shares_nothing = prefix > 0;
            domain.stacks_uncertain |= prefix > 0;
        }
        // What is left of the last stack if this event cannot be read.
        let untouched = domain
            .depth
            .min(usize::try_from(prefix).unwrap_or(usize::MAX));
        let stack = if STACKS {
            let Some(shape) =
                domain.read_stack(words, &mut cursor.pos, locations, prefix, header.count)
            else {
                domain.depth = untouched;
                outcome.failure = Some(too_short);
                break;
            };
            if shape.too_deep {
                outcome.too_deep = true;
                domain.stacks_uncertain = true;
                prefix = 0;
            }
            outcome.unnamed += shape.unnamed;
            outcome.uncertain_stacks += u64::from(domain.stacks_uncertain);
            Stack {
                frames: domain.stack.get(..domain.depth).unwrap_or_default(),
                common_prefix: prefix,
                cut: shape.cut && !shape.too_deep,
                uncertain: domain.stacks_uncertain,
            }
        } else {
            if cursor.skip_stack(header.count).is_none() {
                outcome.failure = Some(too_short);
                break;
            }
            Stack {
                common_prefix: prefix,
                ..Stack::default()
            }
        };
        if cursor.pos > end {
            domain.depth = untouched;
            outcome.failure = Some(too_short);
            break;
        }
        let id = next_id;
        next_id = next_id.wrapping_add(1);
        let alloc = Alloc {
            time,
            id,
            domain: number,
            length: header.length.cast_unsigned(),
            samples: header.samples.cast_unsigned(),
            merged: 0,
            source: header.source,
            stack,
        };
        visitor.alloc(&alloc, locations);
        events += 1;
        pos = cursor.pos;
    }

    // An event that could not be read has not moved the position, and has no time either.
    if outcome.failure.is_some() && last_bad_time == pos {
        outcome.bad_times -= 1;
    }
    if packet.time.held {
        outcome.bad_times = 0;
    }
    outcome.stopped_at = pos;
    outcome.events = events;
    outcome.next_id = next_id;
    outcome.last_delta = last;
    domain.has_stack = !first_stack;
    domain.clock.advance(&packet.time, last);
    outcome
}

/// The fixed part of an allocation event.
#[derive(Clone, Copy)]
struct AllocHeader {
    length: i64,
    samples: i64,
    source: Source,
    prefix: i64,
    /// Code words of the stack's new part.
    count: usize,
}

struct StackShape {
    /// The last stack was cut by the writer, and this one shares more of it than there is.
    cut: bool,
    too_deep: bool,
    /// Locations that are new, but were not named.
    unnamed: u64,
}

impl Domain {
    /// Makes the next stack out of the last one. The code words must end before the last of the
    /// bytes; that one is there because a word and the one after it are loaded at once.
    #[inline]
    fn read_stack(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        locations: &mut Locations,
        prefix: u64,
        count: usize,
    ) -> Option<StackShape> {
        let mut pos = *at;
        let shared = usize::try_from(prefix).unwrap_or(usize::MAX);
        // The code words of a cut stack count for their effect on the cache; the frames they
        // give are left behind the end of the last stack.
        let cut = shared > self.depth;
        let mut depth = shared.min(self.depth);
        let mut too_deep = false;
        let mut unnamed = 0;
        let mut previous = 0_usize;
        let cache = self.cache.as_deref_mut()?;
        for _ in 0..count {
            let [low, high, ahead] = load(bytes, pos)?;
            let word = u16::from_le_bytes([low, high]);
            let mut bucket = word >> 2;
            cache[previous].next = bucket;
            pos += 2;
            // How often to follow the predictions: 0, 1, or what the next byte says. Whether it
            // says so is a coin toss, so this is written for conditional moves, not branches.
            let tag = word & 3;
            let has_count = tag == tag::HIT_N;
            pos += usize::from(has_count);
            let mut predicted = usize::from(if has_count { u16::from(ahead) } else { tag });
            if tag == tag::MISS {
                predicted = 0;
                if pos + 8 >= bytes.len() {
                    return None;
                }
                let code = code63(u64::from_le_bytes(load(bytes, pos)?));
                pos += 8;
                let known = locations.len();
                cache[usize::from(bucket)].location = locations.intern(code);
                unnamed += (locations.len() - known) as u64;
            }
            if depth + predicted >= MAX_DEPTH {
                too_deep = true;
                depth = 0;
            }
            let room = predicted + 1 + SPARE;
            let frames = match self.stack.get_mut(depth..depth + room) {
                Some(frames) => frames,
                None => grow(&mut self.stack, depth, room),
            };
            depth += predicted + 1;
            let mut entry = cache[usize::from(bucket)];
            frames[0] = entry.location;
            let mut last_bucket = bucket;
            for (k, frame) in (1..=SPARE).zip(&mut frames[1..]) {
                bucket = entry.next & BUCKET_MASK;
                entry = cache[usize::from(bucket)];
                *frame = entry.location;
                last_bucket = if predicted >= k { bucket } else { last_bucket };
            }
            if predicted > SPARE {
                for frame in &mut frames[SPARE + 1..=predicted] {
                    bucket = entry.next & BUCKET_MASK;
                    entry = cache[usize::from(bucket)];
                    *frame = entry.location;
                }
                last_bucket = bucket;
            }
            previous = usize::from(last_bucket);
        }
        *at = pos;
        if !cut {
            self.depth = depth;
        }
        Some(StackShape {
            cut,
            too_deep,
            unnamed,
        })
    }
}

#[cold]
fn grow(stack: &mut Vec<LocationId>, depth: usize, more: usize) -> &mut [LocationId] {
    let needed = depth + more;
    if stack.len() < needed {
        stack.resize(needed.next_power_of_two().max(1024), LocationId::default());
    }
    &mut stack[depth..needed]
}

/// A position in a packet. All reads are checked against the buffer; it is the caller who compares
/// with the packet's end, once an event.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.pos == self.bytes.len()
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = load(self.bytes, self.pos)?;
        self.pos += N;
        Some(bytes)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// Bytes up to a NUL, which is consumed too.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.pos..)?;
        let len = memchr::memchr(0, rest)?;
        self.pos += len + 1;
        rest.get(..len)
    }

    #[inline]
    fn vint(&mut self) -> Option<i64> {
        match self.u8()? {
            253 => self.u16().map(i64::from),
            254 => self.u32().map(|v| i64::from(v.cast_signed())),
            255 => self.u64().map(|v| code63(v).cast_signed()),
            byte => Some(i64::from(byte)),
        }
    }

    /// The fixed part of an allocation in the long form; `Ok(None)` if the packet ends inside it.
    #[inline]
    fn alloc_header(&mut self) -> Result<Option<AllocHeader>, &'static str> {
        let mut read = || -> Option<Result<AllocHeader, &'static str>> {
            let length = self.vint()?;
            let samples = self.vint()?;
            let source = match self.u8()? {
                0 => Source::Minor,
                1 => Source::Major,
                2 => Source::External,
                _ => return Some(Err("unknown allocation source")),
            };
            let prefix = self.vint()?;
            let count = usize::from(self.u16()?);
            Some(Ok(AllocHeader {
                length,
                samples,
                source,
                prefix,
                count,
            }))
        };
        read().transpose()
    }

    /// Passes over the code words of a stack, three at a time: how many there are is hard to
    /// predict, so the fewer turns the better.
    #[inline]
    fn skip_stack(&mut self, count: usize) -> Option<()> {
        let mut left = count;
        while left > 0 {
            let word = u64::from_le_bytes(load(self.bytes, self.pos)?);
            // Two bytes each, one more with a count, eight more (and rare) with a code.
            let tag = |at: u64| (word >> (8 * at)) & 3;
            let width = |tag: u64| 2 + u64::from(tag == u64::from(tag::HIT_N));
            let first = tag(0);
            let a = width(first);
            let second = if left > 1 { tag(a) } else { 0 };
            let b = if left > 1 { a + width(second) } else { a };
            let third = if left > 2 { tag(b) } else { 0 };
            let c = if left > 2 { b + width(third) } else { b };
            let miss = u64::from(tag::MISS);
            if first == miss || second == miss || third == miss {
                self.pos += if first == miss {
                    10
                } else {
                    usize::try_from(a).ok()?
                };
                left -= 1;
            } else {
                self.pos += usize::try_from(c).ok()?;
                left = left.saturating_sub(3);
            }
        }
        Some(())
    }
}

#[inline]
fn load<const N: usize>(bytes: &[u8], pos: usize) -> Option<[u8; N]> {
    bytes.get(pos..)?.first_chunk::<N>().copied()
}

fn low_bits(time: u64) -> u32 {
    let [a, b, c, d, ..] = time.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) & TIME_MASK
}
