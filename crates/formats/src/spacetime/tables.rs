//! The tables at the end of a raw profile: positions in the source, and the shapes of functions.

use std::collections::HashMap;

use super::series::{FrameTable, Functions};
use crate::marshal::{Heap, Value};

/// The kind of a part of a function's node in the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A call of a known function.
    Direct {
        site: u64,
        callee: u64,
    },
    /// A call of an unknown one.
    Indirect {
        site: u64,
    },
    Allocation {
        pc: u64,
    },
}

/// The parts of functions, by the function's address.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    of_function: HashMap<u64, (usize, usize)>,
    parts: Vec<Part>,
}

impl Shapes {
    /// The parts of a function in the order of its fields.
    pub(super) fn get(&self, function: u64) -> &[Part] {
        let range = self.of_function.get(&function).copied();
        range.map_or(&[], |(start, end)| &self.parts[start..end])
    }

    /// Where the functions are.
    pub(super) fn functions(&self) -> Functions {
        let all = self.of_function.keys().copied();
        let is_start = |function: &u64| matches!(self.get(*function), [Part::Indirect { .. }]);
        Functions {
            all: all.clone().collect(),
            perhaps_start: all.filter(is_start).collect(),
        }
    }

    /// Reads the table; later entries of a function win.
    pub(super) fn read(heap: &Heap<'_>) -> Result<Self, &'static str> {
        let mut shapes = Self::default();
        for (function, parts) in pairs(heap) {
            let start = shapes.parts.len();
            for part in heap.list(parts) {
                let part = part_of(heap, part).ok_or("the table of functions is not one")?;
                shapes.parts.push(part);
            }
            shapes
                .of_function
                .insert(function, (start, shapes.parts.len()));
            // The lists of several functions may be the same one: what is added up is bounded.
            if shapes.parts.len() > heap.object_count() {
                return Err("the table of functions has parts of parts");
            }
        }
        Ok(shapes)
    }
}

fn part_of(heap: &Heap<'_>, part: Value) -> Option<Part> {
    let block = heap.block(part)?;
    let address = |field: usize| heap.int64(block.get(field)?);
    match (block.tag, block.len()) {
        (0, 2) => Some(Part::Direct {
            site: address(0)?,
            callee: address(1)?,
        }),
        (1, 1) => Some(Part::Indirect { site: address(0)? }),
        (2, 1) => Some(Part::Allocation { pc: address(0)? }),
        _ => None,
    }
}

/// Reads the table of positions.
pub(super) fn frame_table(heap: &Heap<'_>) -> Result<FrameTable, &'static str> {
    let mut table = FrameTable::default();
    let mut slots = Vec::new();
    let mut left = heap.object_count();
    for (address, list) in pairs(heap) {
        slots.clear();
        for slot in heap.list(list) {
            left = left
                .checked_sub(1)
                .ok_or("the table of positions is not one")?;
            let block = heap
                .block(slot)
                .ok_or("the table of positions is not one")?;
            if block.tag != 0 {
                // Nothing is known of this slot.
                continue;
            }
            let position = || {
                let file = heap.string(block.get(1)?)?;
                Some((file, block.int(2)?, block.int(3)?, block.int(4)?))
            };
            slots.push(position().ok_or("the table of positions is not one")?);
        }
        // They are stored outermost first.
        let positions = table.positions(slots.iter().rev().copied());
        table.set(address, positions);
    }
    Ok(table)
}

/// The entries of a list of an address and something.
fn pairs<'a>(heap: &'a Heap<'_>) -> impl Iterator<Item = (u64, Value)> + 'a {
    heap.list(heap.root()).filter_map(|pair| {
        let pair = heap.block(pair)?;
        Some((heap.int64(pair.get(0)?)?, pair.get(1)?))
    })
}
