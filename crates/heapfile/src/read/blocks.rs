//! Decodes sections of blocks.

use super::error::ReadError;
use super::section::{Columns, RawSection};
use crate::nodes::{CLOSURE, CUSTOM, Edge, Folded, Nodes, STRING};

/// A block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its address in words.
    pub address: u64,
    /// Its size in words, without the header.
    pub words: u64,
    /// Its tag.
    pub tag: u8,
    /// The address of its code or operations in bytes, or the hash of its content; see [`Nodes`].
    pub detail: u64,
    /// Blocks that are folded into it.
    pub folded: Folded,
}

/// A section of blocks.
#[derive(Debug)]
pub struct Blocks<'a> {
    pub(super) section: &'a RawSection,
    /// The address of the last block before this section, and then of the last block.
    pub(super) previous: &'a mut Option<u64>,
    pub(super) edges: &'a mut Vec<Edge>,
}

impl Blocks<'_> {
    /// The number of blocks.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.section.items
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.section.items == 0
    }

    /// Calls a function for each block, with its references.
    pub fn for_each(self, f: impl FnMut(&Block, &[Edge])) -> Result<(), ReadError> {
        let section = self.section;
        self.decode(f).map_err(|problem| section.damaged(problem))
    }

    fn decode(self, mut f: impl FnMut(&Block, &[Edge])) -> Result<(), &'static str> {
        let columns = self.section.columns();
        let mut cursors = columns.cursors::<{ Nodes::COLUMNS }>(Nodes::COLUMNS)?;
        let [gaps, sizes, tags, details, degrees, fields, targets, folded] = &mut cursors;
        let is_folded = !folded.is_empty();
        let (mut address, mut code, mut operations) = (0_u64, 0, 0);
        for _ in 0..columns.items() {
            address = address
                .checked_add(gaps.varint()?)
                .filter(|address| self.previous.is_none_or(|previous| *address > previous))
                .ok_or("blocks that are not in the order of their addresses")?;
            *self.previous = Some(address);
            let words = sizes.varint()?;
            let tag = tags.byte()?;
            let detail = match tag {
                CLOSURE => {
                    code = details.delta_from(code)?;
                    code
                }
                CUSTOM => {
                    operations = details.delta_from(operations)?;
                    operations
                }
                STRING => details.eight_bytes()?,
                _ => 0,
            };
            self.edges.clear();
            let mut next = 0_u64;
            for _ in 0..degrees.varint()? {
                let field = next.wrapping_add(fields.varint()?);
                next = field.wrapping_add(1);
                let target = targets.delta_from(address)?;
                self.edges.push(Edge { field, target });
            }
            let folded = if is_folded {
                Folded {
                    cells: folded.varint()?,
                    others: folded.varint()?,
                    words: folded.varint()?,
                }
            } else {
                Folded::default()
            };
            let block = Block {
                address,
                words,
                tag,
                detail,
                folded,
            };
            f(&block, self.edges);
        }
        Columns::check_end(&cursors)
    }
}
