//! Ephemerons and weak arrays, which do not keep their keys alive, and their data only while all keys are.

use super::block::{ABSTRACT, Header, is_pointer};
use super::marks::Page;
use super::raw::Raw;
use super::walk::Walk;

/// Fields of an ephemeron: the next of the runtime's list, the data, and the first key.
const NEXT: usize = 0;
const DATA: usize = 1;
const KEYS: usize = 2;

/// Ephemerons that the runtime knows, alive or not.
#[derive(Debug, Default)]
pub(super) struct Ephemerons {
    /// By address.
    blocks: Vec<usize>,
    /// The runtime's value for no key and no data.
    none: usize,
}

impl Ephemerons {
    pub(super) fn new(none: usize) -> Self {
        Self {
            blocks: Vec::new(),
            none,
        }
    }

    /// Reads a list of the runtime, which begins with this one. Returns false if it is not one.
    pub(super) fn add_list(&mut self, raw: Raw, first: usize) -> bool {
        let mut block = first;
        while is_pointer(block) {
            let header = Header::of(raw, block);
            if header.tag() != ABSTRACT || header.words() < KEYS {
                return false;
            }
            self.blocks.push(block);
            block = raw.word(block + 8 * NEXT);
        }
        true
    }

    /// Follows data of ephemerons whose keys are alive, until that reaches nothing more.
    pub(super) fn follow(&mut self, walk: &mut Walk) {
        self.blocks.sort_unstable();
        self.blocks.dedup();
        let mut waiting = self.blocks.clone();
        loop {
            let before = waiting.len();
            waiting.retain(|block| {
                let is_due = walk.marks.is_set(*block) && self.has_live_keys(walk, *block);
                if is_due && let Some(data) = self.data(walk.raw, *block) {
                    walk.reach(data);
                }
                !is_due
            });
            if waiting.len() == before {
                return;
            }
            walk.run();
        }
    }

    /// The keys of an ephemeron; 0 for empty ones.
    pub(super) fn keys(&self, raw: Raw, block: usize) -> impl Iterator<Item = usize> {
        let words = Header::of(raw, block).words();
        let keys = (KEYS..words).map(move |key| raw.word(block + 8 * key));
        keys.map(|key| if key == self.none { 0 } else { key })
    }

    fn has_live_keys(&self, walk: &mut Walk, block: usize) -> bool {
        let raw = walk.raw;
        self.keys(raw, block).all(|key| {
            !walk.is_block(key) || walk.page(key) == Page::Static || walk.is_reached(key)
        })
    }

    /// The data of one, if it has any.
    pub(super) fn data(&self, raw: Raw, block: usize) -> Option<usize> {
        let data = raw.word(block + 8 * DATA);
        (is_pointer(data) && data != self.none).then_some(data)
    }

    /// All of them.
    pub(super) fn blocks(&self) -> &[usize] {
        &self.blocks
    }
}
