//! Events on their way from a decoder to whoever wants them.

use serde::{Deserialize, Serialize};

use crate::{Collection, Mark, Snapshot};

/// Where a block is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Space {
    /// OCaml's minor heap.
    #[default]
    Minor,
    /// OCaml's major heap.
    Major,
    /// Outside of OCaml's heaps, but kept alive by a block there.
    External,
    /// Memory of an allocator such as malloc or Rust's global allocator.
    Native,
}

impl Space {
    /// All spaces.
    pub const ALL: [Self; 4] = [Self::Minor, Self::Major, Self::External, Self::Native];

    /// A short name: `minor`, `major`, `external` or `native`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minor => "minor",
            Self::Major => "major",
            Self::External => "external",
            Self::Native => "native",
        }
    }

    /// Words of a block beside its contents: OCaml's header.
    #[must_use]
    pub fn header_words(self) -> u64 {
        u64::from(matches!(self, Self::Minor | Self::Major))
    }
}

/// A code location, numbered by the source in order of first appearance.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct LocationId(pub u32);

impl LocationId {
    /// The number, as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A position in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The source file.
    pub file: &'a [u8],
    /// The function.
    pub name: &'a [u8],
    /// 1 is the first line; 0 if it is not known.
    pub line: u32,
    /// The first column.
    pub start_char: u16,
    /// One past the last column.
    pub end_char: u16,
}

impl Frame<'static> {
    /// A frame of which nothing is known.
    pub const UNKNOWN: Self = Frame {
        file: b"<unknown>",
        name: b"??",
        line: 0,
        start_char: 0,
        end_char: 0,
    };
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A block was allocated: the next of [`Batch::births`].
    Birth,
    /// A block moved from the minor to the major heap.
    Promotion,
    /// A block was freed, or found dead by the garbage collector.
    Death,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since the start.
    pub time: u64,
    /// The block's id, unique in the source.
    pub block: u64,
    /// The lane (OCaml's domain, or a thread) that noted the event.
    pub lane: u16,
    /// Its kind.
    pub kind: EventKind,
}

/// A sampled block, as it was allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Birth {
    /// Bytes, without a header.
    pub size: u64,
    /// How often the sampler hit it.
    pub samples: u64,
    /// Blocks that the source has merged into this one; the samples are theirs together.
    pub merged: u64,
    /// Where it was allocated.
    pub space: Space,
    /// True if the innermost frames of its stack are missing.
    pub truncated: bool,
    /// True if it was dead when the source told of it: it never counts as alive. No death follows.
    pub passed: bool,
    /// The lane of its event: [`Batch::birth`] sets it.
    pub lane: u16,
    /// How many leading frames are those of the last stack of the same lane.
    pub shared: u32,
    /// How many frames follow them: the next ones of [`Batch::frames`].
    pub new: u32,
}

/// The address and the frames of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationDefinition<'a> {
    /// The location.
    pub id: LocationId,
    /// Its address in the program, or another number that identifies it.
    pub address: u64,
    /// True if the source has named it. It may do so later: then it is defined again.
    pub is_named: bool,
    frames: &'a [StoredFrame],
    text: &'a [u8],
}

impl<'a> LocationDefinition<'a> {
    /// Its frames, outermost first: several where functions were inlined, none where the program
    /// itself knows nothing of the location.
    #[must_use]
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame<'a>> + use<'a> {
        let text = self.text;
        self.frames.iter().map(move |frame| {
            let (file, rest) = text[frame.start as usize..].split_at(frame.file_len as usize);
            Frame {
                file,
                name: &rest[..frame.name_len as usize],
                line: frame.line,
                start_char: frame.start_char,
                end_char: frame.end_char,
            }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoredFrame {
    /// Where its names are in the text: the file, then the function.
    start: u32,
    file_len: u32,
    name_len: u32,
    line: u32,
    start_char: u16,
    end_char: u16,
}

#[derive(Clone, Copy, Debug)]
struct Definition {
    id: LocationId,
    address: u64,
    is_named: bool,
    first_frame: u32,
    frames: u32,
}

/// Some thousand events in the order of the source, with the stacks of births and the locations
/// that are new.
///
/// A batch is filled by a decoder and emptied by its consumer; both use it again and again, so that
/// nothing is allocated for an event.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    events: Vec<Event>,
    births: Vec<Birth>,
    frames: Vec<LocationId>,
    definitions: Vec<Definition>,
    named_frames: Vec<StoredFrame>,
    text: Vec<u8>,
    /// Each with the number of events before it.
    snapshots: Vec<(usize, Snapshot)>,
    marks: Vec<Mark>,
    boundaries: Vec<u64>,
    gaps: Vec<(u64, u64)>,
    collections: Vec<Collection>,
}

impl Batch {
    /// Events and frames in a batch when a decoder should hand it over: so few that it stays in the
    /// processor's cache, and so many that handing it to another thread costs little.
    pub const FULL: usize = 1 << 15;

    /// Returns true if it is time to hand it over.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.events.len() + self.frames.len() + self.collections.len() >= Self::FULL
    }

    /// Returns true if there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.definitions.is_empty()
            && self.snapshots.is_empty()
            && self.marks.is_empty()
            && self.boundaries.is_empty()
            && self.gaps.is_empty()
            && self.collections.is_empty()
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.births.clear();
        self.frames.clear();
        self.definitions.clear();
        self.named_frames.clear();
        self.text.clear();
        self.snapshots.clear();
        self.marks.clear();
        self.boundaries.clear();
        self.gaps.clear();
        self.collections.clear();
    }

    /// Adds an allocation. `frames` follow those that the stack shares with the last one of the same
    /// lane; [`Birth::new`] is set from them.
    #[inline]
    pub fn birth(
        &mut self,
        time: u64,
        lane: u16,
        block: u64,
        birth: Birth,
        frames: impl ExactSizeIterator<Item = LocationId>,
    ) {
        self.event(time, lane, block, EventKind::Birth);
        self.births.push(Birth {
            lane,
            new: u32::try_from(frames.len()).unwrap_or(u32::MAX),
            ..birth
        });
        self.frames.extend(frames);
    }

    /// Adds a promotion.
    #[inline]
    pub fn promotion(&mut self, time: u64, lane: u16, block: u64) {
        self.event(time, lane, block, EventKind::Promotion);
    }

    /// Adds a death.
    #[inline]
    pub fn death(&mut self, time: u64, lane: u16, block: u64) {
        self.event(time, lane, block, EventKind::Death);
    }

    #[inline]
    fn event(&mut self, time: u64, lane: u16, block: u64, kind: EventKind) {
        self.events.push(Event {
            time,
            block,
            lane,
            kind,
        });
    }

    /// Says what is at a location, outermost frame first, before a stack uses it.
    pub fn define<'a>(
        &mut self,
        id: LocationId,
        address: u64,
        frames: impl IntoIterator<Item = Frame<'a>>,
    ) {
        self.push_definition(id, address, true, frames);
    }

