//! Kinds of blocks: the few facts that a great many blocks have in common.

use hashbrown::HashMap;
use heapline_trace::Source;

/// What a block is, apart from when and where it was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Words, without the header.
    pub length: u64,
    /// How many of its words, header included, were sampled.
    pub samples: u64,
    /// The heap that it was allocated on.
    pub source: Source,
    /// The domain that allocated it.
    pub domain: u16,
}

/// Gives kinds their numbers.
#[derive(Debug, Default)]
pub(crate) struct KindTable {
    kinds: Vec<Kind>,
    numbers: HashMap<Kind, u32>,
    /// Number + 1 of the short blocks of the current domain that were sampled once on the minor
    /// heap: nearly all blocks.
    common: Vec<u32>,
    domain: u16,
}

impl KindTable {
    const COMMON: usize = 256;

    /// The number of a kind; `is_new` is told of it first if it is a new one.
    #[inline]
    pub(crate) fn number(&mut self, kind: Kind, is_new: impl FnOnce(&Kind)) -> u32 {
        let length = usize::try_from(kind.length).unwrap_or(usize::MAX);
        if kind.samples != 1 || kind.source != Source::Minor || length >= Self::COMMON {
            return self.intern(kind, is_new);
        }
        if kind.domain != self.domain || self.common.is_empty() {
            self.domain = kind.domain;
            self.common.clear();
            self.common.resize(Self::COMMON, 0);
        }
        if self.common[length] == 0 {
            self.common[length] = self.intern(kind, is_new) + 1;
        }
        self.common[length] - 1
    }

    fn intern(&mut self, kind: Kind, is_new: impl FnOnce(&Kind)) -> u32 {
        *self.numbers.entry(kind).or_insert_with(|| {
            is_new(&kind);
            self.kinds.push(kind);
            // There are not more kinds than blocks, and those are counted.
            u32::try_from(self.kinds.len() - 1).unwrap_or(u32::MAX)
        })
    }

    pub(crate) fn finish(self) -> Vec<Kind> {
        self.kinds
    }
}
