//! Finds the start and end of packets, in data that may be cut, spliced or overwritten anywhere.

use super::{Decoder, Trace};
use crate::collection::{COLLECTIONS, decode_collections};
use crate::damage::FlawKind;
use crate::error::{Error, describe};
use crate::format::{MAGIC, MAX_HEADER, NotAHeader, OWN_PID, PacketHeader, could_be_magic};

/// The next item in the input.
pub(super) enum Framed {
    Packet(Frame),
    NeedInput,
    End,
}

/// A packet at the start of the input.
pub(super) struct Frame {
    pub(super) header: PacketHeader,
    /// Its bytes, header included: fewer than the header says if it was cut short.
    pub(super) extent: usize,
    pub(super) end: End,
}

/// The end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At the size in its header.
    AsSaid,
    /// At the end of the file.
    OfFile,
    /// At the start of another packet before that.
    AtNextPacket,
}

impl Decoder {
    /// Finds the next packet, skipping what is none and what belongs to a forked child.
    pub(super) fn frame(&mut self) -> Result<Framed, Error> {
        loop {
            let input = self.input.unread();
            let finished = self.input.is_finished();
            if input.is_empty() {
                return self.frame_end(finished);
            }
            if input.len() < MAX_HEADER && !finished {
                return Ok(Framed::NeedInput);
            }
            let header = match PacketHeader::parse(input) {
                Ok(header) => header,
                Err(problem) => {
                    self.skip_to_header(problem)?;
                    if self.input.unread().len() < MAX_HEADER && !finished {
                        return Ok(Framed::NeedInput);
                    }
                    continue;
                }
            };
            // By what follows a packet its size can be checked; if that is no packet, whether
            // another one begins near its end can be seen only with all of that one's header.
            let follows = input.get(header.size..).unwrap_or_default();
            let lookahead = match self.options.eager {
                true => 0,
                false if could_be_magic(follows) => 4,
                false => MAX_HEADER,
            };
            if input.len() < header.size + lookahead && !finished {
                return Ok(Framed::NeedInput);
            }
            let (extent, end) = self.extent(&header);
            if extent < header.len() {
                // Not even its header is whole.
                self.skip(extent);
                continue;
            }
            self.end_garbage()?;
            let frame = Frame {
                header,
                extent,
                end,
            };
            if header.pid == OWN_PID
                && let Some(trace) = &self.trace
            {
                let start_time = trace.info.start_time;
                self.read_own(&frame, start_time)?;
                self.input.consume(extent);
                continue;
            }
            let is_other = |trace: &Trace| trace.info.pid != header.pid;
            if self.trace.as_ref().is_some_and(is_other) && !self.is_info(&frame) {
                let kind = FlawKind::ForkedChild {
                    pid: header.pid,
                    packets: 1,
                };
                self.flaw(self.input.offset(), kind)?;
                self.input.consume(extent);
                continue;
            }
            if end == End::OfFile && self.trace.is_some() && !self.options.partial_packets {
                let kind = FlawKind::Truncated {
                    lost_bytes: extent as u64,
                    lost_allocations: header.allocations(),
                    kept_events: 0,
                };
                self.flaw(self.input.offset(), kind)?;
                self.input.consume(extent);
                self.losses += 1;
                continue;
            }
            return Ok(Framed::Packet(frame));
        }
    }

    /// Reads a packet that only Heapline reads: the work of the collector, or a part of the coarse history.
    fn read_own(&mut self, frame: &Frame, start_time: u64) -> Result<(), Error> {
        let payload = self.input.unread().get(frame.header.len()..frame.extent);
        let payload = payload.unwrap_or_default();
        let (is_read, reason) = match payload.split_first() {
            Some((&COLLECTIONS, rest)) => {
                let collections = &mut self.collections;
                let found = decode_collections(&frame.header, start_time, rest, 0, |work| {
                    collections.push(work);
                });
                let reason = "the work of the garbage collector in it cannot be read to the end";
                (found.is_some(), reason)
            }
            _ => {
                let reason = "it does not say which blocks were merged";
                (self.coarse.read(payload).is_some(), reason)
            }
        };
        if is_read && frame.end == End::AsSaid {
            return Ok(());
        }
        let kind = FlawKind::BadPacket {
            reason,
            kept_events: 0,
            lost_bytes: (frame.extent - frame.header.len()) as u64,
            lost_allocations: 0,
        };
        self.flaw(self.input.offset(), kind)
    }

