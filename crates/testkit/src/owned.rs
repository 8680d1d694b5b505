//! Traces as plain values that can be compared.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use heapline_trace::{Error, Event, Frame, LocationId, Locations, Options, Reader, Source};

/// A whole trace in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedTrace {
    /// In file order.
    pub events: Vec<OwnedEvent>,
    /// The frames of each code that the trace names.
    pub locations: BTreeMap<u64, Vec<OwnedFrame>>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "these are the fields of the real events")]
pub enum OwnedEvent {
    Alloc {
        time: u64,
        id: u64,
        domain: u16,
        length: u64,
        samples: u64,
        source: Source,
        /// Codes, the outermost first.
        stack: Vec<u64>,
        common_prefix: u64,
    },
    Promote {
        time: u64,
        id: u64,
        domain: u16,
    },
    Collect {
        time: u64,
        id: u64,
        domain: u16,
    },
}

/// A frame of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "these are the fields of the real frames")]
pub struct OwnedFrame {
    pub file: Vec<u8>,
    pub name: Vec<u8>,
    pub line: u32,
    pub start_char: u16,
    pub end_char: u16,
}

impl From<Frame<'_>> for OwnedFrame {
    fn from(frame: Frame<'_>) -> Self {
        Self {
            file: frame.file.to_vec(),
            name: frame.name.to_vec(),
            line: frame.line,
            start_char: frame.start_char,
            end_char: frame.end_char,
        }
    }
}

impl OwnedEvent {
    /// Copies an event.
    #[must_use]
    pub fn new(event: &Event<'_>, locations: &Locations) -> Self {
        match *event {
            Event::Alloc(alloc) => Self::Alloc {
                time: alloc.time,
                id: alloc.id,
                domain: alloc.domain,
                length: alloc.length,
                samples: alloc.samples,
                source: alloc.source,
                stack: alloc
                    .stack
                    .frames()
                    .iter()
                    .map(|&id| locations.code(id))
                    .collect(),
                common_prefix: alloc.stack.common_prefix(),
            },
            Event::Promote(mark) => Self::Promote {
                time: mark.time,
                id: mark.id,
                domain: mark.domain,
            },
            Event::Collect(mark) => Self::Collect {
                time: mark.time,
                id: mark.id,
                domain: mark.domain,
            },
        }
    }
}

impl OwnedTrace {
    /// The events without what a writer is free to choose: how much of a stack is given as shared
    /// with the one before.
    #[must_use]
    pub fn comparable(&self) -> Vec<OwnedEvent> {
        let mut events = self.events.clone();
        for event in &mut events {
            if let OwnedEvent::Alloc { common_prefix, .. } = event {
                *common_prefix = 0;
            }
        }
        events
    }

    /// Reads a trace with the real reader.
    pub fn read(bytes: &[u8], options: Options) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes, options)?;
        Self::read_rest(&mut reader)
    }

    /// Reads what is left of a trace.
    ///
    /// # Panics
    ///
    /// If a stack is not what following the changes from stack to stack gives.
    pub fn read_rest<R: Read>(reader: &mut Reader<R>) -> Result<Self, Error> {
        let mut trace = Self::default();
        let mut followed: HashMap<u16, Vec<LocationId>> = HashMap::new();
        reader.for_each(|event, locations| {
            if let Event::Alloc(alloc) = event {
                let stack = followed.entry(alloc.domain).or_default();
                stack.truncate(alloc.stack.shared());
                stack.extend(alloc.stack.new_frames());
                assert_eq!(
                    stack,
                    alloc.stack.frames(),
                    "the changes do not make the stack"
                );
            }
            trace.events.push(OwnedEvent::new(&event, locations));
        })?;
        let locations = reader.locations();
        trace.locations = locations
            .ids()
            .filter(|&id| locations.is_defined(id))
            .map(|id| {
                (
                    locations.code(id),
                    locations.frames(id).map(OwnedFrame::from).collect(),
                )
            })
            .collect();
        Ok(trace)
    }
}
