//! Packets on their way out.

use std::io::{self, Write};

use crate::format::{MAX_HEADER, MAX_WRITTEN_PACKET, PacketHeader};

/// Where finished packets go.
///
/// Anything that implements [`Write`] is one.
pub trait PacketSink {
    /// Takes a whole packet, of at most [`MAX_WRITTEN_PACKET`] bytes. Packets of different
    /// encoders may come in any order, but must not be mixed. An error is final: the encoder whose
    /// packet it was takes no more events.
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()>;
}

impl<W: Write> PacketSink for W {
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }
}

/// Lets only the process that made it write.
///
/// A forked child inherits its parent's trace, half-filled packets and all. With this guard its
/// packets go nowhere, and it learns so from an error of kind
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied).
#[derive(Debug)]
pub struct ForkGuard<S> {
    sink: S,
    owner: u32,
}

impl<S> ForkGuard<S> {
    /// Guards `sink` for this process.
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            owner: std::process::id(),
        }
    }

    /// The sink again.
    pub fn into_inner(self) -> S {
        self.sink
    }
}

impl<S: Write> Write for ForkGuard<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if std::process::id() != self.owner {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "this process was forked from the one that is traced",
            ));
        }
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// A packet being filled: room for the header, then events.
#[derive(Debug)]
pub(super) struct PacketBuffer {
    bytes: Vec<u8>,
}

impl PacketBuffer {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; MAX_HEADER],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() == MAX_HEADER
    }

    /// Bytes that still fit.
    pub(super) fn room(&self) -> usize {
        MAX_WRITTEN_PACKET.saturating_sub(self.bytes.len())
    }

    /// For appending to.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Hands the packet to `sink` under the given header, whose size is filled in, and starts a new
    /// one.
    pub(super) fn write(
        &mut self,
        mut header: PacketHeader,
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        header.size = self.bytes.len();
        self.bytes[..MAX_HEADER].copy_from_slice(&header.encode());
        let result = sink.packet(&self.bytes);
        self.bytes.truncate(MAX_HEADER);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_made_the_guard_writes() {
        let mut own = ForkGuard::new(Vec::new());
        own.packet(b"packet").unwrap();
        assert_eq!(own.into_inner(), b"packet");
        // What a forked child finds: a guard of another process.
        let mut inherited = ForkGuard {
            sink: Vec::new(),
            owner: std::process::id().wrapping_add(1),
        };
        let error = inherited.packet(b"packet").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(inherited.into_inner(), b"");
    }
}
