//! Move-to-front tables: how the format names files and functions in five bits each.

use crate::format::MTF_LEN;

/// The entries used last, the most recent first.
#[derive(Clone, Debug)]
pub(crate) struct Mtf<T> {
    entries: Vec<T>,
}

impl<T> Default for Mtf<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
}

impl<T> Mtf<T> {
    /// Moves entry `index` to the front; `None` if there is no such entry.
    pub(crate) fn touch(&mut self, index: usize) -> Option<&mut T> {
        self.entries.get_mut(..=index)?.rotate_right(1);
        self.entries.first_mut()
    }

    pub(crate) fn position(&self, is_it: impl FnMut(&T) -> bool) -> Option<usize> {
        self.entries.iter().position(is_it)
    }

    /// Puts `entry` in front. The last entry of a full table makes room, and is returned.
    pub(crate) fn push(&mut self, entry: T) -> Option<T> {
        let dropped = if self.entries.len() == MTF_LEN {
            self.entries.pop()
        } else {
            None
        };
        self.entries.insert(0, entry);
        dropped
    }

    /// The entry that the next push drops.
    pub(crate) fn about_to_drop(&mut self) -> Option<&mut T> {
        self.entries.get_mut(MTF_LEN - 1)
    }
}

impl<T: Clone> Mtf<T> {
    /// A full table of one entry, for when the contents were lost.
    pub(crate) fn filled_with(entry: T) -> Self {
        Self {
            entries: vec![entry; MTF_LEN],
        }
    }
}
