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
    /// Empty until a block of the segment is promoted.
    promotion: Vec<u32>,
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
            death: Vec::with_capacity(SEGMENT),
            far: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.birth.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == SEGMENT
    }

    /// Adds a block.
    #[inline]
    pub(crate) fn push(&mut self, birth: u64) {
        let block = self.birth.len();
        self.birth.push(NEVER_HERE);
        self.death.push(NEVER_HERE);
        if !self.promotion.is_empty() {
            self.promotion.push(NEVER_HERE);
        }
        self.set(Column::Birth, block, birth);
    }

    /// Sets the number of an event.
    #[inline]
    pub(crate) fn set(&mut self, column: Column, block: usize, event: u64) {
        let here = match event.checked_sub(self.base) {
            Some(offset) if offset < u64::from(FAR) => u32::try_from(offset).unwrap_or(FAR),
            _ if event == NEVER => NEVER_HERE,
            _ => {
                self.far.insert((column, block), event);
                FAR
            }
        };
        match column {
            Column::Birth => self.birth[block] = here,
            Column::Death => self.death[block] = here,
            Column::Promotion => {
                if self.promotion.is_empty() {
                    self.promotion.reserve_exact(SEGMENT);
                    self.promotion.resize(self.birth.len(), NEVER_HERE);
                }
                self.promotion[block] = here;
            }
        }
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
        for column in [&mut self.birth, &mut self.promotion, &mut self.death] {
            column.shrink_to_fit();
        }
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
