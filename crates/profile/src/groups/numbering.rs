//! Groups under other numbers.

use super::{Groups, NONE};
use crate::selection::Stay;
use crate::store::{ClassId, IdVec, Profile};

/// Groups under other numbers, such as the rows that they are shown in.
pub(crate) struct Numbering<'a> {
    groups: &'a Groups,
    of_group: Vec<u32>,
    /// As in [`Groups`]: a single lookup, because it is needed for each block.
    of_class: IdVec<ClassId, u32>,
}

impl<'a> Numbering<'a> {
    /// Renumbers groups; several can get one number.
    pub(super) fn new(groups: &'a Groups, numbers: &[u32]) -> Self {
        let number = |&group: &u32| numbers.get(group as usize).copied().unwrap_or(NONE);
        Self {
            of_class: groups.of_class.iter().map(number).collect(),
            of_group: numbers.to_vec(),
            groups,
        }
    }

    /// The number for a block.
    #[inline]
    pub(crate) fn of(&self, profile: &Profile, stay: Stay) -> u32 {
        self.of_class(stay.class)
            .unwrap_or_else(|| self.of_group[self.groups.of(profile, stay) as usize])
    }

    /// The number for all blocks of a class, if it is the same.
    #[inline]
    pub(crate) fn of_class(&self, class: ClassId) -> Option<u32> {
        self.of_class.get(class).copied()
    }
}
