//! Reads a trace together with its tail.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use super::layout::{LaneWord, Word};
use super::{Lane, Tail};
use crate::format::{MAGIC, MAX_HEADER, PacketHeader};

/// The size of reads: consecutive packets take one call.
const CHUNK: usize = 256 << 10;

/// Describes how to complete a trace from its tail.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The part of the trace to use.
    rule: Rule,
    /// The end of the trace, which may be followed by an incomplete packet.
    end: Option<u64>,
    /// Packets to put there.
    more: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Packets of each domain that begin before an offset. The first packet is always taken.
    Domains(HashMap<u16, u64>),
    /// All, but other bytes at some offsets, in order.
    Patches(Vec<(u64, Vec<u8>)>),
}

impl Completion {
    /// Determines how to complete the trace that begins with these bytes.
    #[must_use]
    pub fn new(tail: &Tail, trace: &[u8]) -> Self {
        if tail.version() == 1 {
            return Self::of_version_1(tail);
        }
        let mut domains = HashMap::new();
        let mut end = PacketHeader::parse(trace).map_or(0, |header| header.size as u64);
        for lane in &tail.lanes {
            let written = lane.word(LaneWord::Written);
            end = end.max(written);
            if let Some(domain) = lane.domain() {
                domains.insert(domain, written);
            }
        }
        let packets = tail.lanes.iter().flat_map(Lane::packets);
        Self {
            rule: Rule::Domains(domains),
            end: Some(end),
            more: packets.flat_map(|(packet, _)| packet).copied().collect(),
        }
    }

    /// In version 1 lanes write at the same time, each at its own place.
    fn of_version_1(tail: &Tail) -> Self {
        let mut patches = Vec::new();
        let mut more = Vec::new();
        for lane in &tail.lanes {
            for (packet, is_names) in lane.packets() {
                match lane.place() {
                    Some(place) if lane.writes_names() == is_names => {
                        patches.push((place, packet.to_vec()));
                    }
                    _ => more.extend_from_slice(packet),
                }
            }
        }
        patches.sort_by_key(|(place, _)| *place);
        let end = tail.word(Word::FailedAt).checked_sub(1);
        if end.is_some() {
            // What follows a packet that is missing was not kept by version 1.
            more.clear();
        }
        Self {
            rule: Rule::Patches(patches),
            end,
            more,
        }
    }

    /// The writes that complete the trace itself: bytes and their offsets, in order. It has `len`
    /// bytes now, and ends behind the last of these.
    ///
    /// The program must have ended.
    pub fn writes(&self, len: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let patches = match &self.rule {
            Rule::Domains(_) => &[][..],
            Rule::Patches(patches) => patches,
        };
        let is_inside = |place: u64| self.end.is_none_or(|end| place < end);
        let patches = patches
            .iter()
            .filter(move |(place, _)| is_inside(*place))
            .map(|(place, bytes)| (*place, &bytes[..]));
        let ends = patches
            .clone()
            .map(|(place, bytes)| place.saturating_add(bytes.len() as u64));
        let end = ends.fold(len, u64::max);
        let end = self.end.map_or(end, |limit| limit.min(end));
        patches.chain([(end, &self.more[..])])
    }

    /// Bytes that the trace does not have.
    pub(crate) fn more_bytes(&self) -> u64 {
        self.more.len() as u64
    }
}

/// Reads a trace as it would be if the recording were complete now: what the trace has, then what
/// only the tail has.
///
/// Nothing is written. Where a lane has moved packets to the trace since the snapshot of the tail
/// was taken, they are left out: the snapshot has them.
#[derive(Debug)]
pub struct Overlay<R> {
    file: R,
    completion: Arc<Completion>,
    /// Read from the file, but not yet used: `buffer[start..]`.
    buffer: Vec<u8>,
    start: usize,
    /// The file ends behind the buffer.
    at_end: bool,
    /// The offset of `buffer[start]`.
    offset: u64,
    /// Patches that were used.
    patched: usize,
    step: Step,
}

/// The current source of data.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Decide what is next.
    Next,
    /// This number of bytes of the file.
    File(u64),
    /// The last patch, from here on.
    Patch(usize),
    /// The data that the file lacks, from this offset on.
    More(usize),
}

