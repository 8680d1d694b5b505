//! Encodes location events.

use std::borrow::BorrowMut;
use std::io;

use hashbrown::HashSet;

use super::encoder::{DEEPER_CALLS, OMITTED_FRAMES};
use super::packet::{PacketBuffer, PacketMemory, PacketSink};
use crate::format::{CacheCheck, MAX_WRITTEN_PACKET, MTF_LEN, PacketHeader, code, event_head};
use crate::location::Frame;
use crate::mtf::Mtf;

/// The most that the frames of one location take.
const MAX_LOCATION: usize = MAX_WRITTEN_PACKET / 2;

/// Names longer than this are cut: nobody reads them, and they must fit into a packet.
const MAX_NAME: usize = 1000;

/// The frame of a code that stands for others.
fn stand_in(code: u64) -> Option<Frame<'static>> {
    let name: &[u8] = match code {
        OMITTED_FRAMES => b"<frames omitted>",
        DEEPER_CALLS => b"<deeper calls>",
        _ => return None,
    };
    Some(Frame {
        file: b"<heapline>",
        name,
        line: 0,
        start_char: 0,
        end_char: 0,
    })
}

/// The codes that one domain has named, and the location events to be written.
#[derive(Debug)]
pub(super) struct Names<M> {
    named: HashSet<u64>,
    tables: NameTables,
    pending: PacketBuffer<M>,
    /// The event at hand.
    event: Vec<u8>,
    /// The time of the pending events.
    time: u64,
}

impl<M: BorrowMut<PacketMemory>> Names<M> {
    pub(super) fn new(pending: PacketBuffer<M>) -> Self {
        Self {
            named: HashSet::new(),
            tables: NameTables::default(),
            pending,
            event: Vec::new(),
            time: 0,
        }
    }

    /// Names a code, unless that was done before. `header` is that of the packet that needs it.
    pub(super) fn add(
        &mut self,
        code: u64,
        header: PacketHeader,
        resolve: &mut impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        if !self.named.insert(code) {
            return Ok(());
        }
        if self.pending.room() < MAX_LOCATION + 16 {
            self.flush(sink)?;
        }
        if self.pending.is_empty() {
            // Within a domain times must not decrease, so a name is as old as the packet it is
            // written before.
            self.time = header.time_begin;
            self.pending.open(PacketHeader {
                time_end: self.time,
                flush_duration: 0,
                check: CacheCheck::NONE,
                end_id: header.first_id,
                ..header
            });
        }
        self.event.clear();
        self.event
            .extend_from_slice(&event_head(code::LOCATION, self.time));
        self.event.extend_from_slice(&code.to_le_bytes());
        let count_at = self.event.len();
        self.event.push(0);
        let mut frames = FrameSink {
            tables: &mut self.tables,
            out: &mut self.event,
            count: 0,
            room: MAX_LOCATION,
        };
        match stand_in(code) {
            Some(frame) => frames.push(frame),
            None => resolve(code, &mut frames),
        }
        let count = frames.count;
        self.event[count_at] = count;
        let end = self.pending.put([&self.event]);
        self.pending.seal(end);
        Ok(())
    }

    pub(super) fn flush(&mut self, sink: &mut impl PacketSink) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.pending.write(sink)
    }
}

/// Takes the frames of a location, outermost first: several where functions were inlined, none if
/// nothing is known.
#[derive(Debug)]
pub struct FrameSink<'a> {
    tables: &'a mut NameTables,
    out: &'a mut Vec<u8>,
    count: u8,
    /// Bytes left if no name were known: what is kept must not depend on what is.
    room: usize,
}

impl FrameSink<'_> {
    /// Returns true if no frame was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a frame. Lines and columns beyond what the format can express are clamped, names cut
    /// after 1000 bytes or at a NUL, and frames beyond the 255th, or beyond 16 KiB of names,
    /// dropped.
    pub fn push(&mut self, frame: Frame<'_>) {
        let needed = 6 + frame.file.len().min(MAX_NAME) + frame.name.len().min(MAX_NAME) + 2;
        if self.count == u8::MAX || self.room < needed {
            self.room = 0;
            return;
        }
        self.tables.put_frame(&frame, self.out);
        self.count += 1;
        self.room -= needed;
    }
}

/// The move-to-front tables of one domain.
#[derive(Debug, Default)]
struct NameTables {
    files: Mtf<File>,
}

#[derive(Debug)]
struct File {
    name: Box<[u8]>,
    functions: Mtf<Box<[u8]>>,
}

impl NameTables {
    /// Appends one frame of a location event.
    fn put_frame(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        let (file_name, name) = (c_string(frame.file), c_string(frame.name));
        let (file_index, file) = match self.files.position(|file| *file.name == *file_name) {
            Some(index) => (index, self.files.touch(index)),
            None => {
                self.files.push(File {
                    name: file_name.into(),
                    functions: Mtf::default(),
                });
                (MTF_LEN, self.files.touch(0))
            }
        };
        let Some(file) = file else {
            unreachable!("the file was just found or added");
        };
        let name_index = match file.functions.position(|known| **known == *name) {
            Some(index) => {
                file.functions.touch(index);
                index
            }
            None => {
                file.functions.push(name.into());
                MTF_LEN
            }
        };
        let packed = u64::from(frame.line.min(0xf_ffff))
            | u64::from(frame.start_char.min(0xff)) << 20
            | u64::from(frame.end_char.min(0x3ff)) << 28
            | (file_index as u64) << 38
            | (name_index as u64) << 43;
        out.extend_from_slice(&packed.to_le_bytes()[..6]);
        if file_index == MTF_LEN {
            out.extend_from_slice(file_name);
            out.push(0);
        }
        if name_index == MTF_LEN {
            out.extend_from_slice(name);
            out.push(0);
        }
    }
}

/// The part of a name that can be written: the format terminates strings with a NUL.
fn c_string(name: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, name).unwrap_or(name.len());
    &name[..end.min(MAX_NAME)]
}
