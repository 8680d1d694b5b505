//! The dominator tree by name, for trees and icicles.

use std::cmp::Reverse;

use clap::Args;
use heapline_profile::Share;
use serde::Serialize;

use super::{Step, Subject};
use crate::aggregate::AggregateId;
use crate::classes::Kind;
use crate::heap::{Amount, Heap};

/// The largest number of nodes of a report. Further small ones are merged.
const MAX_NODES: usize = 50_000;

/// Options of [`dominators`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DominatorsOptions {
    /// Merge nodes below this share of the total into "other"
    #[arg(long, default_value = "1%", value_name = "SHARE")]
    pub min: Share,

    /// Limit the depth of the tree
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
}

impl Default for DominatorsOptions {
    fn default() -> Self {
        Self {
            min: Share(0.01),
            depth: None,
        }
    }
}

/// The dominator tree, aggregated by name: a node retains what is below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DominatorTree {
    /// The snapshot.
    pub subject: Subject,
    /// The nodes in preorder, siblings largest first: kinds of roots, modules, definitions, values. The root of everything
    /// is left out.
    pub nodes: Vec<DominatorNode>,
}

/// A node of the dominator tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DominatorNode {
    /// The position of its parent among the nodes.
    pub parent: Option<usize>,
    /// The number of nodes above it.
    pub depth: usize,
    /// The name, such as `Cache.table` or `array of 262,144`.
    pub name: String,
    /// The kind of value; null for merged nodes.
    pub kind: Option<Kind>,
    /// The place in the source, of definitions and frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub place: Option<String>,
    /// The number of values; of merged nodes, their number.
    pub values: u64,
    /// The values themselves.
    pub own: Amount,
    /// The amount that would be freed with all of them.
    pub retained: Amount,
}

/// Computes the dominator tree.
#[must_use]
pub fn dominators(heap: &Heap, options: &DominatorsOptions) -> DominatorTree {
    let tree = heap.dominator_tree();
    let is_shown = shown(heap, options);
    let children = tree.children();
    let mut nodes = Vec::new();
    // The position of the parent, and what comes below it, in reverse.
    let mut stack: Vec<(Option<usize>, Pending)> = Vec::new();
    let push = |stack: &mut Vec<_>, at: Option<usize>, id: AggregateId| {
        let mut below = children[id as usize].clone();
        below.sort_by_key(|&id| Reverse(tree.total(id).bytes));
        let (below, small): (Vec<_>, Vec<_>) =
            below.into_iter().partition(|&id| is_shown[id as usize]);
        let mut merged = Amount::default();
        for &id in &small {
            merged += tree.total(id);
        }
        if !small.is_empty() {
            stack.push((at, Pending::Others(small.len(), merged)));
        }
        let below = below.into_iter().rev();
        stack.extend(below.map(|id| (at, Pending::Node(id))));
    };
    push(&mut stack, None, 0);
    while let Some((parent, pending)) = stack.pop() {
        let depth = parent.map_or(0, |parent: usize| {
            let parent: &DominatorNode = &nodes[parent];
            parent.depth + 1
        });
        let node = match pending {
            Pending::Node(id) => {
                let step = Step::new(heap, tree, id);
                DominatorNode {
                    parent,
                    depth,
                    name: step.name,
                    kind: Some(step.kind),
                    place: step.place,
                    values: step.values,
                    own: tree.own(id),
                    retained: tree.total(id),
                }
            }
            Pending::Others(others, retained) => DominatorNode {
                parent,
                depth,
                name: format!("other ({others})"),
                kind: None,
                place: None,
                values: others as u64,
                own: Amount::default(),
                retained,
            },
        };
        nodes.push(node);
        if let Pending::Node(id) = pending {
            push(&mut stack, Some(nodes.len() - 1), id);
        }
    }
    DominatorTree {
        subject: Subject::new(heap),
        nodes,
    }
}

/// A node that is not in the report yet.
#[derive(Clone, Copy)]
enum Pending {
    Node(AggregateId),
    Others(usize, Amount),
}

/// For each node of the tree, true if it is large enough. Those above it are too.
fn shown(heap: &Heap, options: &DominatorsOptions) -> Vec<bool> {
    let tree = heap.dominator_tree();
    let least = tree.total(0).bytes as f64 * options.min.0;
    let most = options
        .depth
        .map_or(u32::MAX, |depth| u32::try_from(depth).unwrap_or(u32::MAX));
    let size = |id: AggregateId| tree.total(id).bytes;
    let is_large = |id: AggregateId| size(id) as f64 >= least && tree.depth(id) <= most;
    let mut sizes: Vec<u64> = tree.ids().filter(|&id| is_large(id)).map(size).collect();
    // If there are too many, only those larger than the first that does not fit.
    let limit = (sizes.len() > MAX_NODES).then(|| {
        sizes.sort_unstable_by_key(|&size| Reverse(size));
        sizes[MAX_NODES]
    });
    tree.ids()
        .map(|id| is_large(id) && limit.is_none_or(|limit| size(id) > limit))
        .collect()
}
