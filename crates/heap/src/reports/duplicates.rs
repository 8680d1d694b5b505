//! Strings with the same content.

use hashbrown::HashMap;

use crate::graph::NodeId;
use crate::heap::Heap;

/// Strings of the same content and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateStrings {
    /// The number of copies, 2 at least.
    pub copies: u64,
    /// Bytes of each, with its header.
    pub bytes: u64,
    /// One of them.
    pub example: NodeId,
}

impl DuplicateStrings {
    /// The bytes that a single copy would save.
    #[must_use]
    pub fn saved(&self) -> u64 {
        self.bytes.saturating_mul(self.copies - 1)
    }
}

/// Finds strings of which there are several, by the hashes of their contents; the most wasteful ones first.
pub(super) fn duplicates(heap: &Heap) -> Vec<DuplicateStrings> {
    const STRING: u8 = 252;
    let graph = heap.graph();
    let mut found: HashMap<(u64, u64), DuplicateStrings> = HashMap::new();
    for &node in heap.dominators().order() {
        if graph.tag(node) == Some(STRING) {
            let words = graph.words(node);
            let strings =
                found
                    .entry((graph.detail(node), words))
                    .or_insert_with(|| DuplicateStrings {
                        copies: 0,
                        bytes: words.saturating_add(1).saturating_mul(8),
                        example: node,
                    });
            strings.copies += 1;
        }
    }
    let mut found: Vec<_> = found
        .into_values()
        .filter(|found| found.copies > 1)
        .collect();
    found.sort_unstable_by_key(|found| (std::cmp::Reverse(found.saved()), found.example));
    found
}
