//! Locations: the codes that stacks are made of, and the source positions behind them.

use std::borrow::Cow;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

/// A location of one trace: a small number, given in order of first appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub(crate) u32);

impl LocationId {
    /// The number, below [`Locations::len`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A position in a source file.
///
/// Names are bytes because OCaml's strings are; [`name_lossy`](Self::name_lossy) and
/// [`file_lossy`](Self::file_lossy) are for showing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The source file, as the compiler was given it.
    pub file: &'a [u8],
    /// The function, such as `Stdlib__List.map`; `??` if the program does not know.
    pub name: &'a [u8],
    /// 1 is the first line. Clamped to 20 bits by the format.
    pub line: u32,
    /// The first column. Clamped to 8 bits by the format.
    pub start_char: u16,
    /// One past the last column. Clamped to 10 bits by the format.
    pub end_char: u16,
}

impl<'a> Frame<'a> {
    /// The placeholder for a frame whose name was lost.
    pub const UNKNOWN: Frame<'static> = Frame {
        file: b"<unknown>",
        name: b"??",
        line: 0,
        start_char: 0,
        end_char: 0,
    };

    /// The function's name as text.
    #[must_use]
    pub fn name_lossy(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }

    /// The file's name as text.
    #[must_use]
    pub fn file_lossy(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.file)
    }
}

/// All locations that a trace has named or used so far.
///
/// Entry 0 is the code 0, which no program uses: it is what an untouched slot of the format's
/// cache holds.
#[derive(Clone, Debug)]
pub struct Locations {
    entries: Vec<Entry>,
    frames: Vec<StoredFrame>,
    by_code: HashMap<u64, u32>,
    strings: Strings,
}

#[derive(Clone, Debug)]
struct Entry {
    code: u64,
    /// The range of its frames, or `None` until the trace has defined it.
    frames: Option<(u32, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredFrame {
    pub(crate) file: StringId,
    pub(crate) name: StringId,
    pub(crate) line: u32,
    pub(crate) start_char: u16,
    pub(crate) end_char: u16,
}

impl Default for Locations {
    fn default() -> Self {
        let mut locations = Self {
            entries: Vec::new(),
            frames: Vec::new(),
            by_code: HashMap::new(),
            strings: Strings::default(),
        };
        // Not interned: a program may have a file or function of that very name.
        locations.strings.push(Frame::UNKNOWN.file);
        locations.strings.push(Frame::UNKNOWN.name);
        locations.intern(0);
        locations
    }
}

impl Locations {
    /// The number of locations; ids are below it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no location was seen yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.len() <= 1
    }

    /// The code by which the trace calls a location: a return address in the traced program.
    #[must_use]
    pub fn code(&self, id: LocationId) -> u64 {
        self.entries[id.index()].code
    }

    /// The location of a code, if the trace has named or used it.
    #[must_use]
    pub fn find(&self, code: u64) -> Option<LocationId> {
        self.by_code.get(&code).copied().map(LocationId)
    }

    /// Returns true if the trace has defined the location, even if nothing is known of it.
    #[must_use]
    pub fn is_defined(&self, id: LocationId) -> bool {
        self.entries[id.index()].frames.is_some()
    }

    /// The frames of a location, outermost first: several where functions were inlined, none
    /// where the program knows nothing of it.
    #[must_use]
    pub fn frames(
        &self,
        id: LocationId,
    ) -> impl DoubleEndedIterator<Item = Frame<'_>> + ExactSizeIterator {
        let (start, len) = self.entries[id.index()].frames.unwrap_or((0, 0));
        let start = start as usize;
        self.frames[start..start + usize::from(len)]
            .iter()
            .map(|stored| Frame {
                file: self.strings.get(stored.file),
                name: self.strings.get(stored.name),
                line: stored.line,
                start_char: stored.start_char,
                end_char: stored.end_char,
            })
    }

    /// The location of a number, as [`LocationId::index`] gives it.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<LocationId> {
        let id = u32::try_from(index).ok()?;
        (index < self.entries.len()).then_some(LocationId(id))
    }

    /// All ids. The placeholder 0 is left out, unless the trace has named it.
    pub fn ids(&self) -> impl Iterator<Item = LocationId> + use<> {
        let first = u32::from(!self.is_defined(LocationId(0)));
        (first..u32::try_from(self.entries.len()).unwrap_or(u32::MAX)).map(LocationId)
    }

    /// The id of a code, new if it was not seen before.
    pub(crate) fn intern(&mut self, code: u64) -> LocationId {
        let entries = &mut self.entries;
        let id = *self.by_code.entry(code).or_insert_with(|| {
            entries.push(Entry { code, frames: None });
            // A trace of 40 GB would be needed to have more codes than ids.
            u32::try_from(entries.len() - 1).unwrap_or(0)
        });
        LocationId(id)
    }

    pub(crate) fn intern_string(&mut self, string: &[u8]) -> StringId {
        self.strings.intern(string)
    }

    /// Sets the frames of a code. False if it has other ones already; those are kept.
    pub(crate) fn define(&mut self, code: u64, frames: &[StoredFrame]) -> bool {
        let id = self.intern(code);
        let entry = &mut self.entries[id.index()];
        if let Some((start, len)) = entry.frames {
            let start = start as usize;
            return self.frames[start..start + usize::from(len)] == *frames;
        }
        let (Ok(start), Ok(len)) = (u32::try_from(self.frames.len()), u8::try_from(frames.len()))
        else {
            return false;
        };
        entry.frames = Some((start, len));
        self.frames.extend_from_slice(frames);
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringId(u32);

impl StringId {
    /// A file whose name was lost.
    pub(crate) const UNKNOWN_FILE: Self = Self(0);
    /// A function whose name was lost.
    pub(crate) const UNKNOWN_NAME: Self = Self(1);
}

/// Each string once, end to end in one buffer.
#[derive(Clone, Debug, Default)]
struct Strings {
    bytes: Vec<u8>,
    /// The end of each string.
    ends: Vec<usize>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Strings {
    fn intern(&mut self, string: &[u8]) -> StringId {
        let Self {
            bytes,
            ends,
            ids,
            hasher,
        } = self;
        let hash = hasher.hash_one(string);
        let id = *ids
            .entry(
                hash,
                |&id| slice(bytes, ends, id) == string,
                |&id| hasher.hash_one(slice(bytes, ends, id)),
            )
            .or_insert_with(|| u32::try_from(ends.len()).unwrap_or(0))
            .get();
        if id as usize == ends.len() {
            self.push(string);
        }
        StringId(id)
    }

    fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, id: StringId) -> &[u8] {
        slice(&self.bytes, &self.ends, id.0)
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &bytes[start..ends[id]]
}
