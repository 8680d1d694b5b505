//! The functions that slots of stacks belong to.

use std::collections::HashMap;

use super::functions::{Functions, OfKind};
use super::raw::Raw;
use crate::arch;

/// Words that a slot may be above the return address of its frame.
const FARTHEST: usize = 1 << 10;

/// Bits of a frame's size that have another meaning.
const FLAGS: u16 = 3;
/// The size of a frame that returns to C code.
const TO_C: u16 = 0xffff;

/// The runtime's table of frame descriptors, by return address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    raw: Raw,
    table: usize,
    mask: usize,
}

impl Descriptors {
    pub(super) fn find(raw: Raw, functions: &Functions) -> Option<Self> {
        let (table, mask) = match functions.of_kind {
            OfKind::Single { descriptors, .. } => {
                (raw.word(descriptors.0), raw.word(descriptors.1))
            }
            OfKind::Domains { descriptors, .. } => {
                let descriptors = descriptors().expose_provenance();
                // struct caml_frame_descrs: int num_descr, int mask, frame_descr **descriptors
                (raw.word(descriptors + 8), raw.int(descriptors + 4) as usize)
            }
        };
        (table != 0 && (mask + 1).is_power_of_two()).then_some(Self { raw, table, mask })
    }

    /// The descriptor of a return address.
    pub(super) fn get(self, address: usize) -> Option<usize> {
        let mut place = address >> 3 & self.mask;
        for _ in 0..=self.mask {
            let descriptor = self.raw.word(self.table + 8 * place);
            if descriptor == 0 {
                return None;
            }
            if self.raw.word(descriptor) == address {
                return Some(descriptor);
            }
            place = (place + 1) & self.mask;
        }
        None
    }

    /// All return addresses and their descriptors.
    pub(super) fn all(self) -> impl Iterator<Item = (usize, usize)> {
        let descriptors = (0..=self.mask).map(move |n| self.raw.word(self.table + 8 * n));
        descriptors
            .filter(|descriptor| *descriptor != 0)
            .map(move |descriptor| (self.raw.word(descriptor), descriptor))
    }

    /// The descriptor of the frame that a slot of a stack belongs to. The return address of a frame is
    /// just below it, so this looks for one that has a value in this slot, down to the lowest address.
    pub(super) fn of_slot(self, slot: usize, lowest: usize) -> Option<usize> {
        let distances = (0..FARTHEST).take_while(|distance| slot >= lowest + 8 * (distance + 1));
        distances
            .map(|distance| slot - 8 * distance)
            .find_map(|frame| {
                let descriptor = self.get(arch::return_address(self.raw.word(frame - 8)))?;
                self.has_value_at(descriptor, slot - frame)
                    .then_some(descriptor)
            })
    }

    fn has_value_at(self, descriptor: usize, offset: usize) -> bool {
        let size = self.raw.half(descriptor + 8);
        let live = usize::from(self.raw.half(descriptor + 10));
        let is_in = size != TO_C && offset < usize::from(size & !FLAGS);
        is_in && (0..live).any(|n| usize::from(self.raw.half(descriptor + 12 + 2 * n)) == offset)
    }
}

/// Descriptors with numbers, in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    numbers: HashMap<usize, u64>,
    pub(super) descriptors: Vec<usize>,
}

impl Numbered {
    /// The number of a descriptor plus 1; 0 for none.
    pub(super) fn number(&mut self, descriptor: Option<usize>) -> u64 {
        let Some(descriptor) = descriptor else {
            return 0;
        };
        let Self {
            numbers,
            descriptors,
        } = self;
        *numbers.entry(descriptor).or_insert_with(|| {
            descriptors.push(descriptor);
            descriptors.len() as u64
        })
    }
}
