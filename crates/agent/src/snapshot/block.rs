//! The blocks of OCaml's heap.

use super::raw::Raw;

pub(super) const CONTINUATION: u8 = 245;
pub(super) const CLOSURE: u8 = 247;
pub(super) const INFIX: u8 = 249;
pub(super) const ABSTRACT: u8 = 251;
pub(super) const STRING: u8 = 252;
pub(super) const CUSTOM: u8 = 255;

/// The colour of static data; in OCaml 4 also of blocks that were marked.
const STATIC: usize = 3;

/// The header of a block, which is the word before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header(usize);

impl Header {
    #[inline]
    pub(super) fn of(raw: Raw, block: usize) -> Self {
        Self(raw.word(block.wrapping_sub(8)))
    }

    /// Words of the block, without the header.
    #[inline]
    pub(super) fn words(self) -> usize {
        // The highest 8 bits may be reserved.
        self.0 << 8 >> 18
    }

    #[inline]
    pub(super) fn tag(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    /// Returns true for static data. In OCaml 4, other blocks may look the same.
    #[inline]
    pub(super) fn is_static(self) -> bool {
        self.0 >> 8 & 3 == STATIC
    }
}

/// Bits of the addresses that programs have.
const ADDRESS_BITS: u32 = 47;

/// Returns true if a value may be the address of a block.
#[inline]
pub(super) fn is_pointer(value: usize) -> bool {
    value.is_multiple_of(8) && value != 0 && value >> ADDRESS_BITS == 0
}

/// The layout of blocks in a runtime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Closures say where their code ends and their environment begins: from 4.12 on.
    pub(super) has_environment_start: bool,
    /// There are continuations: OCaml 5.
    pub(super) has_continuations: bool,
}

impl Layout {
    /// The field at which the references of a block begin; `None` if it has none.
    #[inline]
    pub(super) fn first_field(self, raw: Raw, block: usize, header: Header) -> Option<usize> {
        match header.tag() {
            ABSTRACT.. => None,
            CLOSURE if self.has_environment_start && header.words() > 1 => {
                Some(raw.word(block + 8) << 8 >> 9)
            }
            _ => Some(0),
        }
    }

    /// The stack of a continuation that was not resumed yet.
    pub(super) fn fiber(self, raw: Raw, block: usize, header: Header) -> Option<usize> {
        if !self.has_continuations || header.tag() != CONTINUATION {
            return None;
        }
        let stack = raw.word(block) & !1;
        is_pointer(stack).then_some(stack)
    }
}