    fn frame_end(&mut self, finished: bool) -> Result<Framed, Error> {
        if !finished {
            return Ok(Framed::NeedInput);
        }
        if self.trace.is_none() {
            return Err(Error::Empty);
        }
        self.end_garbage()?;
        Ok(Framed::End)
    }

    /// The end of the packet at the start of the input. If no packet follows at the offset that its
    /// header gives, the header may be wrong, or the packet was truncated and something else
    /// follows; a header inside it shows that.
    fn extent(&self, header: &PacketHeader) -> (usize, End) {
        let input = self.input.unread();
        let available = header.size.min(input.len());
        let is_there = available == header.size;
        if is_there && could_be_magic(&input[header.size..]) {
            return (header.size, End::AsSaid);
        }
        match self.find_header(1, available) {
            Some(next) => (next, End::AtNextPacket),
            None if is_there => (header.size, End::AsSaid),
            None => (available, End::OfFile),
        }
    }

    /// The first place from `from` to `to` where a packet of this trace seems to begin.
    fn find_header(&self, from: usize, to: usize) -> Option<usize> {
        let input = self.input.unread();
        let to = to.saturating_add(3).min(input.len());
        memchr::memmem::find_iter(input.get(from..to)?, &MAGIC.to_le_bytes())
            .map(|at| from + at)
            .find(|&at| {
                let Ok(header) = PacketHeader::parse(&input[at..]) else {
                    return false;
                };
                self.trace
                    .as_ref()
                    .is_none_or(|trace| trace.version == header.version)
            })
    }

    /// Drops input that is no packet, up to where one may begin.
    fn skip_to_header(&mut self, problem: NotAHeader) -> Result<(), Error> {
        let input = self.input.unread();
        let finished = self.input.is_finished();
        if self.trace.is_none() {
            return Err(match problem {
                NotAHeader::NoMagic => Error::NotATrace {
                    found: describe(input),
                },
                NotAHeader::Version(found) => Error::UnsupportedVersion { found },
                NotAHeader::Size(_) => Error::BadTraceInfo {
                    reason: "invalid size",
                },
                NotAHeader::TooShort => Error::BadTraceInfo {
                    reason: "the file ends inside it",
                },
            });
        }
        if problem == NotAHeader::TooShort && self.garbage.is_none() {
            let kind = FlawKind::Truncated {
                lost_bytes: input.len() as u64,
                lost_allocations: 0,
                kept_events: 0,
            };
            let n = input.len();
            self.flaw(self.input.offset(), kind)?;
            self.input.consume(n);
            return Ok(());
        }
        let skip = self.find_header(1, input.len()).unwrap_or({
            if finished {
                input.len()
            } else {
                // A header may begin in what is too short to tell.
                input.len() - (MAX_HEADER - 1)
            }
        });
        self.skip(skip);
        Ok(())
    }

    /// Drops bytes that are no packet.
    fn skip(&mut self, n: usize) {
        let (_, bytes) = self.garbage.get_or_insert((self.input.offset(), 0));
        *bytes += n as u64;
        self.input.consume(n);
    }

    fn end_garbage(&mut self) -> Result<(), Error> {
        let Some((offset, bytes)) = self.garbage.take() else {
            return Ok(());
        };
        self.losses += 1;
        self.flaw(offset, FlawKind::Garbage { bytes })
    }
}
