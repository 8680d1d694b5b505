//! Buffers for packets, and their destination.

use std::borrow::BorrowMut;
use std::io::{self, Write};
use std::sync::atomic::{Ordering, fence};

use super::zeros;
use crate::format::{MAX_HEADER, MAX_WRITTEN_PACKET, PacketHeader};

/// The destination of finished packets.
///
/// Anything that implements [`Write`] is one.
pub trait PacketSink {
    /// Takes a whole packet, of at most [`MAX_WRITTEN_PACKET`] bytes. Packets of different
    /// encoders may come in any order, but must not be mixed. An error is final: the encoder whose
    /// packet it was takes no more events.
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The memory of the packet that was taken has been marked as empty, and is going to be used
    /// for the next one.
    fn released(&mut self) {}
}

impl<W: Write> PacketSink for W {
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }
}

/// The memory that a packet is filled in.
pub type PacketMemory = [u8; MAX_WRITTEN_PACKET];

/// A packet being filled: room for the header, then events.
///
/// Its memory may be seen by others, such as a file that is mapped: once a packet was
/// [opened](Self::open) it is whole after every [`seal`](Self::seal), and an empty one has no magic
/// number.
#[derive(Debug)]
pub(crate) struct PacketBuffer<M> {
    memory: M,
    len: usize,
}

impl PacketBuffer<Box<PacketMemory>> {
    /// A packet in memory of its own.
    pub(crate) fn new() -> Self {
        Self::within(zeros())
    }
}

impl<M: BorrowMut<PacketMemory>> PacketBuffer<M> {
    /// A packet in the given memory.
    pub(crate) fn within(memory: M) -> Self {
        Self {
            memory,
            len: MAX_HEADER,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == MAX_HEADER
    }

    /// Bytes that still fit.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        MAX_WRITTEN_PACKET.saturating_sub(self.len)
    }

    /// Appends an event in pieces, for which there must be room. Returns where it ends. It does not
    /// count before it is [sealed](Self::seal).
    pub(crate) fn put<const N: usize>(&mut self, pieces: [&[u8]; N]) -> usize {
        let mut end = self.len;
        for piece in pieces {
            self.memory.borrow_mut()[end..][..piece.len()].copy_from_slice(piece);
            end += piece.len();
        }
        end
    }

    /// The memory, and where the next event goes.
    #[inline]
    pub(crate) fn memory(&mut self) -> (&mut PacketMemory, usize) {
        (self.memory.borrow_mut(), self.len)
    }

    /// Writes the header of a packet that has no sealed events yet.
    pub(crate) fn open(&mut self, mut header: PacketHeader) {
        header.size = MAX_HEADER;
        if let Some(place) = self.memory.borrow_mut().first_chunk_mut() {
            *place = header.encode();
        }
    }

    /// Makes all up to `end` part of the packet.
    #[inline]
    pub(crate) fn seal(&mut self, end: usize) {
        self.len = end;
        let [a, b, c, d, ..] = (end as u64 * 8).to_le_bytes();
        // What is sealed must be there before it counts: the process can be killed at any time, and
        // other processes may read the memory.
        fence(Ordering::Release);
        self.memory.borrow_mut()[PacketHeader::SIZE..][..4].copy_from_slice(&[a, b, c, d]);
        fence(Ordering::Release);
    }

    /// The time of the last event, which stays when the packet has been written.
    #[inline]
    pub(crate) fn time_end(&self) -> u64 {
        self.field::<{ PacketHeader::TIME_END }>()
    }

    /// To be set before an event is sealed, not behind: a packet may last longer than its events.
    #[inline]
    pub(crate) fn set_time_end(&mut self, time: u64) {
        self.set_field::<{ PacketHeader::TIME_END }>(time);
    }

    /// The id after the last, which stays when the packet has been written.
    #[inline]
    pub(crate) fn end_id(&self) -> u64 {
        self.field::<{ PacketHeader::END_ID }>()
    }

    #[inline]
    pub(crate) fn set_end_id(&mut self, id: u64) {
        self.set_field::<{ PacketHeader::END_ID }>(id);
    }

    /// A field of the header. It is kept there and nowhere else: that is one place less to write to
    /// with every event.
    #[inline]
    fn field<const AT: usize>(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.memory.borrow()[AT..AT + 8]);
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn set_field<const AT: usize>(&mut self, value: u64) {
        self.memory.borrow_mut()[AT..AT + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Hands the packet, as it was sealed, to `sink`, and empties it. If that fails, the packet stays.
    pub(crate) fn write(&mut self, sink: &mut impl PacketSink) -> io::Result<()> {
        let memory = self.memory.borrow_mut();
        sink.packet(&memory[..self.len])?;
        fence(Ordering::Release);
        // The size too: the next packet must not be seen with this one's.
        memory[..8].fill(0);
        fence(Ordering::Release);
        self.len = MAX_HEADER;
        sink.released();
        Ok(())
    }
}

/// The packet in memory that an encoder [filled](super::Encoder::within); `None` if there is none.
#[must_use]
pub fn whole_packet(memory: &[u8]) -> Option<&[u8]> {
    let header = PacketHeader::parse(memory).ok()?;
    memory
        .get(..header.size)
        .filter(|packet| packet.len() > MAX_HEADER)
}
