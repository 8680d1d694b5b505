//! Writes what is kept as a trace.

use std::io;

use crate::{
    Block, CoarseHistory, EarlyEnd, Encoder, FrameSink, Locations, PacketSink, TraceInfo, tail,
    write_info,
};
use hashbrown::HashMap;

use super::record::{NEVER, Record, micros};
use super::{Keeper, MAX_RECORD};

impl Keeper {
    /// Writes the trace of everything so far. Returns its size in bytes. If that is more than the
    /// budget, it is not written to its end, and must be written again after [`fit`](Self::fit).
    ///
    /// `locations` are those of the decoder that the events are from.
    pub fn write(
        &mut self,
        info: &TraceInfo,
        locations: &Locations,
        early_end: Option<EarlyEnd>,
        sink: &mut impl PacketSink,
    ) -> io::Result<u64> {
        let mut sink = Limited {
            sink,
            written: 0,
            // The last one must be written.
            limit: self.budget + if self.is_full { self.budget / 8 } else { 0 },
        };
        write_info(info, &mut First(early_end, &mut sink))?;
        let live = self.live.values();
        let records = live.chain(&self.recent).chain(&self.merged);
        let mut records: Vec<&Record> = records.collect();
        // Ids follow each other in a packet, so those of a lane must.
        records.sort_unstable_by_key(|record| {
            let [birth, death] = [record.birth, record.death].map(micros);
            (record.lane, birth, death, record.words)
        });
        let mut history = CoarseHistory::default();
        for &boundary in self.intervals.boundaries() {
            history.push_boundary(boundary);
        }
        for (start, end) in self.gaps() {
            history.push_gap(start, end);
        }
        for (record, id) in records.iter().zip(0..) {
            history.push_merged(id, record.blocks - 1);
        }
        history.write(info, &mut sink)?;
        self.collections.write(info.start_time, &mut sink)?;
        self.write_events(&records, info, locations, &mut sink)?;
        let size = sink.written;
        if !records.is_empty() {
            let bytes = size as f64 / records.len() as f64;
            // What is too large must get smaller, whatever it consists of.
            let is_too_large = size > self.budget;
            self.record_bytes = if is_too_large {
                bytes
            } else {
                bytes.min(MAX_RECORD)
            };
        }
        Ok(size)
    }

    fn write_events<S: PacketSink>(
        &self,
        records: &[&Record],
        info: &TraceInfo,
        locations: &Locations,
        sink: &mut S,
    ) -> io::Result<()> {
        let mut encoders: HashMap<u16, Encoder> = HashMap::new();
        let mut codes = Vec::new();
        for (event, id) in events(records) {
            let record = records[id];
            let (lane, id) = (record.lane, id as u64);
            let encoder = encoders
                .entry(lane)
                .or_insert_with(|| Encoder::new(info.pid, lane, info.start_time));
            let time = |time: f64| info.start_time.saturating_add(micros(time));
            match event {
                Event::Promotion => encoder.promote(time(record.promotion), id, sink)?,
                Event::Death => encoder.collect(time(record.death), id, sink)?,
                Event::Birth => {
                    self.stacks.codes(record.stack, locations, &mut codes);
                    let block = Block {
                        length: record.length(),
                        samples: record.samples,
                        source: record.source,
                    };
                    let resolve = |code: u64, frames: &mut FrameSink<'_>| {
                        let location = locations.find(code);
                        for frame in location.into_iter().flat_map(|id| locations.frames(id)) {
                            frames.push(frame);
                        }
                    };
                    encoder.alloc(time(record.birth), id, block, &codes, resolve, sink)?;
                }
            }
        }
        let mut encoders: Vec<_> = encoders.into_iter().collect();
        encoders.sort_unstable_by_key(|(lane, _)| *lane);
        for (_, mut encoder) in encoders {
            encoder.flush(sink)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Birth,
    Promotion,
    Death,
}

/// The events of records, in the order of time. All of a block are written by its own lane, so that none
/// comes before its allocation in the file.
fn events(records: &[&Record]) -> impl Iterator<Item = (Event, usize)> {
    let sorted = |time: fn(&Record) -> f64| {
        let happened = (0..records.len()).filter(|&id| time(records[id]) < NEVER);
        let mut ids: Vec<u32> = happened.filter_map(|id| u32::try_from(id).ok()).collect();
        // Stable: allocations of one time stay in the order of their ids.
        ids.sort_by_key(|&id| micros(time(records[id as usize])));
        ids.into_iter().peekable()
    };
    let mut births = sorted(|record| record.birth);
    let mut promotions = sorted(|record| record.promotion);
    let mut deaths = sorted(|record| record.death);
    std::iter::from_fn(move || {
        let record = |id: Option<&u32>| id.map(|&id| records[id as usize]);
        let next = [
            record(births.peek()).map(|record| (micros(record.birth), Event::Birth)),
            record(promotions.peek()).map(|record| (micros(record.promotion), Event::Promotion)),
            record(deaths.peek()).map(|record| (micros(record.death), Event::Death)),
        ];
        let (_, event) = next.into_iter().flatten().min()?;
        let id = match event {
            Event::Birth => births.next(),
            Event::Promotion => promotions.next(),
            Event::Death => deaths.next(),
        };
        Some((event, id? as usize))
    })
}

/// Writes up to a limit, and counts what is beyond.
struct Limited<'a, S> {
    sink: &'a mut S,
    written: u64,
    limit: u64,
}

impl<S: PacketSink> PacketSink for Limited<'_, S> {
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        if self.written > self.limit {
            return Ok(());
        }
        self.sink.packet(bytes)
    }
}

/// Marks the first packet of a trace that ended early.
struct First<'a, S>(Option<EarlyEnd>, &'a mut S);

impl<S: PacketSink> PacketSink for First<'_, S> {
    fn packet(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut packet = bytes.to_vec();
        tail::sign(&mut packet);
        if let Some(end) = self.0 {
            for (offset, mark) in end.marks() {
                let at = usize::try_from(offset).map_err(io::Error::other)?;
                if let Some(place) = packet.get_mut(at..at + mark.len()) {
                    place.copy_from_slice(&mark);
                }
            }
        }
        self.1.packet(&packet)
    }
}
