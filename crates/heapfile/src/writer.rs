//! Writes a snapshot.

use std::io::{self, Write};

use crate::column::{put_text, put_varint};
use crate::kinds::Section;
use crate::nodes::Nodes;

/// The beginning of a file.
pub const MAGIC: [u8; 14] = *b"heapline heap\n";

/// The version that is written. Sections of the first one have no checksum.
pub const VERSION: u16 = 2;

/// Bytes of the beginning of a file: [`MAGIC`] and [`VERSION`].
pub const HEADER: usize = MAGIC.len() + 2;

/// Bytes before the payload of a section.
pub const SECTION_HEADER: usize = CHECKED_HEADER + CHECKSUM;

/// Bytes of the header of a section that its checksum is of, with the payload.
pub(crate) const CHECKED_HEADER: usize = 16;

/// Bytes of a checksum.
pub(crate) const CHECKSUM: usize = 4;

/// Sections are stored as they are.
pub(crate) const PLAIN: u8 = 0;

/// Bytes of columns in a section of blocks before it is written.
const ENOUGH: usize = 1 << 20;

/// Items in a section of blocks before it is written.
const MANY: u32 = 1 << 16;

/// Writes a snapshot to a file or a pipe.
///
/// ```
/// use heapline_heapfile::{Edge, Nodes, Writer};
///
/// let mut file = Vec::new();
/// let mut writer = Writer::new(&mut file, &[("runtime", "OCaml 5")])?;
/// let mut nodes = Nodes::default();
/// nodes.push(0x1000, 2, 0, 0, &[Edge { field: 1, target: 0x1003 }]);
/// nodes.push(0x1003, 1, 253, 0, &[]);
/// writer.nodes(&mut nodes)?;
/// writer.finish(&[(0, 1, 2), (253, 1, 1)])?;
/// assert!(file.starts_with(b"heapline heap\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    written: u64,
    payload: Vec<u8>,
}

/// What stands before the payload of a section.
pub(crate) struct SectionHeader {
    pub(crate) kind: u8,
    pub(crate) codec: u8,
    pub(crate) items: u32,
    /// Bytes of the payload before it was compressed.
    pub(crate) plain: u32,
}

impl SectionHeader {
    /// Writes it and the payload as it is stored; returns the bytes written.
    pub(crate) fn write(&self, mut out: impl Write, stored: &[u8]) -> io::Result<u64> {
        let len = u32::try_from(stored.len()).map_err(io::Error::other)?;
        let mut header = [0; CHECKED_HEADER];
        (header[0], header[1]) = (self.kind, self.codec);
        header[4..8].copy_from_slice(&self.items.to_le_bytes());
        header[8..12].copy_from_slice(&self.plain.to_le_bytes());
        header[12..].copy_from_slice(&len.to_le_bytes());
        out.write_all(&header)?;
        out.write_all(&checksum(&header, stored).to_le_bytes())?;
        out.write_all(stored)?;
        Ok(SECTION_HEADER as u64 + u64::from(len))
    }
}

/// The checksum of a section.
pub(crate) fn checksum(header: &[u8; CHECKED_HEADER], stored: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(header);
    sum.update(stored);
    sum.finalize()
}

impl<W: Write> Writer<W> {
    /// Starts a snapshot, with what is known about it.
    pub fn new(mut out: W, meta: &[(&str, &str)]) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Self {
            out,
            written: HEADER as u64,
            payload: Vec::new(),
        };
        writer.meta(meta)?;
        Ok(writer)
    }

    /// Writes more of what is known about the snapshot.
    pub fn meta(&mut self, meta: &[(&str, &str)]) -> io::Result<()> {
        let mut lines = Vec::new();
        for (key, value) in meta {
            put_text(&mut lines, format!("{key}={value}").as_bytes());
        }
        self.section(Section::Meta, meta.len(), &[&lines])
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes a section.
    pub fn section(&mut self, kind: Section, items: usize, columns: &[&[u8]]) -> io::Result<()> {
        self.payload.clear();
        for column in columns {
            let len = u32::try_from(column.len()).map_err(io::Error::other)?;
            self.payload.extend_from_slice(&len.to_le_bytes());
            self.payload.extend_from_slice(column);
        }
        let items = u32::try_from(items).map_err(io::Error::other)?;
        let len = u32::try_from(self.payload.len()).map_err(io::Error::other)?;
        let header = SectionHeader {
            kind: kind as u8,
            codec: PLAIN,
            items,
            plain: len,
        };
        self.written += header.write(&mut self.out, &self.payload)?;
        Ok(())
    }

    /// Writes blocks if there are enough of them for a section.
    pub fn nodes_if_full(&mut self, nodes: &mut Nodes) -> io::Result<()> {
        if nodes.bytes() < ENOUGH && nodes.len() < MANY {
            return Ok(());
        }
        self.nodes(nodes)
    }

    /// Writes blocks, if there are any, and empties the collection.
    pub fn nodes(&mut self, nodes: &mut Nodes) -> io::Result<()> {
        if !nodes.is_empty() {
            let columns: [&[u8]; Nodes::COLUMNS] =
                std::array::from_fn(|n| nodes.columns()[n].as_slice());
            self.section(Section::Nodes, nodes.len() as usize, &columns)?;
            nodes.clear();
        }
        Ok(())
    }

    /// Ends the snapshot with its exact totals: tag, blocks, words.
    pub fn finish(mut self, totals: &[(u8, u64, u64)]) -> io::Result<()> {
        let (mut tags, mut blocks, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for (tag, count, size) in totals {
            tags.push(*tag);
            put_varint(&mut blocks, *count);
            put_varint(&mut words, *size);
        }
        self.section(Section::End, totals.len(), &[&tags, &blocks, &words])?;
        self.out.flush()
    }
}
