//! Classes of blocks: all that blocks have in common, apart from when they lived.

use serde::{Deserialize, Serialize};

use super::ids::{ClassId, ContextId, Id, IdVec, KindId};
use super::pair_table::PairTable;

/// Blocks of the same kind that were allocated at the same place by the same path: 265,000 in the
/// compiler's trace of 3.5 million blocks. Most questions are answered by counting the blocks of
/// each class and walking the tree of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Class {
    pub(crate) context: ContextId,
    pub(crate) kind: KindId,
}

/// Gives classes their numbers.
#[derive(Debug, Default)]
pub(crate) struct ClassTable {
    classes: IdVec<ClassId, Class>,
    /// Classes by context and kind.
    numbers: PairTable<ContextId, KindId, ClassId>,
    /// Classes that were met lately, by hash.
    recent: Vec<ClassId>,
}

impl ClassTable {
    /// The class of a block.
    #[inline]
    pub(crate) fn number(&mut self, context: ContextId, kind: KindId) -> ClassId {
        let class = Class { context, kind };
        let slot = slot(class);
        if self.recent.is_empty() {
            self.recent.resize(RECENT, ClassId::NONE);
        }
        let recent = self.recent[slot];
        if self.classes.get(recent) == Some(&class) {
            return recent;
        }
        let number = self.intern(class);
        self.recent[slot] = number;
        number
    }

    /// All classes so far.
    pub(crate) fn classes(&self) -> &IdVec<ClassId, Class> {
        &self.classes
    }

    /// The kind of a class.
    #[inline]
    pub(crate) fn kind(&self, class: ClassId) -> KindId {
        self.classes[class].kind
    }

    #[inline(never)]
    fn intern(&mut self, class: Class) -> ClassId {
        let Class { context, kind } = class;
        let kind_of = |number| self.classes[number].kind;
        if let Some(number) = self.numbers.get(context, kind, kind_of) {
            return number;
        }
        let number = self.classes.push(class);
        self.numbers.insert(context, kind, number);
        number
    }

    pub(crate) fn finish(mut self) -> IdVec<ClassId, Class> {
        self.classes.shrink_to_fit();
        self.classes
    }
}

/// Classes that are remembered at most.
const RECENT: usize = 1 << 12;

/// Where a class is remembered.
#[inline]
fn slot(class: Class) -> usize {
    let key = (class.context.index() as u64) << 32 | class.kind.index() as u64;
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The top bits, as many as it takes.
    usize::try_from(hash >> (64 - RECENT.ilog2())).unwrap_or(0) % RECENT
}
