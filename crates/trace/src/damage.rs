//! The damage to a trace: position and losses.

use std::fmt;

use crate::ending::EarlyEnd;

/// All damage found while reading a trace.
///
/// The first flaws are listed one by one; the totals count all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Damage {
    flaws: Vec<Flaw>,
    /// Flaws found, including those too many to be listed.
    pub count: u64,
    /// Bytes from which nothing could be recovered.
    pub lost_bytes: u64,
    /// Allocation events that are known to be missing.
    pub lost_allocations: u64,
    /// Allocations whose stack may have wrong frames because it builds on a part that was lost.
    pub uncertain_stacks: u64,
    /// Locations whose names may be wrong because they build on a part that was lost.
    pub uncertain_names: u64,
}

/// One thing that is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Flaw {
    /// The offset in the decompressed trace.
    pub offset: u64,
    /// The kind of damage.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub kind: FlawKind,
}

/// The kinds of damage to a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum FlawKind {
    /// The file ends inside a packet, as it does when the program is killed or the disk is full.
    Truncated {
        /// Bytes of the last packet that are there but could not be used.
        lost_bytes: u64,
        /// Allocations that are missing, if the packet's header can be believed.
        lost_allocations: u64,
        /// Events of it that could.
        kept_events: u64,
    },
    /// The recording ended before the program: later events are missing.
    EndedEarly(EarlyEnd),
    /// Packets of a forked child, whose events do not belong to the trace.
    ForkedChild {
        /// The child.
        pid: u64,
        /// The number of packets.
        packets: u64,
    },
    /// The clock was set back while the program ran. Times are kept from running backwards: they
    /// stand still, then go on from there.
    ClockSetBack {
        /// By how many microseconds.
        by: u64,
    },
    /// A packet ends before it begins, or lasts longer than a packet can.
    ContradictoryTimes {
        /// Microseconds since the epoch.
        begin: u64,
        /// Microseconds since the epoch.
        end: u64,
    },
    /// Events lie outside the time that their packet says it covers.
    TimeOutOfBounds {
        /// The number of events.
        events: u64,
    },
    /// A packet could be read in part only.
    BadPacket {
        /// The reason why decoding stopped.
        reason: &'static str,
        /// Events before that point, which were kept.
        kept_events: u64,
        /// Bytes after it.
        lost_bytes: u64,
        /// Allocations after it, if the packet's header can be believed.
        lost_allocations: u64,
    },
    /// Packets are missing: their allocations are.
    MissingPackets {
        /// The number of allocations.
        allocations: u64,
    },
    /// Another trace begins; it is not read.
    SecondTrace,
    /// A packet's allocation ids do not add up.
    WrongIds {
        /// The end according to its header.
        expected: u64,
        /// The actual end.
        found: u64,
    },
    /// A block is promoted before it is allocated. memtrace's reader refuses that.
    FuturePromotion,
    /// The state that stacks are decoded with differs from the writer's.
    CacheMismatch {
        /// The domain that it belongs to.
        domain: u16,
    },
    /// Location names could not be read: they are unknown from here on, until new ones come.
    BadLocations {
        /// The reason why decoding stopped.
        reason: &'static str,
        /// Bytes of names that were skipped.
        lost_bytes: u64,
    },
    /// One location was defined twice, differently. The first definition is kept.
    ConflictingLocation {
        /// Its code.
        code: u64,
    },
    /// The compressed data is damaged or cut off: nothing after this place can be had.
    BrokenCompression {
        /// The decompressor's message.
        reason: String,
    },
    /// Bytes that are no packet.
    Garbage {
        /// The number of bytes.
        bytes: u64,
    },
    /// Locations are used that the trace never named, or names too late.
    UnnamedLocations {
        /// The number of locations.
        locations: u64,
    },
    /// A call stack had more frames than any program's.
    StackTooDeep {
        /// Frames that were kept.
        kept: u64,
    },
}

impl Damage {
    const LISTED: usize = 1000;

