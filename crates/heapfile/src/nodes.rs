//! A section of blocks.

use crate::column::{put_delta, put_varint};

/// Tags with a detail.
pub(crate) const CLOSURE: u8 = 247;
pub(crate) const STRING: u8 = 252;
pub(crate) const CUSTOM: u8 = 255;

/// A reference of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The number of the field.
    pub field: u64,
    /// The address of the block that it refers to.
    pub target: u64,
}

/// Blocks that are not nodes of their own, because only this one refers to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// Further cells of the list that begins here.
    pub cells: u64,
    /// Other blocks.
    pub others: u64,
    /// Words of both, without headers.
    pub words: u64,
}

/// Blocks on their way to a section.
///
/// | column | |
/// | --- | --- |
/// | address | varint: words since the previous block; the first since 0 |
/// | words | varint, without the header |
/// | tag | u8 |
/// | detail | for closures: delta of the address of the code in bytes; for custom blocks: delta of the address of the operations in bytes, from that of the previous custom block; for strings: a hash of the content, 8 bytes |
/// | references | varint: their number |
/// | field | varint per reference: fields between it and the previous one |
/// | target | varint per reference: zigzag-encoded difference to the address of this block |
/// | folded | nothing, or per block: cells, others and words: varints |
#[derive(Debug, Default)]
pub struct Nodes {
    columns: [Vec<u8>; Self::COLUMNS],
    items: u32,
    previous: u64,
    code: u64,
    operations: u64,
}

impl Nodes {
    /// The number of columns.
    pub const COLUMNS: usize = 8;

    /// Appends a block, with its address in words, its size without the header, and its
    /// [detail](Self): the address of its code or operations, or the hash of its content. Blocks come in the
    /// order of addresses.
    #[inline]
    pub fn push(&mut self, address: u64, words: u64, tag: u8, detail: u64, edges: &[Edge]) {
        let [gaps, sizes, tags, details, degrees, fields, targets, _] = &mut self.columns;
        put_varint(gaps, address.wrapping_sub(self.previous));
        put_varint(sizes, words);
        tags.push(tag);
        match tag {
            CLOSURE => {
                put_delta(details, self.code, detail);
                self.code = detail;
            }
            CUSTOM => {
                put_delta(details, self.operations, detail);
                self.operations = detail;
            }
            STRING => details.extend_from_slice(&detail.to_le_bytes()),
            _ => {}
        }
        put_varint(degrees, edges.len() as u64);
        let mut next = 0;
        for edge in edges {
            put_varint(fields, edge.field.wrapping_sub(next));
            next = edge.field.wrapping_add(1);
            put_delta(targets, address, edge.target);
        }
        self.previous = address;
        self.items += 1;
    }

    /// Says which blocks are folded into the last one. For all blocks of a snapshot or none.
    pub fn fold(&mut self, folded: Folded) {
        let column = &mut self.columns[Self::COLUMNS - 1];
        put_varint(column, folded.cells);
        put_varint(column, folded.others);
        put_varint(column, folded.words);
    }

    /// The number of blocks.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.items
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// The bytes that were appended.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    /// The columns.
    #[must_use]
    pub fn columns(&self) -> &[Vec<u8>] {
        &self.columns
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        (self.items, self.previous, self.code, self.operations) = (0, 0, 0, 0);
    }
}
