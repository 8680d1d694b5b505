//! A trace that is read on while its recording goes on.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::decoder::PacketPart;
use crate::ending::EarlyEnd;
use crate::format::{MAX_HEADER, PacketHeader};
use crate::snapshot::open_tail;
use crate::tail::{Pause, Tail};

/// The number of times that a trace is opened if its tail belongs to another recording, which may
/// just have been started.
const MAX_TRIES: u32 = 3;

/// The size of reads.
const CHUNK: u64 = 256 << 10;

/// The version of the [tail](crate::tail) from which on it can be read while the program runs.
const VERSION: u64 = 2;

/// The packets of a trace that is being recorded, as they come.
///
/// Each [`refresh`](Self::refresh) brings everything up to now: packets that the trace has got since,
/// and those that are still being filled in its [tail](crate::tail), as far as they are.
/// [`Decoder::resume_packet`](crate::Decoder::resume_packet) goes on where the last part of a packet
/// ended. So the cost of a refresh is that of what is new.
///
/// Nothing is written. Both files are kept open: another recording under the same name is not mixed up
/// with this one.
pub struct GrowingTrace {
    trace: File,
    tail: File,
    tail_path: PathBuf,
    is_unlocked: fn(&File) -> bool,
    first_packet: Vec<u8>,
    /// Packets of each domain that begin before this offset have been handed over.
    seen: HashMap<u16, u64>,
    /// The first packet that may not have been handed over.
    start: u64,
    current: Current,
    has_ended: bool,
    early_end: Option<EarlyEnd>,
    pause: Option<Pause>,
}

/// The packets of one refresh.
#[derive(Default)]
struct Current {
    /// True until all of them have been handed over.
    is_pending: bool,
    /// As [`GrowingTrace::seen`] will be.
    written: HashMap<u16, u64>,
    /// The end of the part of the trace to use.
    end: u64,
    /// Packets of the tail that have not been handed over, in reverse.
    tail: Vec<Vec<u8>>,
    /// The offset of the next packet.
    offset: u64,
    /// The first packet of the trace that is in the tail too, and for the next refresh.
    deferred: Option<u64>,
    /// Bytes that were read of the trace; the next packet is at `buffer[at..]`.
    buffer: Vec<u8>,
    at: usize,
    /// The size of trace and tail together.
    size: u64,
}

impl fmt::Debug for GrowingTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingTrace")
            .field("tail", &self.tail_path)
            .field("has_ended", &self.has_ended)
            .finish_non_exhaustive()
    }
}

impl GrowingTrace {
    /// Opens a trace that is being recorded; `None` if it is not: it has no usable tail, or its recording
    /// has ended. `is_unlocked` says whether nobody holds a lock on a file, see [`Tail::has_ended`].
    pub fn open(
        path: impl AsRef<Path>,
        is_unlocked: fn(&File) -> bool,
    ) -> io::Result<Option<Self>> {
        let path = path.as_ref();
        if !fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        for _ in 0..MAX_TRIES {
            let mut trace = File::open(path)?;
            let Ok(Some((tail_path, mut tail))) = open_tail(path) else {
                return Ok(None);
            };
            let Some(first_packet) = read_first_packet(&mut trace)? else {
                return Ok(None);
            };
            match Tail::read(&mut tail) {
                Ok(found)
                    if found.version() < VERSION
                        || !found.has_begun()
                        || found.has_ended(|| is_unlocked(&tail)) =>
                {
                    return Ok(None);
                }
                Ok(found) if found.belongs_to(&first_packet) => {
                    return Ok(Some(Self {
                        trace,
                        tail,
                        tail_path,
                        is_unlocked,
                        start: first_packet.len() as u64,
                        first_packet,
                        seen: HashMap::new(),
                        current: Current::default(),
                        has_ended: false,
                        early_end: None,
                        pause: None,
                    }));
                }
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The first packet, which says what was recorded and how. It is not one of those that are
    /// [handed over](Self::next_packet).
    #[must_use]
    pub fn first_packet(&self) -> &[u8] {
        &self.first_packet
    }

    /// Looks for what is new. Does nothing while there are packets to be handed over.
    pub fn refresh(&mut self) -> io::Result<()> {
        if self.current.is_pending || self.has_ended {
            return Ok(());
        }
        let mut tail = match Tail::read(&mut self.tail) {
            // The recorder was too fast. There will be another refresh.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
            result => result?,
        };
        if tail.has_ended(|| (self.is_unlocked)(&self.tail)) || self.is_removed()? {
            // It may have gone on in the meantime.
            tail = Tail::read(&mut self.tail)?;
            self.has_ended = true;
            self.early_end = self.read_early_end()?;
        }
        self.pause = tail.pause();
        let written: HashMap<u16, u64> = tail.written().collect();
        let first = self.first_packet.len() as u64;
        let end = written.values().copied().fold(first, u64::max);
        let mut packets: Vec<Vec<u8>> = tail.into_packets().collect();
        packets.reverse();
        let tail_bytes: usize = packets.iter().map(Vec::len).sum();
        self.trace.seek(SeekFrom::Start(self.start))?;
        let mut buffer = std::mem::take(&mut self.current.buffer);
        buffer.clear();
        self.current = Current {
            is_pending: true,
            written,
            end,
            size: end + tail_bytes as u64,
            tail: packets,
            offset: self.start,
            deferred: None,
            buffer,
            at: 0,
        };
        Ok(())
    }

    /// The next packet that is new or has grown; `None` when everything was handed over.
    pub fn next_packet(&mut self) -> io::Result<Option<PacketPart<'_>>> {
        let current = &mut self.current;
        if !current.is_pending {
            return Ok(None);
        }
        while let Some(header) = current.next_header(&mut self.trace)? {
            let offset = current.offset;
            let seen = self.seen.get(&header.domain).copied().unwrap_or(0);
            let written = current.written.get(&header.domain).copied().unwrap_or(0);
            let at = current.at;
            current.at += header.size;
            current.offset += header.size as u64;
            if offset >= written {
                // It was moved to the trace after the tail was read, which has it.
                current.deferred.get_or_insert(offset);
            } else if offset >= seen {
                return Ok(Some(PacketPart {
                    bytes: &current.buffer[at..at + header.size],
                    offset,
                    is_open: false,
                }));
            }
        }
        if let Some(packet) = current.tail.pop() {
            current.buffer = packet;
            current.at = 0;
            return Ok(Some(PacketPart {
                bytes: &current.buffer,
                offset: current.end,
                is_open: true,
            }));
        }
        current.is_pending = false;
        self.start = current.deferred.unwrap_or(current.offset);
        self.seen = std::mem::take(&mut current.written);
        Ok(None)
    }

    /// The end of what is not read any more: everything from the first packet up to here was handed over.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.start
    }

    /// Returns true if everything was handed over, and nothing more will come.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended && !self.current.is_pending
    }