impl<R: Read> Overlay<R> {
    /// Lays a tail over `file`, which is at its start.
    pub fn new(file: R, completion: Arc<Completion>) -> Self {
        Self {
            file,
            completion,
            buffer: Vec::new(),
            start: 0,
            at_end: false,
            offset: 0,
            patched: 0,
            step: Step::Next,
        }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Reads until there are so many bytes in the buffer, or the file ends.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        while self.unread().len() < wanted && !self.at_end {
            self.buffer.drain(..self.start);
            self.start = 0;
            let n = (&mut self.file)
                .take(CHUNK as u64)
                .read_to_end(&mut self.buffer)?;
            self.at_end = n < CHUNK;
        }
        Ok(())
    }

    fn consume(&mut self, n: usize) {
        self.start += n;
        self.offset += n as u64;
    }

    fn skip(&mut self, mut n: u64) -> io::Result<()> {
        while n > 0 {
            self.fill(1)?;
            let some = self
                .unread()
                .len()
                .min(usize::try_from(n).unwrap_or(usize::MAX));
            if some == 0 {
                break;
            }
            self.consume(some);
            n -= some as u64;
        }
        Ok(())
    }

    fn next_step(&mut self) -> io::Result<Step> {
        self.fill(MAX_HEADER)?;
        let completion = Arc::clone(&self.completion);
        let left = completion
            .end
            .map_or(u64::MAX, |end| end.saturating_sub(self.offset));
        let is_end = left == 0 || self.unread().is_empty();
        match &completion.rule {
            Rule::Patches(patches) => match patches.get(self.patched) {
                Some((place, bytes)) if left > 0 && (is_end || *place <= self.offset) => {
                    self.patched += 1;
                    self.skip(bytes.len() as u64)?;
                    Ok(Step::Patch(0))
                }
                _ if is_end => Ok(Step::More(0)),
                Some((place, _)) => Ok(Step::File(left.min(place - self.offset))),
                None => Ok(Step::File(left)),
            },
            Rule::Domains(_) if is_end => Ok(Step::More(0)),
            Rule::Domains(domains) => {
                let Ok(header) = PacketHeader::parse(self.unread()) else {
                    return Ok(Step::File(left.min(self.damaged())));
                };
                let size = left.min(header.size as u64);
                let written = domains.get(&header.domain).copied().unwrap_or(0);
                if self.offset == 0 || self.offset < written {
                    return Ok(Step::File(size));
                }
                self.skip(size)?;
                Ok(Step::Next)
            }
        }
    }

    /// The number of bytes read that are not a packet. The decoder decides how to handle them.
    fn damaged(&self) -> u64 {
        let rest = self.unread().get(1..).unwrap_or_default();
        let next = memchr::memmem::find(rest, &MAGIC.to_le_bytes());
        let len = next.unwrap_or_else(|| {
            // A packet may begin in what is too short to tell.
            if self.at_end {
                rest.len()
            } else {
                rest.len().saturating_sub(3)
            }
        });
        len as u64 + 1
    }

    /// Copies some of the file's bytes.
    fn read_file(&mut self, buffer: &mut [u8], left: u64) -> io::Result<usize> {
        self.fill(1)?;
        let len = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = copy(buffer.get_mut(..len).unwrap_or_default(), self.unread());
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> Read for Overlay<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let n;
            (n, self.step) = match self.step {
                Step::Next => (0, self.next_step()?),
                Step::File(left) => {
                    let n = self.read_file(buffer, left)?;
                    let left = left - n as u64;
                    let is_over = n == 0 || left == 0;
                    (
                        n,
                        if is_over {
                            Step::Next
                        } else {
                            Step::File(left)
                        },
                    )
                }
                Step::Patch(from) => {
                    let n = copy(buffer, self.patch().get(from..).unwrap_or_default());
                    (
                        n,
                        if n == 0 {
                            Step::Next
                        } else {
                            Step::Patch(from + n)
                        },
                    )
                }
                Step::More(from) => {
                    let n = copy(buffer, self.completion.more.get(from..).unwrap_or_default());
                    self.step = Step::More(from + n);
                    return Ok(n);
                }
            };
            if n > 0 {
                return Ok(n);
            }
        }
    }
}

impl<R> Overlay<R> {
    /// The patch that was used last.
    fn patch(&self) -> &[u8] {
        match &self.completion.rule {
            Rule::Patches(patches) => patches
                .get(self.patched.wrapping_sub(1))
                .map_or(&[], |(_, bytes)| bytes),
            Rule::Domains(_) => &[],
        }
    }
}

fn copy(to: &mut [u8], from: &[u8]) -> usize {
    let n = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}
