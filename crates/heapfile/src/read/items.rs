//! The items of sections.

use super::cursor::Cursor;
use super::section::Columns;
use crate::kinds::{FactKind, RootKind, SymbolKind};

/// A root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The kind of root.
    pub kind: RootKind,
    /// The address of a block.
    pub target: u64,
    /// See [`RootKind`].
    pub a: u64,
    /// See [`RootKind`].
    pub b: u64,
}

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// The file, or nothing.
    pub file: String,
    /// The line, or 0.
    pub line: u64,
}

/// An ephemeron or weak array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ephemeron {
    /// Its address.
    pub block: u64,
    /// The address of its data, or 0.
    pub data: u64,
    /// The addresses of its keys; 0 for empty ones and those that are no blocks.
    pub keys: Vec<u64>,
}

/// A fact about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The kind of fact.
    pub kind: FactKind,
    /// The address of the block.
    pub block: u64,
    /// See [`FactKind`].
    pub a: u64,
    /// See [`FactKind`].
    pub b: u64,
}

/// A name of something in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its kind.
    pub kind: SymbolKind,
    /// Its address, in bytes.
    pub address: u64,
    /// Its name, as the linker knows it.
    pub name: String,
}

/// A field of a module's block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The address of the module's block.
    pub module: u64,
    /// The number of the field.
    pub field: u64,
    /// Its name, or nothing.
    pub name: String,
    /// The file, or nothing.
    pub file: String,
    /// The line, or 0.
    pub line: u64,
}

/// A block that a recording has sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its address.
    pub block: u64,
    /// Its number in the trace.
    pub number: u64,
    /// The number of times that it was sampled.
    pub samples: u64,
}

/// The exact totals of a tag, including blocks that are folded into others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The tag.
    pub tag: u8,
    /// Blocks.
    pub blocks: u64,
    /// Words, without headers.
    pub words: u64,
}

/// An item of a section with columns. `None` is an item of a kind that only later versions know.
pub(super) trait Item: Sized {
    const COLUMNS: usize;

    fn read(columns: &mut [Cursor<'_>; 5]) -> Result<Option<Self>, &'static str>;
}

/// Reads all items of a section.
pub(super) fn items<T: Item>(columns: &Columns<'_>) -> Result<Vec<T>, &'static str> {
    let mut cursors = columns.cursors(T::COLUMNS)?;
    let mut items = Vec::new();
    for _ in 0..columns.items() {
        items.extend(T::read(&mut cursors)?);
    }
    Columns::check_end(&cursors)?;
    Ok(items)
}

impl Item for Root {
    const COLUMNS: usize = 4;

    fn read([kind, target, a, b, _]: &mut [Cursor<'_>; 5]) -> Result<Option<Self>, &'static str> {
        let (kind, target) = (kind.byte()?, target.delta()?);
        let (a, b) = (a.varint()?, b.varint()?);
        // A root of a later kind holds its target all the same.
        let kind = RootKind::from_number(kind).unwrap_or(RootKind::Other);
        Ok(Some(Self { kind, target, a, b }))
    }
}

impl Item for Frame {
    const COLUMNS: usize = 3;

    fn read(
        [function, file, line, ..]: &mut [Cursor<'_>; 5],
    ) -> Result<Option<Self>, &'static str> {
        Ok(Some(Self {
            function: function.text()?,
            file: file.text()?,
            line: line.varint()?,
        }))
    }
}

impl Item for Ephemeron {
    const COLUMNS: usize = 4;

    fn read(
        [block, data, count, keys, _]: &mut [Cursor<'_>; 5],
    ) -> Result<Option<Self>, &'static str> {
        let (block, data) = (block.delta()?, data.delta()?);
        let keys = (0..count.varint()?)
            .map(|_| keys.delta())
            .collect::<Result<_, _>>()?;
        Ok(Some(Self { block, data, keys }))
    }
}

impl Item for Fact {
    const COLUMNS: usize = 4;

    fn read([kind, block, a, b, _]: &mut [Cursor<'_>; 5]) -> Result<Option<Self>, &'static str> {
        let (kind, block) = (kind.byte()?, block.delta()?);
        let (a, b) = (a.varint()?, b.varint()?);
        Ok(FactKind::from_number(kind).map(|kind| Self { kind, block, a, b }))
    }
}

impl Item for Symbol {
    const COLUMNS: usize = 3;

    fn read([kind, address, name, ..]: &mut [Cursor<'_>; 5]) -> Result<Option<Self>, &'static str> {
        let (kind, address, name) = (kind.byte()?, address.delta()?, name.text()?);
        Ok(SymbolKind::from_number(kind).map(|kind| Self {
            kind,
            address,
            name,
        }))
    }
}

impl Item for Definition {
    const COLUMNS: usize = 5;

    fn read(
        [module, field, name, file, line]: &mut [Cursor<'_>; 5],
    ) -> Result<Option<Self>, &'static str> {
        Ok(Some(Self {
            module: module.delta()?,
            field: field.varint()?,
            name: name.text()?,
            file: file.text()?,
            line: line.varint()?,
        }))
    }
}

impl Item for Site {
    const COLUMNS: usize = 3;

    fn read(
        [block, number, samples, ..]: &mut [Cursor<'_>; 5],
    ) -> Result<Option<Self>, &'static str> {
        Ok(Some(Self {
            block: block.delta()?,
            number: number.varint()?,
            samples: samples.varint()?,
        }))
    }
}

impl Item for Total {
    const COLUMNS: usize = 3;

    fn read([tag, blocks, words, ..]: &mut [Cursor<'_>; 5]) -> Result<Option<Self>, &'static str> {
        Ok(Some(Self {
            tag: tag.byte()?,
            blocks: blocks.varint()?,
            words: words.varint()?,
        }))
    }
}

/// A text for each item: properties and names of stacks.
impl Item for String {
    const COLUMNS: usize = 1;

    fn read([text, ..]: &mut [Cursor<'_>; 5]) -> Result<Option<Self>, &'static str> {
        text.text().map(Some)
    }
}
