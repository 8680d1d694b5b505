//! Reads snapshots, section by section.

mod blocks;
mod compress;
mod cursor;
mod error;
mod items;
mod section;

use std::io::Read;

pub use blocks::{Block, Blocks};
pub use compress::{compress, compress_with};
pub use error::ReadError;
pub use items::{Definition, Ephemeron, Fact, Frame, Root, Site, Symbol, Total};
pub use section::MAX_SECTION;

use self::items::items;
use self::section::{RawSection, read_exactly};
use crate::kinds::Section;
use crate::nodes::Edge;
use crate::writer::{HEADER, MAGIC, VERSION};

/// Reads a snapshot.
///
/// Nothing in the file is trusted: sections are at most [`MAX_SECTION`] bytes long, and memory grows with the bytes
/// that are there, not with the lengths that the file states.
///
/// ```
/// use heapline_heapfile::{Content, Nodes, Reader, Writer};
///
/// let mut file = Vec::new();
/// let mut writer = Writer::new(&mut file, &[("runtime", "OCaml 5")])?;
/// let mut nodes = Nodes::default();
/// nodes.push(0x1000, 2, 0, 0, &[]);
/// writer.nodes(&mut nodes)?;
/// writer.finish(&[(0, 1, 2)])?;
///
/// let mut reader = Reader::new(&file[..])?;
/// let mut words = 0;
/// while let Some(content) = reader.next_section()? {
///     if let Content::Blocks(blocks) = content {
///         blocks.for_each(|block, _| words += block.words)?;
///     }
/// }
/// assert_eq!(words, 2);
/// # Ok::<(), heapline_heapfile::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    offset: u64,
    section: RawSection,
    previous: Option<u64>,
    edges: Vec<Edge>,
    is_at_end: bool,
    /// Bytes of a section at most.
    largest: u32,
}

/// The content of a section.
#[derive(Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// Properties: `key=value`.
    Meta(Vec<String>),
    /// Blocks.
    Blocks(Blocks<'a>),
    /// Roots.
    Roots(Vec<Root>),
    /// Functions on stacks.
    Frames(Vec<Frame>),
    /// Ephemerons and weak arrays.
    Ephemerons(Vec<Ephemeron>),
    /// Facts about some blocks.
    Facts(Vec<Fact>),
    /// Names.
    Symbols(Vec<Symbol>),
    /// Fields of modules.
    Definitions(Vec<Definition>),
    /// Sampled blocks.
    Sites(Vec<Site>),
    /// Names of stacks.
    Stacks(Vec<String>),
    /// Exact totals: the last section.
    End(Vec<Total>),
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a snapshot. The input should be buffered.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let version = read_header(&mut input)?;
        Ok(Self {
            input,
            offset: HEADER as u64,
            section: RawSection::of_version(version),
            previous: None,
            edges: Vec::new(),
            is_at_end: false,
            largest: MAX_SECTION,
        })
    }

    /// Lowers the size of sections, decompressed, above which the file is refused.
    #[must_use]
    pub fn largest_section(mut self, bytes: u32) -> Self {
        self.largest = bytes.min(MAX_SECTION);
        self
    }

    /// Reads the next section; sections of kinds that only later versions know are skipped. `None` after the last
    /// one; an input that ends before that is incomplete.
    pub fn next_section(&mut self) -> Result<Option<Content<'_>>, ReadError> {
        if self.is_at_end {
            return Ok(None);
        }
        let kind = loop {
            let largest = self.largest;
            self.offset += self.section.read(&mut self.input, self.offset, largest)?;
            if let Some(kind) = Section::from_number(self.section.kind) {
                break kind;
            }
        };
        self.is_at_end = kind == Section::End;
        let columns = self.section.columns();
        let content = match kind {
            Section::Nodes => {
                return Ok(Some(Content::Blocks(Blocks {
                    section: &self.section,
                    previous: &mut self.previous,
                    edges: &mut self.edges,
                })));
            }
            Section::Meta => items(&columns).map(Content::Meta),
            Section::Roots => items(&columns).map(Content::Roots),
            Section::Frames => items(&columns).map(Content::Frames),
            Section::Ephemerons => items(&columns).map(Content::Ephemerons),
            Section::Facts => items(&columns).map(Content::Facts),
            Section::Symbols => items(&columns).map(Content::Symbols),
            Section::Definitions => items(&columns).map(Content::Definitions),
            Section::Sites => items(&columns).map(Content::Sites),
            Section::Stacks => items(&columns).map(Content::Stacks),
            Section::End => items(&columns).map(Content::End),
        };
        match content {
            Ok(content) => Ok(Some(content)),
            Err(problem) => Err(self.section.damaged(problem)),
        }
    }
}

/// Returns true if a file begins like a snapshot.
#[must_use]
pub fn is_snapshot(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Reads the beginning of a file; returns the version.
fn read_header(input: impl Read) -> Result<u16, ReadError> {
    let mut header = [0; HEADER];
    match read_exactly(input, &mut header, 0) {
        Err(ReadError::Incomplete { .. }) => return Err(ReadError::NotASnapshot),
        result => result?,
    }
    if !is_snapshot(&header) {
        return Err(ReadError::NotASnapshot);
    }
    match u16::from_le_bytes([header[HEADER - 2], header[HEADER - 1]]) {
        version @ 1..=VERSION => Ok(version),
        version => Err(ReadError::UnknownVersion(version)),
    }
}
