//! Coarse histories: traces whose older part is summed up.
//!
//! In a long recording, blocks that died long ago are merged: one allocation event stands for several
//! blocks of the same stack and length that were allocated in one interval of time and freed in one. Its
//! samples are theirs together, so readers that count samples need nothing else. The number of blocks, and
//! the intervals, are in packets of their own behind the first one, which memtrace's reader skips.

use std::io;

use crate::event::{Alloc, Mark};
use crate::format::{CacheCheck, MAX_WRITTEN_PACKET, OWN_PID, PacketHeader, VERSION};
use crate::info::TraceInfo;
use crate::location::Locations;
use crate::varint::{MAX_NUMBER, number, put_number};
use crate::visitor::Visitor;
use crate::writer::PacketSink;

/// The first byte behind the header of a packet about the history.
const BOUNDARIES: u8 = 1;
const MERGED: u8 = 2;
const GAPS: u8 = 3;

/// The intervals of a trace whose older part is summed up, and the blocks that were merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoarseHistory {
    boundaries: Vec<u64>,
    merged: Vec<(u64, u64)>,
    gaps: Vec<(u64, u64)>,
}

impl CoarseHistory {
    /// Appends a boundary between intervals, in microseconds since the start of the trace. The history is
    /// exact at each boundary, and from the last one on. One that is not later than the last is ignored.
    pub fn push_boundary(&mut self, time: u64) {
        if self.boundaries.last().is_none_or(|&last| last < time) {
            self.boundaries.push(time);
        }
    }

    /// Says that `more` blocks were merged into that with an id, which is greater than the last one's.
    pub fn push_merged(&mut self, id: u64, more: u64) {
        if more > 0 && self.merged.last().is_none_or(|&(last, _)| last < id) {
            self.merged.push((id, more));
        }
    }

    /// Says that no new blocks were recorded from one time to another, in microseconds since the start of the
    /// trace. It is later than the one before.
    pub fn push_gap(&mut self, start: u64, end: u64) {
        if start <= end && self.gaps.last().is_none_or(|&(_, last)| last <= start) {
            self.gaps.push((start, end));
        }
    }

    /// The times in which no new blocks were recorded, from and to, in microseconds since the start of the
    /// trace.
    #[must_use]
    pub fn gaps(&self) -> &[(u64, u64)] {
        &self.gaps
    }

    /// The ends of the intervals that are summed up, in microseconds since the start of the trace.
    #[must_use]
    pub fn boundaries(&self) -> &[u64] {
        &self.boundaries
    }

    /// How many blocks were merged into that with an id.
    #[must_use]
    pub fn merged_into(&self, id: u64) -> u64 {
        let found = self.merged.binary_search_by_key(&id, |&(id, _)| id);
        found.map_or(0, |at| self.merged[at].1)
    }

    pub(crate) fn has_merged(&self) -> bool {
        !self.merged.is_empty()
    }

    /// Writes it, right behind the [first packet](crate::write_info) of a trace.
    pub fn write(&self, info: &TraceInfo, sink: &mut impl PacketSink) -> io::Result<()> {
        let mut packet = OpenPacket::new(info);
        let mut last = 0;
        for &time in &self.boundaries {
            packet.put(BOUNDARIES, [time - last], sink)?;
            last = time;
        }
        last = 0;
        for &(start, end) in &self.gaps {
            packet.put(GAPS, [start - last, end - start], sink)?;
            last = end;
        }
        last = 0;
        for &(id, more) in &self.merged {
            packet.put(MERGED, [id - last, more], sink)?;
            last = id;
        }
        packet.flush(sink)
    }

