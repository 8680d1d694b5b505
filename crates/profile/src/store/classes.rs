//! Classes of blocks: all that blocks have in common, apart from when they lived.

use hashbrown::HashMap;

use super::stacks::{NONE, number};

/// Blocks of the same kind that were allocated at the same place by the same path: 265,000 in the
/// compiler's trace of 3.5 million blocks. Most questions are answered by counting the blocks of
/// each class and walking the tree of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) context: u32,
    pub(crate) kind: u32,
}

/// Gives classes their numbers.
#[derive(Debug, Default)]
pub(crate) struct ClassTable {
    classes: Vec<Class>,
    numbers: HashMap<(u32, u32), u32>,
    /// The kind of the last block of each context, and its class: the same as for the next one,
    /// nine times out of ten.
    recent: Vec<(u32, u32)>,
}

impl ClassTable {
    /// The class of a block.
    #[inline]
    pub(crate) fn classify(&mut self, kind: u32, context: u32) -> u32 {
        let index = context as usize;
        if self.recent.len() <= index {
            self.recent.resize(index + 1, (NONE, NONE));
        }
        if self.recent[index].0 != kind {
            self.recent[index] = (kind, self.number(context, kind));
        }
        self.recent[index].1
    }

    /// All classes so far.
    pub(crate) fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The kind of a class.
    #[inline]
    pub(crate) fn kind(&self, class: u32) -> u32 {
        self.classes[class as usize].kind
    }

    fn number(&mut self, context: u32, kind: u32) -> u32 {
        let classes = &mut self.classes;
        *self.numbers.entry((context, kind)).or_insert_with(|| {
            classes.push(Class { context, kind });
            number(classes.len() - 1)
        })
    }

    pub(crate) fn finish(mut self) -> Vec<Class> {
        self.classes.shrink_to_fit();
        self.classes
    }
}
