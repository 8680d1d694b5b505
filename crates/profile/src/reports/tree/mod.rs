//! Call trees: from the program's entry down, from allocations up, or both ways from a focus.

mod drawing;
mod flame;
mod focus;
mod frames;
mod grow;
mod load;

use serde::{Deserialize, Serialize};

use super::{Figures, Subject};
use crate::groups::{GroupBy, Label, View};
use crate::query::Pattern;
use crate::scope::Scope;
use drawing::Shape;
pub use flame::{Flame, NodeColumns, flame};
use focus::Focus;
use frames::Frames;
pub use load::{ByHeap, Details};
use load::{Load, detailed_by_stack};

/// Which way a tree grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the program's entry to the functions that allocate.
    #[default]
    TopDown,
    /// From where memory is allocated to the callers.
    BottomUp,
}

/// How a tree is made.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// What a node is; of [`GroupBy`], only those made of frames. Others are taken for functions.
    pub view: View,
    /// Which way it grows.
    pub direction: Direction,
    /// Functions that call each other in this order: only stacks with them are looked at, and
    /// there are two trees, of their callers and of what they call. At most 64.
    pub focus: Vec<Pattern>,
    /// Nodes with less than this share of the total are put together.
    pub threshold: f64,
    /// How deep the tree is at most.
    pub depth: usize,
    /// Show the place of the allocation below the function that allocates.
    pub sites: bool,
    /// Tell more of each node: see [`Details`]. Labels then have modules and files.
    pub details: bool,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            view: View::default(),
            direction: Direction::default(),
            focus: Vec::new(),
            threshold: 0.005,
            depth: usize::MAX,
            sites: false,
            details: false,
        }
    }
}

/// A tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tree {
    /// What it is about.
    pub subject: Subject,
    /// What a node is.
    pub by: GroupBy,
    /// Which way it grows; with a focus, top-down is what the focus calls.
    pub direction: Direction,
    /// Nodes below this share of the total are merged into [`NodeKind::Other`].
    pub threshold: f64,
    /// All blocks in scope.
    pub total: Figures,
    /// The functions in focus, as they were asked for.
    pub focus: Vec<String>,
    /// What was allocated inside the focus; null without one.
    pub focus_total: Option<Figures>,
    /// The part of that which the last function in focus allocates itself; null without one.
    pub focus_own: Option<Figures>,
    /// The nodes, each before its children, the largest first.
    pub nodes: Vec<TreeNode>,
    /// With a focus: its callers, likewise.
    pub callers: Vec<TreeNode>,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeNode {
    /// Its caller's place in the list, or what it calls, in a tree that grows from allocations
    /// up; null at the top.
    pub parent: Option<usize>,
    /// How many nodes are above it.
    pub depth: usize,
    /// What it is called.
    pub label: Label,
    /// What it is.
    pub kind: NodeKind,
    /// How many nodes were put together in it, if it is [`NodeKind::Other`].
    pub others: usize,
    /// What was allocated with this and everything above it in the stack.
    pub total: Figures,
    /// The part that is in none of its children.
    pub own: Figures,
    /// More about its total, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A call.
    Call,
    /// The place of an allocation.
    Site,
    /// Nodes that are too small, or too deep, to be shown.
    Other,
}

/// The tree of the blocks in scope.
#[must_use]
pub fn tree(scope: &Scope<'_>, options: &TreeOptions) -> Tree {
    if options.details {
        tree_of(scope, options, &detailed_by_stack(scope))
    } else {
        tree_of(scope, options, &scope.by_stack())
    }
}

fn tree_of<T: Load>(scope: &Scope<'_>, options: &TreeOptions, by_stack: &[T]) -> Tree {
    let profile = scope.profile();
    let view = View {
        by: match options.view.by {
            by if by.is_of_frames() => by,
            _ => GroupBy::Function,
        },
        ..options.view.clone()
    };
    let frames = Frames::new(profile, &view, options);
    let total = by_stack.iter().map(Load::amount).sum();
    let shape = Shape {
        threshold: options.threshold * Load::bytes(&total),
        depth: options.depth,
    };
    let (nodes, callers, focus_total, focus_own) = if options.focus.is_empty() {
        let nodes = match options.direction {
            Direction::TopDown => frames.top_down(by_stack, shape),
            Direction::BottomUp => {
                let mut drawn = frames.callers(frames.leaves(by_stack), shape);
                drawn.name_rest(frames.groups.unknown);
                drawn.finish(&frames, shape)
            }
        };
        (nodes, Vec::new(), None, None)
    } else {
        let focus = Focus::find(profile, &frames.groups, &options.focus);
        let around = frames.around(&focus, by_stack, shape);
        (
            around.callees,
            frames.callers(around.callers, shape).finish(&frames, shape),
            Some(Figures::new(&around.inside.amount())),
            Some(Figures::new(&around.own.amount())),
        )
    };
    Tree {
        subject: Subject::new(scope),
        by: view.by,
        direction: options.direction,
        threshold: options.threshold,
        total: Figures::of_total(scope, &total),
        focus: options
            .focus
            .iter()
            .map(|pattern| pattern.text().to_owned())
            .collect(),
        focus_total,
        focus_own,
        nodes,
        callers,
    }
}
