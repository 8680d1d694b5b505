//! The layout of a tail, shared by the recorder and readers.

use crate::format::MAX_WRITTEN_PACKET;

/// The value of [`Word::Magic`].
pub const MAGIC: u64 = u64::from_le_bytes(*b"heaptail");

/// The version that is written. Earlier ones are read too. Version 1: see [`LaneWord::Written`]; up to version 2 lanes have no
/// packet of collections.
pub const VERSION: u64 = 3;

/// The size of the first page, and of the page that a lane begins with.
pub const PAGE: usize = 4096;

/// The size of a lane: its page, then memory for the packet of events, the packet of names, and the packet of collections.
pub const SLOT: usize = slot(VERSION);

/// The size of a lane in a version.
#[must_use]
pub const fn slot(version: u64) -> usize {
    PAGE + packets(version) * MAX_WRITTEN_PACKET
}

/// Packets that a lane has memory for in a version.
pub(super) const fn packets(version: u64) -> usize {
    if version < 3 { 2 } else { 3 }
}

/// Lanes that a tail can have; OCaml allows no more domains.
pub const MAX_LANES: usize = 4096;

/// Words of the first page, about the recording. Each has 64 bits, little-endian.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// [`MAGIC`].
    Magic = 0,
    /// [`VERSION`].
    Version,
    /// The state of the recording: 0 prepared, 1 recording, 2 ended.
    State,
    /// The process that is recorded, as it sees itself: it may be in another pid namespace.
    Pid,
    /// Lanes in use.
    Lanes,
    /// The reason why the recording ended early.
    Ending,
    /// The system's error number that belongs to it.
    Errno,
    /// The time of that, in microseconds after the start.
    EndingTime,
    /// Version 1 only: offset in the trace of the first packet that could not be written, plus 1.
    FailedAt,
    /// Bits with more to say.
    Notes,
    /// Domains that the program started.
    Domains,
    /// From version 2 on: when the trace begins, in microseconds since the epoch. Together with the
    /// pid it identifies the trace.
    StartTime,
    /// From version 2 on: 1 if the recorder holds a lock (`flock`) on the tail as long as it lives.
    Locked,
    /// Time that the sampler took until it called the recorder, in nanoseconds, as far as it was
    /// measured; 0 if it was not.
    SamplerNanos,
    /// When the recorder last stopped to take new blocks for a while, because the reader that frees the
    /// trace was too slow, in microseconds after the start; 0 if it never did.
    PausedAt,
    /// When it took new blocks again after that, in microseconds after the start. The pause is not over if
    /// this is before its beginning.
    ResumedAt,
    /// Signals that asked for a heap snapshot.
    SnapshotSignals,
}

/// Words of a page that have a meaning.
pub(super) const WORDS: usize = Word::SnapshotSignals as usize + 1;

/// Words of a lane's page. Each has 64 bits, little-endian.
#[derive(Clone, Copy, Debug)]
pub enum LaneWord {
    /// Offset in the trace at which a packet is being written, plus 1; 0 if none is.
    Place = 0,
    /// The packet: 0 events, 1 names, 2 collections.
    Writing,
    /// Events recorded.
    Events,
    /// Time that they took, in nanoseconds.
    Nanos,
    /// Blocks among them.
    Blocks,
    /// Stacks that no packet could hold.
    Shortened,
    /// From version 2 on: the domain.
    Domain,
    /// From version 2 on: offset in the trace behind the lane's last packet in it. Storing it is
    /// what moves a packet from the tail to the trace. Version 1 has no such moment, so that its
    /// tails can only be read reliably when the program has ended.
    Written,
}
