//! Folds list cells and other small blocks into the blocks that hold them, so that snapshots of large heaps stay usable.
//!
//! Only blocks with a single reference are folded; the block that holds them gets their references. So what the remaining
//! blocks retain and reach is the same with and without. Blocks that something else in the file refers to by address stay,
//! as do strings, closures, custom blocks, hash tables and buffers, whose names and contents are of interest, and the
//! blocks of large arrays.

use heapline_heapfile::{Edge, Folded};
use heapline_recorder::settings::Fold;

use super::block::{Header, is_pointer};
use super::contents::Contents;
use super::ephemerons::Ephemerons;
use super::marks::{Marks, Page};
use super::roots::Sampled;
use super::walk::Walk;

/// The size of blocks that are folded, at most.
const SMALL: usize = 8;

/// Blocks with references that are folded into one, at most: cells of a list and their elements, and others. It bounds the
/// references of a block, and keeps parts of trees apart.
const MOST_OF_LIST: usize = 1 << 12;
const MOST: usize = 1 << 6;

/// Tags from this one on have a meaning of their own.
const FIRST_SPECIAL: u8 = 244;
const FLOAT: u8 = 253;
const FLOAT_ARRAY: u8 = 254;

/// Returns true if this snapshot is to be folded.
pub(super) fn is_wanted(fold: Fold) -> bool {
    match fold {
        Fold::Always => true,
        Fold::Never => false,
        // Pages of 4 KiB: size, resident, ...
        Fold::Auto => std::fs::read_to_string("/proc/self/statm").is_ok_and(|text| {
            let resident = text.split(' ').nth(1);
            let pages = resident.and_then(|pages| pages.parse::<u64>().ok());
            pages.is_some_and(|pages| pages > Fold::LARGE / 4096)
        }),
    }
}

/// Clears the marks of all blocks that are folded.
pub(super) fn fold(walk: &mut Walk, ephemerons: &Ephemerons, sampled: &[Sampled]) {
    let Some(mut shared) = walk.shared.take() else {
        return;
    };
    for &block in ephemerons.blocks() {
        let keys = ephemerons.keys(walk.raw, block);
        for value in keys.chain(ephemerons.data(walk.raw, block)) {
            if walk.is_block(value) {
                shared.set(walk.block_of(value).0);
            }
        }
    }
    for sampled in sampled {
        if is_pointer(sampled.block) {
            shared.set(sampled.block);
        }
    }
    let inner = find_inner(walk, &shared);
    drop(shared);
    let mut region = Vec::new();
    for start in walk.marks.regions() {
        walk.marks.blocks(start, &mut region);
        for &block in &region {
            let header = Header::of(walk.raw, block);
            if is_small(header) && !inner.is_set(block) && walk.page(block) == Page::Heap {
                fold_below(walk, &inner, block);
            }
        }
    }
}

/// Finds the blocks with references that can be folded. Clears the marks of those without.
fn find_inner(walk: &mut Walk, shared: &Marks) -> Marks {
    let mut inner = Marks::new();
    let mut contents = Contents::new(walk.raw);
    let mut region = Vec::new();
    for start in walk.marks.regions() {
        walk.marks.blocks(start, &mut region);
        for &block in &region {
            let header = Header::of(walk.raw, block);
            // The fields of static data may be definitions.
            if walk.layout.fiber(walk.raw, block, header).is_some()
                || walk.page(block) != Page::Heap
            {
                continue;
            }
            let first = walk.layout.first_field(walk.raw, block, header);
            for field in first.unwrap_or(header.words())..header.words() {
                let value = walk.raw.word(block + 8 * field);
                if !walk.is_block(value) || shared.is_set(value) || walk.page(value) != Page::Heap {
                    continue;
                }
                let of_value = Header::of(walk.raw, value);
                if is_leaf(walk, value, of_value) {
                    walk.marks.clear(value);
                } else if is_small(header)
                    && is_small(of_value)
                    && (contents.fact(value, of_value, |value| walk.is_block(value))).is_none()
                {
                    inner.set(value);
                }
            }
        }
    }
    inner
}

