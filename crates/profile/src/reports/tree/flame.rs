//! The call tree as columns, compact enough for a page that draws a hundred thousand nodes.

use clap::Args;
use hashbrown::DefaultHashBuilder;
use indexmap::IndexSet;
use serde::Serialize;

use super::load::{ByStack, Detailed};
use super::{ByHeap, Direction, NodeKind, Tree, TreeNode, TreeOptions, tree_of};
use crate::groups::{GroupBy, Label};
use crate::options::{self, Share};
use crate::reports::{Figures, Subject};
use crate::scope::Scope;

/// Options of [`flame`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FlameOptions {
    /// The tree that is drawn
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeOptions,

    /// Limit the number of nodes by raising --min
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = options::number(1, 1_000_000))]
    pub max_nodes: usize,
}

impl Default for FlameOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// A [`Tree`] with its details, in columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Flame {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The grouping of the nodes.
    pub by: GroupBy,
    /// The direction of the tree.
    pub direction: Direction,
    /// The share below which nodes are merged: as requested, or higher if there would be too many.
    pub min: f64,
    /// All blocks in scope.
    pub total: Figures,
    /// The functions in focus, as they were asked for.
    pub focus: Vec<String>,
    /// Memory allocated inside the focus; null without one.
    pub focus_total: Option<Figures>,
    /// The part of that which the last function in focus allocates itself; null without one.
    pub focus_own: Option<Figures>,
    /// The distinct labels of nodes.
    pub labels: Vec<Label>,
    /// The nodes in preorder, largest first.
    pub nodes: NodeColumns,
    /// With a focus: its callers, in the same form.
    pub callers: NodeColumns,
}

/// Nodes, with one list for each of their properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct NodeColumns {
    /// The index of the parent, or -1.
    pub parent: Vec<i64>,
    /// The index of its label, or -1 for merged nodes.
    pub label: Vec<i64>,
    /// 0 for a call, 1 for an allocation site, 2 for merged nodes.
    pub kind: Vec<u8>,
    /// The number of merged nodes.
    pub others: Vec<usize>,
    /// Bytes of the total.
    pub bytes: Vec<f64>,
    /// 1.96 standard errors of that.
    pub error: Vec<f64>,
    /// Bytes that are in none of its children.
    pub own: Vec<f64>,
    /// 1.96 standard errors of that.
    pub own_error: Vec<f64>,
    /// Blocks of the total.
    pub blocks: Vec<f64>,
    /// 1.96 standard errors of that.
    pub blocks_error: Vec<f64>,
    /// Samples of the total.
    pub samples: Vec<u64>,
    /// Bytes that were on the major heap: allocated there or promoted.
    pub major: Vec<f64>,
    /// Bytes outside of OCaml's heaps.
    pub external: Vec<f64>,
    /// Bytes that were promoted.
    pub promoted: Vec<f64>,
    /// Mean seconds that blocks lived, those alive at the end as long as they were seen; -1 if
    /// there are no blocks.
    pub lifetime: Vec<f64>,
    /// Bytes alive at half of the run.
    pub at_half: Vec<f64>,
    /// Bytes alive at the end.
    pub at_end: Vec<f64>,
}

/// The tree of the blocks in scope in columns, of so many nodes at most, or of those at the top at
/// least.
#[must_use]
pub fn flame(scope: &Scope<'_>, options: &FlameOptions) -> Flame {
    let max_nodes = options.max_nodes;
    let mut options = TreeOptions {
        details: true,
        ..options.tree.clone()
    };
    let by_stack = ByStack::<Detailed>::new(scope);
    let mut drawn = tree_of(scope, &options, &by_stack);
    while drawn.nodes.len() + drawn.callers.len() > max_nodes && options.min.0 < 1.0 {
        options.min = Share(fitting(&drawn, options.min.0, max_nodes));
        drawn = tree_of(scope, &options, &by_stack);
    }
    columns(drawn, options.min.0)
}

/// The first doubling of a threshold at which a tree has so many nodes at most, or 1 at least.
fn fitting(tree: &Tree, mut threshold: f64, max_nodes: usize) -> f64 {
    loop {
        threshold = (threshold * 2.0).max(1e-6);
        let least = threshold * tree.total.bytes.value;
        if threshold >= 1.0 || left(&tree.nodes, least) + left(&tree.callers, least) <= max_nodes {
            return threshold;
        }
    }
}

/// The number of nodes that remain if those below a number of bytes are merged.
fn left(nodes: &[TreeNode], least: f64) -> usize {
    let mut is_left = vec![false; nodes.len()];
    let mut has_others = vec![false; nodes.len()];
    let mut top_has_others = false;
    for (i, node) in nodes.iter().enumerate() {
        let below = node.parent.is_none_or(|parent| is_left[parent]);
        let small = node.kind == NodeKind::Other || node.total.bytes.value < least;
        is_left[i] = below && !small;
        if below && small {
            match node.parent {
                Some(parent) => has_others[parent] = true,
                None => top_has_others = true,
            }
        }
    }
    let count = |flags: Vec<bool>| flags.into_iter().filter(|&flag| flag).count();
    count(is_left) + count(has_others) + usize::from(top_has_others)
}

fn columns(tree: Tree, min: f64) -> Flame {
    let mut labels = Labels::default();
    let nodes = NodeColumns::of(tree.nodes, &mut labels);
    let callers = NodeColumns::of(tree.callers, &mut labels);
    Flame {
        subject: tree.subject,
        by: tree.by,
        direction: tree.direction,
        min,
        total: tree.total,
        focus: tree.focus,
        focus_total: tree.focus_total,
        focus_own: tree.focus_own,
        labels: labels.into_iter().collect(),
        nodes,
        callers,
    }
}

/// Labels, each once.
pub(in crate::reports) type Labels = IndexSet<Label, DefaultHashBuilder>;

impl NodeColumns {
    fn of(nodes: Vec<TreeNode>, labels: &mut Labels) -> Self {
        let mut columns = Self::default();
        for node in nodes {
            columns.push(node, labels);
        }
        columns
    }

    fn push(&mut self, node: TreeNode, labels: &mut Labels) {
        self.parent.push(node.parent.map_or(-1, number));
        self.kind.push(match node.kind {
            NodeKind::Call => 0,
            NodeKind::Site => 1,
            NodeKind::Other => 2,
        });
        self.label.push(match node.kind {
            NodeKind::Other => -1,
            _ => number(labels.insert_full(node.label).0),
        });
        self.others.push(node.others);
        self.bytes.push(node.total.bytes.value);
        self.error.push(node.total.bytes.error);
        self.own.push(node.own.bytes.value);
        self.own_error.push(node.own.bytes.error);
        self.blocks.push(node.total.blocks.value);
        self.blocks_error.push(node.total.blocks.error);
        self.samples.push(node.total.samples);
        let (heap, promoted, lifetime, at_half, at_end) = match node.details {
            Some(d) => (
                d.heap,
                d.promoted,
                d.lifetime,
                d.live_at_half,
                d.live_at_end,
            ),
            None => (ByHeap::default(), 0.0, None, 0.0, 0.0),
        };
        self.major.push(heap.major + promoted);
        self.external.push(heap.external);
        self.promoted.push(promoted);
        self.lifetime.push(lifetime.unwrap_or(-1.0));
        self.at_half.push(at_half);
        self.at_end.push(at_end);
    }
}

/// Places are of lists in memory.
pub(in crate::reports) fn number(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}
