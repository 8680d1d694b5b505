//! The tail of a trace that is being recorded: a file beside it, `FILE.tail`, with the packets that
//! are not in the trace yet.
//!
//! The recorder maps the tail into the memory of the program and fills its packets there. However
//! the program ends, the tail has the last events. Readers never change a recording: they combine the
//! trace with its tail while reading ([`Overlay`]), whether the program still runs or not.
//! [`Snapshot`](crate::Snapshot) does that for files.
//!
//! # The file
//!
//! A page about the recording ([`Word`]s), then a slot for each lane, that is for each domain of the
//! program: a page about it ([`LaneWord`]s), a packet of events, a packet of names (locations) that must come before them,
//! and a packet of [collections](crate::Collection). A packet whose magic number is 0 is empty.
//!
//! # How the recorder writes
//!
//! - An event is appended to the packet in the tail; the size in the packet's header is stored last,
//!   so that the packet is always consistent. The header's last time and last id are stored before, and
//!   may be ahead of the size: readers derive both from the events.
//! - A full packet is moved to the trace, at its end, by one lane at a time:
//!   1. [`LaneWord::Writing`] and [`LaneWord::Place`] announce it,
//!   2. it is written to the trace,
//!   3. [`LaneWord::Written`] is stored: from here on it belongs to the trace,
//!   4. it is marked as empty in the tail, and `Place` becomes 0.
//!
//!   If it cannot be written, the recording ends between 1 and 3, and nothing else is written.
//!
//! # How readers read
//!
//! A reader takes a snapshot of every lane: `Place` and `Written`, then the packet of events,
//! then the packet of names, then `Place` and `Written` again. If they have not changed, nothing was
//! moved meanwhile; otherwise it retries. Of the trace it uses the first packet, and those
//! packets of each lane that begin before the lane's `Written`: packets moved after the snapshot are
//! in the snapshot already. So every lane gives all its events up to one point in time, each once.

mod lane;
pub mod layout;
mod overlay;

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::format::{CacheCheck, PacketHeader};
use lane::Lane;
use layout::{LaneWord, MAGIC, MAX_LANES, PAGE, VERSION, WORDS, Word, slot};

pub use overlay::{Completion, Overlay};

/// Offset of the code in the cache check of a version 3 header.
const SIGNATURE: usize = 44;

/// The name of a trace's tail.
#[must_use]
pub fn path(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".tail");
    name.into()
}

/// Marks the first packet of a trace as the one that its recorder wrote.
///
/// Pid and start time alone do not identify it: a trace that was cut has them too. The mark is in
/// a field that readers ignore, the code of a cache check that checks nothing.
pub fn sign(first_packet: &mut [u8]) {
    if let Ok(header) = PacketHeader::parse(first_packet)
        && let Some(field) = first_packet.get_mut(SIGNATURE..SIGNATURE + 8)
    {
        field.copy_from_slice(&header.time_begin.to_le_bytes());
    }
}

/// A time in which no new blocks were recorded, in microseconds since the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Its beginning.
    pub start: u64,
    /// Its end; `None` if it is not over.
    pub end: Option<u64>,
}

/// A snapshot of a tail.
#[derive(Clone, Debug)]
pub struct Tail {
    words: Vec<u64>,
    lanes: Vec<Lane>,
}