/// Clears the marks of blocks below this one, which is not folded itself. Those beyond a number of blocks stay, and
/// others are folded into them.
fn fold_below(walk: &mut Walk, inner: &Marks, first: usize) {
    let mut tops = vec![first];
    let mut pending = Vec::new();
    while let Some(top) = tops.pop() {
        let is_list = {
            let mut next = |cell| next_cell(walk, cell).filter(|cell| inner.is_set(*cell));
            next(top).and_then(next).is_some()
        };
        let most = if is_list { MOST_OF_LIST } else { MOST };
        let mut count = 0;
        pending.push(top);
        while let Some(block) = pending.pop() {
            // The next cell of a list is the last field: it is what is looked at first.
            for n in 0..Header::of(walk.raw, block).words() {
                let value = field(walk, block, n);
                if !is_pointer(value) || !inner.is_set(value) {
                    continue;
                }
                if count == most {
                    tops.push(value);
                } else {
                    count += 1;
                    walk.marks.clear(value);
                    pending.push(value);
                }
            }
        }
    }
}

fn field(walk: &Walk, block: usize, field: usize) -> usize {
    walk.raw.word(block + 8 * field)
}

/// The next cell of a list; of a pair, the second one, if that is a pair.
fn next_cell(walk: &mut Walk, block: usize) -> Option<usize> {
    let is_pair = |header: Header| header.tag() == 0 && header.words() == 2;
    if !is_pair(Header::of(walk.raw, block)) {
        return None;
    }
    let next = field(walk, block, 1);
    (walk.is_block(next) && is_pair(Header::of(walk.raw, next))).then_some(next)
}

fn is_small(header: Header) -> bool {
    header.tag() < FIRST_SPECIAL && header.words() <= SMALL
}

/// Returns true for a small block without references.
fn is_leaf(walk: &mut Walk, block: usize, header: Header) -> bool {
    let words = header.words();
    match header.tag() {
        FLOAT | FLOAT_ARRAY => words <= SMALL,
        _ => is_small(header) && (0..words).all(|n| !walk.is_block(field(walk, block, n))),
    }
}

/// Replaces references to blocks that are folded into this one by theirs. Calls `count` for each of those blocks.
///
/// Their references have numbers of fields that the block does not have. That to the rest of a list is the last one.
pub(super) fn replace_folded(
    walk: &mut Walk,
    block: usize,
    edges: &mut Vec<Edge>,
    mut count: impl FnMut(Header),
) -> Folded {
    let raw = walk.raw;
    let mut folded = Folded::default();
    let mut inner = Vec::new();
    let mut outer = Vec::new();
    edges.retain(|edge| {
        let target = usize::try_from(8 * edge.target).unwrap_or_default();
        let is_reached = walk.is_reached(target);
        if !is_reached {
            inner.push(target);
        }
        is_reached
    });
    let mut add = |folded: &mut Folded, block: usize| {
        let header = Header::of(raw, block);
        folded.words += header.words() as u64;
        count(header);
        header
    };
    let mut rest = None;
    let next = |walk: &mut Walk, cell| next_cell(walk, cell).filter(|cell| !walk.is_reached(*cell));
    if let Some(second) = next(walk, block)
        && next(walk, second).is_some()
    {
        inner.retain(|block| *block != second);
        let mut cell = second;
        loop {
            folded.cells += 1;
            add(&mut folded, cell);
            divide(walk, field(walk, cell, 0), &mut inner, &mut outer);
            match next(walk, cell) {
                Some(further) => cell = further,
                None => break,
            }
        }
        rest = Some(field(walk, cell, 1)).filter(|rest| walk.is_block(*rest));
    }
    while let Some(block) = inner.pop() {
        folded.others += 1;
        let header = add(&mut folded, block);
        if is_small(header) {
            for n in 0..header.words() {
                divide(walk, field(walk, block, n), &mut inner, &mut outer);
            }
        }
    }
    let first = Header::of(raw, block).words() as u64;
    let outer = (first..).zip(outer.into_iter().chain(rest));
    edges.extend(outer.map(|(field, value)| Edge {
        field,
        target: value as u64 / 8,
    }));
    folded
}

/// Adds a value to the blocks that are folded, or to those that are not, if it is a block.
fn divide(walk: &mut Walk, value: usize, inner: &mut Vec<usize>, outer: &mut Vec<usize>) {
    if walk.is_block(value) {
        if walk.is_reached(value) {
            outer.push(value);
        } else {
            inner.push(value);
        }
    }
}
