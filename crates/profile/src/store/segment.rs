//! The lives of blocks, in segments of fixed size.

use std::collections::BTreeMap;

/// Blocks of a segment: a multiple of 64, so that a word of a bitset never spans two segments.
pub(crate) const SEGMENT: usize = 1 << 16;

/// The event that never comes: the death of a block that outlives the trace.
pub(crate) const NEVER: u64 = u64::MAX;

/// A segment's own value for [`NEVER`].
const NEVER_HERE: u32 = u32::MAX;
/// The event is too far from the segment's base for 32 bits; [`Lives::far`] has it.
const FAR: u32 = u32::MAX - 1;

/// When the blocks of a segment were allocated, promoted and freed: numbers of events.
///
/// Events have numbers of 64 bits; a segment keeps what is left of them after its base.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    base: u64,
    birth: Vec<u32>,
    /// Empty until a block of the segment is promoted; then as long as `death`.
    promotion: Vec<u32>,
    /// Has room for the blocks that are still to come.
    death: Vec<u32>,
    far: BTreeMap<(Column, usize), u64>,
}

/// A column of event numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Column {
    Birth,
    Promotion,
    Death,
}

impl Lives {
    /// A segment whose first block is born at an event.
    pub(crate) fn starting_at(base: u64) -> Self {
        Self {
            base,
            birth: Vec::with_capacity(SEGMENT),
            promotion: Vec::new(),
            death: vec![NEVER_HERE; SEGMENT],
            far: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.birth.len()
    }

    /// Returns true if a block was promoted.
    pub(crate) fn has_promotions(&self) -> bool {
        !self.promotion.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == SEGMENT
    }

    /// Adds a block.
    #[inline]
    pub(crate) fn push(&mut self, birth: u64) {
        let here = self.here(Column::Birth, self.birth.len(), birth);
        self.birth.push(here);
    }

    /// Sets the number of an event.
    #[expect(
        clippy::inline_always,
        reason = "the column is known where it is called"
    )]
    #[inline(always)]
    pub(crate) fn set(&mut self, column: Column, block: usize, event: u64) {
        let here = self.here(column, block, event);
        match column {
            Column::Birth => self.birth[block] = here,
            Column::Death => self.death[block] = here,
            Column::Promotion => {
                if self.promotion.is_empty() {
                    self.promotion = vec![NEVER_HERE; self.death.len()];
                }
                self.promotion[block] = here;
            }
        }
    }

    /// The value of an event in a column.
    #[inline]
    fn here(&mut self, column: Column, block: usize, event: u64) -> u32 {
        match u32::try_from(event.wrapping_sub(self.base)) {
            Ok(offset) if offset < FAR => offset,
            _ => self.keep_far(column, block, event),
        }
    }

    #[cold]
    fn keep_far(&mut self, column: Column, block: usize, event: u64) -> u32 {
        if event == NEVER {
            return NEVER_HERE;
        }
        self.far.insert((column, block), event);
        FAR
    }

    #[inline]
    pub(crate) fn birth(&self, block: usize) -> u64 {
        self.event(Column::Birth, block, self.birth[block])
    }

    /// [`NEVER`] if it was not promoted.
    #[inline]
    pub(crate) fn promotion(&self, block: usize) -> u64 {
        match self.promotion.get(block) {
            Some(&here) => self.event(Column::Promotion, block, here),
            None => NEVER,
        }
    }

    /// [`NEVER`] if it outlives the trace.
    #[inline]
    pub(crate) fn death(&self, block: usize) -> u64 {
        self.event(Column::Death, block, self.death[block])
    }

    #[inline]
    fn event(&self, column: Column, block: usize, here: u32) -> u64 {
        match here {
            NEVER_HERE => NEVER,
            FAR => self.far_event(column, block),
            offset => self.base + u64::from(offset),
        }
    }

    #[cold]
    fn far_event(&self, column: Column, block: usize) -> u64 {
        self.far.get(&(column, block)).copied().unwrap_or(NEVER)
    }

    /// The columns, for loops over many blocks.
    #[inline]
    pub(crate) fn columns(&self) -> Columns<'_> {
        let len = self.len();
        Columns {
            base: self.base,
            birth: &self.birth,
            promotion: self.promotion.get(..len).unwrap_or_default(),
            death: &self.death[..len],
            lives: self,
        }
    }

    /// Gives events other numbers.
    pub(crate) fn renumber(&mut self, number: impl Fn(u64) -> u64) {
        let old = std::mem::replace(self, Self::starting_at(0));
        let blocks = 0..old.len();
        self.base = blocks
            .clone()
            .map(|block| number(old.birth(block)))
            .min()
            .unwrap_or(0);
        for block in blocks {
            self.push(number(old.birth(block)));
            for (column, event) in [
                (Column::Promotion, old.promotion(block)),
                (Column::Death, old.death(block)),
            ] {
                if event != NEVER {
                    self.set(column, block, number(event));
                }
            }
        }
    }

    /// Drops the room that was made for more blocks.
    pub(crate) fn shrink(&mut self) {
        let len = self.len();
        for column in [&mut self.birth, &mut self.promotion, &mut self.death] {
            column.truncate(len);
            column.shrink_to_fit();
        }
    }
}

/// The columns of a segment. Loops over blocks need not look up again where these are.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    base: u64,
    birth: &'a [u32],
    promotion: &'a [u32],
    death: &'a [u32],
    lives: &'a Lives,
}

impl Columns<'_> {
    /// The events of a block: birth, promotion and death.
    #[inline]
    pub(crate) fn events(&self, block: usize) -> (u64, u64, u64) {
        let (birth, death) = (self.birth[block], self.death[block]);
        let promotion = self.promotion.get(block).copied().unwrap_or(NEVER_HERE);
        if birth == FAR || promotion == FAR || death == FAR {
            return self.far_events(block);
        }
        (self.event(birth), self.event(promotion), self.event(death))
    }

    // Without a branch: which blocks are promoted, for instance, cannot be predicted.
    #[inline]
    fn event(&self, here: u32) -> u64 {
        let event = self.base.wrapping_add(u64::from(here));
        if here == NEVER_HERE { NEVER } else { event }
    }

    #[cold]
    fn far_events(&self, block: usize) -> (u64, u64, u64) {
        let lives = self.lives;
        (
            lives.birth(block),
            lives.promotion(block),
            lives.death(block),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_do_not_fit_into_32_bits_are_kept() {
        let base = 1 << 40;
        let mut lives = Lives::starting_at(base);
        lives.push(base);
        lives.push(base + 7);
        lives.push(base - 3);
        lives.set(Column::Death, 0, base + (1 << 33));
        lives.set(Column::Promotion, 1, base + u64::from(u32::MAX) - 1);
        lives.push(base + 9);
        assert_eq!(lives.birth(2), base - 3);
        assert_eq!(lives.death(0), base + (1 << 33));
        assert_eq!(lives.promotion(1), base + u64::from(u32::MAX) - 1);
        assert_eq!((lives.promotion(0), lives.promotion(3)), (NEVER, NEVER));
        lives.renumber(|event| event + 5);
        assert_eq!(lives.birth(1), base + 12);
        assert_eq!(lives.birth(2), base + 2);
        assert_eq!(lives.death(0), base + (1 << 33) + 5);
        assert_eq!(lives.death(1), NEVER);
    }
}