    /// Returns true if there is no damage.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first flaws, in order.
    #[must_use]
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    pub(crate) fn record(&mut self, flaw: Flaw) {
        match &flaw.kind {
            FlawKind::BadLocations { lost_bytes, .. } | FlawKind::Garbage { bytes: lost_bytes } => {
                self.lost_bytes += lost_bytes;
            }
            FlawKind::Truncated {
                lost_bytes,
                lost_allocations,
                ..
            }
            | FlawKind::BadPacket {
                lost_bytes,
                lost_allocations,
                ..
            } => {
                self.lost_bytes += lost_bytes;
                self.lost_allocations = self.lost_allocations.saturating_add(*lost_allocations);
            }
            FlawKind::MissingPackets { allocations } => {
                self.lost_allocations = self.lost_allocations.saturating_add(*allocations);
            }
            _ => {}
        }
        if let FlawKind::ForkedChild { pid, .. } = flaw.kind
            && let Some(packets) = self
                .flaws
                .iter_mut()
                .find_map(|known| match &mut known.kind {
                    FlawKind::ForkedChild { pid: p, packets } if *p == pid => Some(packets),
                    _ => None,
                })
        {
            *packets += 1;
            return;
        }
        self.count += 1;
        if self.flaws.len() < Self::LISTED {
            self.flaws.push(flaw);
        }
    }
}

/// A number of things.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(n, thing) = self;
        write!(f, "{n} {thing}{}", if *n == 1 { "" } else { "s" })
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.kind)
    }
}

impl fmt::Display for FlawKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated {
                lost_bytes,
                lost_allocations,
                kept_events,
            } => write!(
                f,
                "the file ends inside a packet (the program was killed, or the file was truncated): {} of the packet kept, {} and {} lost",
                Count(*kept_events, "event"),
                Count(*lost_bytes, "byte"),
                Count(*lost_allocations, "allocation")
            ),
            Self::EndedEarly(end) => end.fmt(f),
            Self::ForkedChild { pid, packets } => {
                write!(
                    f,
                    "{} of a forked child (pid {pid}) ignored",
                    Count(*packets, "packet")
                )
            }
            Self::ClockSetBack { by } => write!(
                f,
                "the clock was set back by {:.6} s; later times are adjusted",
                *by as f64 / 1e6
            ),
            Self::ContradictoryTimes { begin, end } => write!(
                f,
                "a packet claims to last from {begin} to {end} µs since 1970; its events get the time of the previous event"
            ),
            Self::TimeOutOfBounds { events } => write!(
                f,
                "{} outside the time of their packet, set to the time of the previous event",
                Count(*events, "event")
            ),
            Self::BadPacket {
                reason,
                kept_events,
                lost_bytes,
                lost_allocations,
            } => write!(
                f,
                "a packet is unreadable from here ({reason}): {} before kept, {} with {} lost",
                Count(*kept_events, "event"),
                Count(*lost_bytes, "byte"),
                Count(*lost_allocations, "allocation")
            ),
            Self::MissingPackets { allocations } => write!(
                f,
                "packets with {} are missing before this offset",
                Count(*allocations, "allocation")
            ),
            Self::SecondTrace => write!(
                f,
                "another trace begins here and is not read; a file can only hold one trace"
            ),
            Self::WrongIds { expected, found } => write!(
                f,
                "inconsistent allocation ids: they end at {found}, but the packet header says {expected}"
            ),
            Self::FuturePromotion => {
                write!(f, "a block is promoted before it is allocated")
            }
            Self::CacheMismatch { domain } => write!(
                f,
                "the stack cache of domain {domain} is out of sync with the writer's; stacks that depend on it are marked as uncertain"
            ),
            Self::BadLocations { reason, lost_bytes } => write!(
                f,
                "location names are unreadable ({reason}): {} of names lost, no events",
                Count(*lost_bytes, "byte")
            ),
            Self::ConflictingLocation { code } => write!(
                f,
                "location {code:#x} has two different definitions; the first is used"
            ),
            Self::BrokenCompression { reason } => {
                write!(
                    f,
                    "the compressed data is truncated or damaged here ({reason})"
                )
            }
            Self::Garbage { bytes } => {
                write!(f, "skipped {} that are not a packet", Count(*bytes, "byte"))
            }
            Self::UnnamedLocations { locations } => {
                write!(f, "{} without a name", Count(*locations, "location"))
            }
            Self::StackTooDeep { kept } => {
                write!(f, "a call stack is implausibly deep; {kept} frames kept")
            }
        }
    }
}