    /// Says that a stack uses a location that the source has not named yet.
    pub fn define_unnamed(&mut self, id: LocationId, address: u64) {
        self.push_definition(id, address, false, []);
    }

    fn push_definition<'a>(
        &mut self,
        id: LocationId,
        address: u64,
        is_named: bool,
        frames: impl IntoIterator<Item = Frame<'a>>,
    ) {
        // Names that are gigabytes long are not worth a thought: they are cut at what 32 bits hold.
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let first_frame = number(self.named_frames.len());
        for frame in frames {
            self.named_frames.push(StoredFrame {
                start: number(self.text.len()),
                file_len: number(frame.file.len()),
                name_len: number(frame.name.len()),
                line: frame.line,
                start_char: frame.start_char,
                end_char: frame.end_char,
            });
            self.text.extend_from_slice(frame.file);
            self.text.extend_from_slice(frame.name);
        }
        self.definitions.push(Definition {
            id,
            address,
            is_named,
            first_frame,
            frames: number(self.named_frames.len()) - first_frame,
        });
    }

    /// Adds a moment at which the source counted what was alive: what is after all events so far.
    pub fn snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push((self.events.len(), snapshot));
    }

    /// Adds an event that the program noted.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    /// Adds the end of an interval whose events the source has summed up, in microseconds since the start.
    /// What is alive, and what was allocated before, is exact there. From the last one on, everything is.
    pub fn boundary(&mut self, time: u64) {
        self.boundaries.push(time);
    }

    /// The ends of intervals that are summed up, in order.
    #[must_use]
    pub fn boundaries(&self) -> &[u64] {
        &self.boundaries
    }

    /// Adds a time in which the source has no new blocks, from and to, in microseconds since the start.
    pub fn gap(&mut self, start: u64, end: u64) {
        self.gaps.push((start, end));
    }

    /// The times in which the source has no new blocks, in order.
    #[must_use]
    pub fn gaps(&self) -> &[(u64, u64)] {
        &self.gaps
    }

    /// Adds work of the garbage collector. It is in no order with the events; within a lane it comes in the order of its
    /// ends.
    pub fn collection(&mut self, collection: Collection) {
        self.collections.push(collection);
    }

    /// The work of the garbage collector.
    #[must_use]
    pub fn collections(&self) -> &[Collection] {
        &self.collections
    }

    /// The snapshots, in order, each with the number of the batch's events before it.
    #[must_use]
    pub fn snapshots(&self) -> &[(usize, Snapshot)] {
        &self.snapshots
    }

    /// The events that the program noted, in order.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The events, in the order of the source.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The allocations among the events, in the same order.
    #[must_use]
    pub fn births(&self) -> &[Birth] {
        &self.births
    }

    /// The new frames of all births, one after the other.
    #[must_use]
    pub fn frames(&self) -> &[LocationId] {
        &self.frames
    }

    /// The locations that are new, or have been named since.
    #[must_use]
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = LocationDefinition<'_>> {
        self.definitions.iter().map(|definition| {
            let first = definition.first_frame as usize;
            LocationDefinition {
                id: definition.id,
                address: definition.address,
                is_named: definition.is_named,
                frames: &self.named_frames[first..first + definition.frames as usize],
                text: &self.text,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_keep_their_names() {
        let mut batch = Batch::default();
        let frame = |file: &'static [u8], name: &'static [u8], line| Frame {
            file,
            name,
            line,
            start_char: 1,
            end_char: 2,
        };
        let frames = [frame(b"a.ml", b"A.f", 1), frame(b"", b"", 0)];
        batch.define(LocationId(7), 0x10, frames);
        batch.define_unnamed(LocationId(8), 0x20);
        let found: Vec<_> = batch.definitions().collect();
        assert_eq!(found[0].frames().collect::<Vec<_>>(), frames);
        assert_eq!((found[0].id, found[0].is_named), (LocationId(7), true));
        assert_eq!(found[1].frames().len(), 0);
        assert!(!found[1].is_named);
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.definitions().len(), 0);
    }
}