impl Tail {
    /// Reads a tail, of a program that has ended or still runs.
    ///
    /// The memory that this takes is bounded by the size of the file and by [`MAX_LANES`], whatever
    /// the file claims.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) if it is no tail, or of an unknown version.
    pub fn read(source: &mut (impl Read + Seek)) -> io::Result<Self> {
        let size = source.seek(SeekFrom::End(0))?;
        let words = read_words(source, 0)?;
        let word = |word: Word| words.get(word as usize).copied().unwrap_or(0);
        let version = word(Word::Version);
        if word(Word::Magic) != MAGIC || !(1..=VERSION).contains(&version) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not the tail of a trace, or written by a newer heapline",
            ));
        }
        let slot = slot(version) as u64;
        let room = size.saturating_sub(PAGE as u64) / slot;
        let lanes = word(Word::Lanes).min(room).min(MAX_LANES as u64);
        let lanes = (0..lanes)
            .map(|lane| Lane::read(source, PAGE as u64 + lane * slot, version))
            .collect::<io::Result<_>>()?;
        Ok(Self { words, lanes })
    }

    /// A word about the recording.
    #[must_use]
    pub fn word(&self, word: Word) -> u64 {
        self.words.get(word as usize).copied().unwrap_or(0)
    }

    /// The sum of a word over all lanes.
    #[must_use]
    pub fn sum(&self, word: LaneWord) -> u64 {
        let values = self.lanes.iter().map(|lane| lane.word(word));
        values.fold(0, u64::wrapping_add)
    }

    /// The last time in which no new blocks were recorded.
    #[must_use]
    pub fn pause(&self) -> Option<Pause> {
        let (start, end) = (self.word(Word::PausedAt), self.word(Word::ResumedAt));
        (start > 0).then_some(Pause {
            start,
            end: (end >= start).then_some(end),
        })
    }

    /// Returns true if the recording has begun; otherwise the tail is empty.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.word(Word::State) > 0
    }

    /// Returns true if this is the tail of the trace that begins with these bytes, of which 68 are
    /// enough.
    #[must_use]
    pub fn belongs_to(&self, trace: &[u8]) -> bool {
        let Ok(header) = PacketHeader::parse(trace) else {
            return false;
        };
        if header.pid != self.word(Word::Pid) {
            return false;
        }
        if self.version() == 1 {
            // Events are not older than their trace. More is not known.
            let mut times = self.lanes.iter().filter_map(Lane::time_begin);
            return times.all(|time| time >= header.time_begin);
        }
        let signature = CacheCheck {
            code: header.time_begin,
            // It may be marked as ended early.
            next: header.check.next,
            ..CacheCheck::NONE
        };
        header.time_begin == self.word(Word::StartTime) && header.check == signature
    }

    /// Returns true if no process can write to the trace any more: its recorder has said so, or its
    /// process has ended. The latter is known by the lock that the recorder holds until its process ends
    /// or executes another program, whatever pid namespace it is in; `is_unlocked` tests it (`flock`,
    /// shared, so that several can look at once).
    pub fn has_ended(&self, is_unlocked: impl FnOnce() -> bool) -> bool {
        self.word(Word::State) > 1 || self.word(Word::Locked) == 1 && is_unlocked()
    }

    /// The offset in the trace behind the last packet of each domain.
    pub(crate) fn written(&self) -> impl Iterator<Item = (u16, u64)> {
        let lanes = self.lanes.iter();
        lanes.filter_map(|lane| Some((lane.domain()?, lane.word(LaneWord::Written))))
    }

    /// Packets that are not in the trace, in order.
    pub(crate) fn into_packets(self) -> impl Iterator<Item = Vec<u8>> {
        self.lanes.into_iter().flat_map(Lane::into_packets)
    }

    /// Packets that are not in the trace.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.lanes
            .iter()
            .map(|lane| lane.packets().count() as u64)
            .sum()
    }

    pub(crate) fn version(&self) -> u64 {
        self.word(Word::Version)
    }
}

/// Reads a word about the recording; 0 if the tail does not have it.
pub fn read_word(source: &mut (impl Read + Seek), word: Word) -> io::Result<u64> {
    let words = read_words(source, 0)?;
    Ok(words.get(word as usize).copied().unwrap_or(0))
}

/// The first words of a page: all that have a meaning.
fn read_words(source: &mut (impl Read + Seek), offset: u64) -> io::Result<Vec<u64>> {
    let mut bytes = Vec::new();
    source.seek(SeekFrom::Start(offset))?;
    source.take(WORDS as u64 * 8).read_to_end(&mut bytes)?;
    let (words, _) = bytes.as_chunks();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