    /// Reads the payload of a packet. `None` if it is none; what was read before counts.
    pub(crate) fn read(&mut self, payload: &[u8]) -> Option<()> {
        let (&kind, mut rest) = payload.split_first()?;
        while !rest.is_empty() {
            match kind {
                BOUNDARIES => {
                    let last = self.boundaries.last().copied().unwrap_or(0);
                    let time = last.checked_add(number(&mut rest)?)?;
                    self.push_boundary(time);
                }
                MERGED => {
                    let last = self.merged.last().map_or(0, |&(id, _)| id);
                    let id = last.checked_add(number(&mut rest)?)?;
                    self.push_merged(id, number(&mut rest)?);
                }
                GAPS => {
                    let last = self.gaps.last().map_or(0, |&(_, end)| end);
                    let start = last.checked_add(number(&mut rest)?)?;
                    let end = start.checked_add(number(&mut rest)?)?;
                    self.push_gap(start, end);
                }
                // A later version may have more to say.
                _ => return Some(()),
            }
        }
        Some(())
    }
}

/// Adds the blocks that were merged into others to allocations.
pub(crate) struct WithMerged<'a, V> {
    history: &'a CoarseHistory,
    visitor: &'a mut V,
}

impl<'a, V> WithMerged<'a, V> {
    pub(crate) fn new(history: &'a CoarseHistory, visitor: &'a mut V) -> Self {
        Self { history, visitor }
    }
}

impl<V: Visitor> Visitor for WithMerged<'_, V> {
    fn alloc(&mut self, alloc: &Alloc<'_>, locations: &Locations) {
        // A block has a sample at least.
        let most = alloc.samples.saturating_sub(1);
        let merged = self.history.merged_into(alloc.id).min(most);
        self.visitor.alloc(&Alloc { merged, ..*alloc }, locations);
    }

    fn promote(&mut self, mark: Mark, locations: &Locations) {
        self.visitor.promote(mark, locations);
    }

    fn collect(&mut self, mark: Mark, locations: &Locations) {
        self.visitor.collect(mark, locations);
    }
}

/// The packet that is being filled.
struct OpenPacket {
    header: PacketHeader,
    kind: u8,
    bytes: Vec<u8>,
}

impl OpenPacket {
    fn new(info: &TraceInfo) -> Self {
        Self {
            header: PacketHeader {
                size: 0,
                time_begin: info.start_time,
                time_end: info.start_time,
                flush_duration: 0,
                version: VERSION,
                pid: OWN_PID,
                domain: info.initial_domain,
                check: CacheCheck::NONE,
                first_id: 0,
                end_id: 0,
            },
            kind: 0,
            bytes: Vec::new(),
        }
    }

    fn put<const N: usize>(
        &mut self,
        kind: u8,
        numbers: [u64; N],
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        if kind != self.kind || self.bytes.len() + N * MAX_NUMBER > MAX_WRITTEN_PACKET {
            self.flush(sink)?;
            self.kind = kind;
            self.bytes.extend_from_slice(&self.header.encode());
            self.bytes.push(kind);
        }
        for number in numbers {
            put_number(&mut self.bytes, number);
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut impl PacketSink) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        self.header.size = self.bytes.len();
        let header = self.header.encode();
        self.bytes[..header.len()].copy_from_slice(&header);
        sink.packet(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_payloads_are_refused() {
        let mut history = CoarseHistory::default();
        assert_eq!(history.read(&[]), None);
        assert_eq!(history.read(&[MERGED, 5]), None);
        assert_eq!(history.read(&[MERGED, 5, 2, 0, 9, 1, 3]), Some(()));
        // An id that comes twice keeps its first number.
        assert_eq!((history.merged_into(5), history.merged_into(6)), (2, 3));
        let far = [[BOUNDARIES].as_slice(), &[0xff; 9], &[1], &[1]].concat();
        assert_eq!(history.read(&far), None);
        assert_eq!(history.boundaries(), [u64::MAX]);
        assert_eq!(history.read(&[GAPS, 5]), None);
        let far = [[GAPS, 5, 2, 0].as_slice(), &[0xff; 9], &[1]].concat();
        assert_eq!(history.read(&far), None);
        assert_eq!(history.gaps(), [(5, 7)]);
    }
}
