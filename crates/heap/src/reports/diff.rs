//! The paths to memory that grew between two snapshots.

use hashbrown::HashMap;
use serde::Serialize;

use super::{Step, Subject};
use crate::aggregate::{AggregateId, AggregateTree};
use crate::classes::Kind;
use crate::heap::{Amount, Heap};

/// A single child that explains this share of a change is shown instead of its parent.
const EXPLAINED: f64 = 0.8;

/// Changes of the amounts that paths of names lead to. They are exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeapDiff {
    /// The first snapshot.
    pub before: Subject,
    /// The second snapshot.
    pub after: Subject,
    /// The largest changes. A path is left out if one below it explains its change.
    pub rows: Vec<HeapDiffRow>,
    /// The number of changes that a limit hides.
    pub hidden_rows: usize,
}

/// A path that leads to more or less memory than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeapDiffRow {
    /// The names from the root.
    pub path: Vec<Step>,
    /// True if the row is about the values at the end of the path alone: other rows have what is below.
    pub is_own: bool,
    /// The amount that it led to before.
    pub before: Amount,
    /// The amount that it leads to after.
    pub after: Amount,
    /// Change of bytes.
    pub bytes: i64,
    /// Change of blocks.
    pub blocks: i64,
}

/// Compares two snapshots by the names on the shortest path from a root: addresses may change between them. The number of
/// rows is limited.
///
/// Shortest paths, because a block has one however many others refer to it. In the dominator tree it would move to
/// another place as soon as something else refers to it, with all that it retains.
#[must_use]
pub fn diff(before: &Heap, after: &Heap, most_rows: usize) -> HeapDiff {
    let trees = [before.path_tree(), after.path_tree()];
    let mut union = Union::default();
    union.add(before, trees[0], 0);
    union.add(after, trees[1], 1);
    let mut rows: Vec<HeapDiffRow> = union
        .explanations()
        .into_iter()
        .map(|(id, [before_amount, after_amount])| {
            let node = &union.nodes[id];
            // The newer one has the current names and sizes.
            let side = usize::from(node.ids[1].is_some());
            let heap = [before, after][side];
            let path = node.ids[side].map_or_else(Vec::new, |id| Step::path(heap, trees[side], id));
            HeapDiffRow {
                path,
                is_own: [before_amount, after_amount] != node.total,
                before: before_amount,
                after: after_amount,
                bytes: signed(after_amount.bytes) - signed(before_amount.bytes),
                blocks: signed(after_amount.blocks) - signed(before_amount.blocks),
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes.unsigned_abs()));
    let hidden_rows = rows.len().saturating_sub(most_rows);
    rows.truncate(most_rows);
    HeapDiff {
        before: Subject::new(before),
        after: Subject::new(after),
        rows,
        hidden_rows,
    }
}

/// The nodes of both trees, by path.
#[derive(Default)]
struct Union {
    nodes: Vec<Node>,
    known: HashMap<(usize, String), usize>,
}

struct Node {
    parent: usize,
    /// True for the root, the group of all modules, and modules.
    is_container: bool,
    ids: [Option<AggregateId>; 2],
    own: [Amount; 2],
    total: [Amount; 2],
}

impl Node {
    fn change(&self) -> i64 {
        signed(self.total[1].bytes) - signed(self.total[0].bytes)
    }
}

/// Half of the range is enough for any amount, and differences do not overflow.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX / 2).min(i64::MAX / 2)
}

impl Union {
    fn add(&mut self, heap: &Heap, tree: &AggregateTree, side: usize) {
        let mut at: Vec<usize> = Vec::new();
        for id in tree.ids() {
            // The root is the only node without a parent.
            let parent = at.get(tree.parent(id) as usize).copied().unwrap_or(0);
            let class = heap.class_by_id(tree.class(id));
            let nodes = &mut self.nodes;
            let key = (parent, class.name.clone());
            let node = *self.known.entry(key).or_insert_with(|| {
                nodes.push(Node {
                    parent,
                    is_container: matches!(class.kind, Kind::Root | Kind::Module)
                        || heap.is_of_modules(tree.example(id)),
                    ids: [None; 2],
                    own: [Amount::default(); 2],
                    total: [Amount::default(); 2],
                });
                nodes.len() - 1
            });
            let known = &mut self.nodes[node];
            known.ids[side].get_or_insert(id);
            known.own[side] += tree.own(id);
            known.total[side] += tree.total(id);
            at.push(node);
        }
    }

    /// The nodes that explain changes, from the root downwards: where a single child explains nearly all, and below
    /// everything that only groups others, the children are looked at instead. Changes add up to that of everything.
    fn explanations(&self) -> Vec<(usize, [Amount; 2])> {
        let mut is_explained: Vec<bool> = self.nodes.iter().map(|node| node.is_container).collect();
        for node in self.nodes.iter().skip(1) {
            let whole = self.nodes[node.parent].change() as f64;
            if node.change() as f64 * whole.signum() >= EXPLAINED * whole.abs() {
                is_explained[node.parent] = true;
            }
        }
        let mut is_open = vec![false; self.nodes.len()];
        let mut shown = Vec::new();
        // Parents come first.
        for (id, node) in self.nodes.iter().enumerate() {
            if node.total[0] == node.total[1] || (id > 0 && !is_open[node.parent]) {
                continue;
            }
            is_open[id] = is_explained[id];
            if !is_explained[id] {
                shown.push((id, node.total));
            } else if node.own[0] != node.own[1] {
                shown.push((id, node.own));
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_do_not_overflow() {
        assert_eq!(signed(u64::MAX) - signed(0), i64::MAX / 2);
        assert_eq!(signed(0) - signed(u64::MAX), -(i64::MAX / 2));
    }
}
