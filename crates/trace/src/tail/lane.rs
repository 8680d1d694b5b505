//! Snapshots of lanes, taken while the program may be writing to them.

use std::io::{self, Read, Seek, SeekFrom};
use std::thread;

use super::layout::{LaneWord, PAGE, packets};
use super::read_words;
use crate::decoder::{PacketEnd, measure};
use crate::format::{MAX_HEADER, MAX_WRITTEN_PACKET, OWN_PID, PacketHeader, VERSION};

/// The number of times that a lane is read until nothing is moved meanwhile. Reading takes
/// microseconds, and filling a packet of 32 KiB takes longer.
const MAX_TRIES: u32 = 1000;

/// A lane at one moment.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    words: Vec<u64>,
    /// Names, events and collections that are only here, or are being written to the trace.
    names: Option<Vec<u8>>,
    events: Option<Vec<u8>>,
    collections: Option<Vec<u8>>,
}

impl Lane {
    /// Reads the lane at an offset of a tail of a version.
    pub(super) fn read(
        source: &mut (impl Read + Seek),
        offset: u64,
        version: u64,
    ) -> io::Result<Self> {
        for _ in 0..MAX_TRIES {
            if let Some(lane) = Self::try_read(source, offset, version)? {
                return Ok(lane);
            }
            thread::yield_now();
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the program records faster than its tail can be read; try again",
        ))
    }

    /// `None` if the lane changed meanwhile.
    fn try_read(
        source: &mut (impl Read + Seek),
        offset: u64,
        version: u64,
    ) -> io::Result<Option<Self>> {
        let words = read_words(source, offset)?;
        // Events first: the names that they need are there by then.
        let events = read_packet(source, offset + PAGE as u64)?;
        let names = read_packet(source, offset + (PAGE + MAX_WRITTEN_PACKET) as u64)?;
        let collections = if packets(version) > 2 {
            read_packet(source, offset + (PAGE + 2 * MAX_WRITTEN_PACKET) as u64)?
        } else {
            Memory::Whole(None)
        };
        let again = read_words(source, offset)?;
        let is_same = [LaneWord::Place, LaneWord::Writing, LaneWord::Written]
            .into_iter()
            .all(|word| words.get(word as usize) == again.get(word as usize));
        let (
            Memory::Whole(mut events),
            Memory::Whole(mut names),
            Memory::Whole(mut collections),
            true,
        ) = (events, names, collections, is_same)
        else {
            return Ok(None);
        };
        let lane = Self {
            words: again,
            names: None,
            events: None,
            collections: None,
        };
        // What belongs to the trace already may not be marked as empty yet.
        if lane
            .place()
            .is_some_and(|place| place < lane.word(LaneWord::Written))
        {
            match lane.word(LaneWord::Writing) {
                1 => names = None,
                2 => collections = None,
                _ => events = None,
            }
        }
        Ok(Some(Self {
            names,
            events,
            collections,
            ..lane
        }))
    }

    pub(super) fn word(&self, word: LaneWord) -> u64 {
        self.words.get(word as usize).copied().unwrap_or(0)
    }

    pub(super) fn domain(&self) -> Option<u16> {
        u16::try_from(self.word(LaneWord::Domain)).ok()
    }

    /// The offset at which a packet is or was being written.
    pub(super) fn place(&self) -> Option<u64> {
        self.word(LaneWord::Place).checked_sub(1)
    }

    /// Returns true if that is the packet of names.
    pub(super) fn writes_names(&self) -> bool {
        self.word(LaneWord::Writing) == 1
    }

    /// Packets that are not in the trace, in order, and whether each is one of names.
    pub(super) fn packets(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let names = self.names.as_deref().map(|packet| (packet, true));
        let events = self.events.as_deref().map(|packet| (packet, false));
        let collections = self.collections.as_deref().map(|packet| (packet, false));
        names.into_iter().chain(events).chain(collections)
    }

    /// The packets, without their kinds.
    pub(super) fn into_packets(self) -> impl Iterator<Item = Vec<u8>> {
        let packets = self.names.into_iter().chain(self.events);
        packets.chain(self.collections)
    }

    /// The start time of the packet of events, if there is one.
    pub(super) fn time_begin(&self) -> Option<u64> {
        let header = PacketHeader::parse(self.events.as_deref()?).ok()?;
        Some(header.time_begin)
    }
}

/// The memory of a packet.
enum Memory {
    /// It has a packet, as far as it was filled, or is empty.
    Whole(Option<Vec<u8>>),
    Changing,
}

fn read_packet(source: &mut (impl Read + Seek), offset: u64) -> io::Result<Memory> {
    let Some(size) = read_size(source, offset)? else {
        return Ok(Memory::Whole(None));
    };
    let mut packet = Vec::new();
    source.seek(SeekFrom::Start(offset))?;
    source.take(size as u64).read_to_end(&mut packet)?;
    // Packets grow. If this one has shrunk, it was another one, or the size was torn.
    let size_after = read_size(source, offset)?;
    if size_after.is_none_or(|after| after < size) || packet.len() < size {
        return Ok(Memory::Changing);
    }
    // It may have grown while it was read.
    set_field(&mut packet, PacketHeader::SIZE, &size_in_bits(size));
    let header = match PacketHeader::parse(&packet) {
        Ok(header) if header.version == VERSION => header,
        _ => return Ok(Memory::Whole(None)),
    };
    if header.pid == OWN_PID {
        // Its times are in its own events.
        return Ok(Memory::Whole(Some(packet)));
    }
    match measure(&header, &packet) {
        Some(PacketEnd { time, id }) => {
            set_field(&mut packet, PacketHeader::TIME_END, &time.to_le_bytes());
            set_field(&mut packet, PacketHeader::END_ID, &id.to_le_bytes());
        }
        None if size_after != Some(size) => return Ok(Memory::Changing),
        // The tail is damaged. What can be read of the packet is for the decoder to say.
        None => {}
    }
    Ok(Memory::Whole(Some(packet)))
}

/// The size of the packet at an offset, if it has events.
fn read_size(source: &mut (impl Read + Seek), offset: u64) -> io::Result<Option<usize>> {
    let mut head = Vec::new();
    source.seek(SeekFrom::Start(offset))?;
    source.take(8).read_to_end(&mut head)?;
    let size = PacketHeader::sealed_size(&head);
    Ok(size.filter(|size| (MAX_HEADER + 1..=MAX_WRITTEN_PACKET).contains(size)))
}

fn size_in_bits(size: usize) -> [u8; 4] {
    let [a, b, c, d, ..] = (size as u64 * 8).to_le_bytes();
    [a, b, c, d]
}

fn set_field(packet: &mut [u8], at: usize, value: &[u8]) {
    if let Some(field) = packet.get_mut(at..at + value.len()) {
        field.copy_from_slice(value);
    }
}