    /// The reason why the recording has ended before its program, if it has.
    #[must_use]
    pub fn early_end(&self) -> Option<EarlyEnd> {
        self.early_end
    }

    /// The last time in which no new blocks were recorded, as of the last refresh.
    #[must_use]
    pub fn pause(&self) -> Option<Pause> {
        self.pause
    }

    /// The bytes of the trace with its tail, as of the last refresh.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.current.size
    }

    /// The first packet says so, but not from the beginning.
    fn read_early_end(&mut self) -> io::Result<Option<EarlyEnd>> {
        let mut first = Vec::new();
        self.trace.seek(SeekFrom::Start(0))?;
        (&mut self.trace)
            .take(MAX_HEADER as u64)
            .read_to_end(&mut first)?;
        let header = PacketHeader::parse(&first).ok();
        Ok(header.and_then(|header| EarlyEnd::of(&header)))
    }

    /// Returns true if the tail was removed, as it is when the trace is complete. On file systems
    /// without locks nothing else tells the end of a program that was killed.
    fn is_removed(&self) -> io::Result<bool> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Ok(self.tail.metadata()?.nlink() == 0)
        }
        #[cfg(not(unix))]
        Ok(!self.tail_path.exists())
    }
}

/// The first packet of a trace, if it is there.
fn read_first_packet(trace: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut packet = Vec::new();
    trace.take(MAX_HEADER as u64).read_to_end(&mut packet)?;
    let Ok(header) = PacketHeader::parse(&packet) else {
        return Ok(None);
    };
    let rest = header.size.saturating_sub(packet.len());
    trace.take(rest as u64).read_to_end(&mut packet)?;
    Ok((packet.len() == header.size).then_some(packet))
}

impl Current {
    /// The header of the next packet of the trace, all of which is in the buffer then.
    fn next_header(&mut self, trace: &mut File) -> io::Result<Option<PacketHeader>> {
        if self.offset >= self.end {
            return Ok(None);
        }
        self.fill(trace, MAX_HEADER)?;
        let bytes = self.buffer.get(self.at..).unwrap_or_default();
        let header = PacketHeader::parse(bytes).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the trace was overwritten while it was being followed; open it again",
            )
        })?;
        self.fill(trace, header.size)?;
        Ok(Some(header))
    }

    /// Reads until there are so many bytes in the buffer.
    fn fill(&mut self, trace: &mut File, wanted: usize) -> io::Result<()> {
        while self.buffer.len() - self.at < wanted {
            self.buffer.drain(..self.at);
            self.at = 0;
            let n = trace.take(CHUNK).read_to_end(&mut self.buffer)?;
            if n == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the trace was truncated while it was being followed; open it again",
                ));
            }
        }
        Ok(())
    }
}
