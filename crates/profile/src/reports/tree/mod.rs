//! Call trees: from the program's entry down, from allocations up, or both ways from a focus.

mod drawing;
mod flame;
mod focus;
mod frames;
mod grow;
mod load;

use clap::Args;
use serde::Serialize;

use super::{Figures, Subject};
use crate::amount::Amount;
use crate::groups::{GroupBy, Label};
use crate::options::{self, Look, OptionError, Share};
use crate::query::Pattern;
use crate::scope::Scope;
use drawing::MOST_SHOWN;
pub(super) use drawing::Shape;
pub use flame::{Flame, FlameOptions, NodeColumns, flame};
pub(super) use flame::{Labels, number};
use focus::Focus;
pub(super) use frames::Frames;
pub(super) use grow::{Grown, Source, grow};
pub use load::{ByHeap, Details};
pub(super) use load::{ByStack, Load};
use load::{Detailed, ScopeLoad};

/// The direction of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the program's entry to the functions that allocate.
    #[default]
    TopDown,
    /// From where memory is allocated to the callers.
    BottomUp,
}

/// Each pattern of a focus is a bit of a word.
const MAX_FOCUS: usize = 64;

/// The default depth of a tree. Some kilobytes of a trace can be a stack of a million calls, if recursion is kept.
pub(super) const MAX_DEPTH: usize = 1000;

/// Options of [`tree`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TreeOptions {
    /// Start with the allocations, and show their callers
    #[arg(long)]
    pub bottom_up: bool,

    /// Show callers and callees of matching functions
    ///
    /// Repeat for a chain of functions, callers first.
    #[arg(long, value_name = "PATTERN")]
    pub focus: Vec<Pattern>,

    /// Group frames by
    // Groups that are not made of frames are taken for functions.
    #[arg(
        long,
        default_value = GroupBy::Function.name(),
        value_parser = options::one_of(&GroupBy::FRAMES)
    )]
    pub by: GroupBy,

    /// Merge nodes below this share of the total into "other"
    #[arg(long, default_value = "1%", value_name = "SHARE")]
    pub min: Share,

    /// Limit the depth of the tree [default: 1000]
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,

    /// Show the source location of each allocation below its function; implied by --bottom-up
    #[arg(long, hide_short_help = true)]
    pub sites: bool,

    /// Add lifetime, heap, growth, module and file of each node to the JSON
    #[arg(long, hide_short_help = true)]
    pub details: bool,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for TreeOptions {
    fn default() -> Self {
        options::defaults()
    }
}

impl TreeOptions {
    /// The direction of the tree.
    #[must_use]
    pub fn direction(&self) -> Direction {
        if self.bottom_up {
            Direction::BottomUp
        } else {
            Direction::TopDown
        }
    }

    /// Adds the lines of allocations where readers want them first: at the top of a tree of
    /// functions that grows from allocations up.
    #[must_use]
    pub fn with_implied_sites(mut self) -> Self {
        self.sites |= self.bottom_up && self.by == GroupBy::Function;
        self
    }

    /// Checks options that do not go together.
    pub fn validate(&self) -> Result<(), OptionError> {
        let error = |i: usize, message| {
            Err(OptionError::new(
                "focus",
                self.focus[i].to_string(),
                message,
            ))
        };
        if self.focus.len() > MAX_FOCUS {
            return error(MAX_FOCUS, "can be given at most 64 times");
        }
        if self.bottom_up && !self.focus.is_empty() {
            return error(
                0,
                "shows callers and callees; it cannot be used with bottom-up",
            );
        }
        Ok(())
    }
}

/// A tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Tree {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The grouping of the nodes.
    pub by: GroupBy,
    /// The direction; with a focus, top-down means the callees of the focus.
    pub direction: Direction,
    /// Nodes below this share of the total are merged into [`NodeKind::Other`].
    pub threshold: f64,
    /// All blocks in scope.
    pub total: Figures,
    /// The functions in focus, as they were asked for.
    pub focus: Vec<String>,
    /// Memory allocated inside the focus; null without one.
    pub focus_total: Option<Figures>,
    /// The part of that which the last function in focus allocates itself; null without one.
    pub focus_own: Option<Figures>,
    /// The number of nodes that a tree has at most, if it would have more: the rest is merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub most_nodes: Option<usize>,
    /// The nodes, each before its children, the largest first.
    pub nodes: Vec<TreeNode>,
    /// With a focus: its callers, likewise.
    pub callers: Vec<TreeNode>,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TreeNode {
    /// Its caller's place in the list, or what it calls, in a tree that grows from allocations
    /// up; null at the top.
    pub parent: Option<usize>,
    /// The number of nodes above it.
    pub depth: usize,
    /// Its name.
    pub label: Label,
    /// The kind of node.
    pub kind: NodeKind,
    /// The number of merged nodes, if it is [`NodeKind::Other`].
    pub others: usize,
    /// Memory allocated with this node and everything above it in the stack.
    pub total: Figures,
    /// The part that is in none of its children.
    pub own: Figures,
    /// More about its total, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub details: Option<Details>,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
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
        tree_of(scope, options, &ByStack::<Detailed>::new(scope))
    } else {
        tree_of(scope, options, &ByStack::<Amount>::new(scope))
    }
}

fn tree_of<T: ScopeLoad>(
    scope: &Scope<'_>,
    options: &TreeOptions,
    by_stack: &ByStack<'_, T>,
) -> Tree {
    let profile = scope.profile();
    let view = options.look.view(match options.by {
        by if by.is_of_frames() => by,
        _ => GroupBy::Function,
    });
    let (frames, total) = rayon::join(
        || Frames::new(profile, &view, options),
        || by_stack.iter().map(|(_, load)| load.amount()).sum(),
    );
    let shape = Shape {
        threshold: options.min.0 * Load::bytes(&total),
        depth: options.depth.unwrap_or(MAX_DEPTH),
    };
    let (nodes, callers, focus_total, focus_own) = if options.focus.is_empty() {
        let nodes = match options.direction() {
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
        subject: Subject::with_look(scope, &options.look),
        by: view.by,
        direction: options.direction(),
        threshold: options.min.0,
        total: Figures::of_total(scope, &total),
        focus: options
            .focus
            .iter()
            .map(|pattern| pattern.text().to_owned())
            .collect(),
        focus_total,
        focus_own,
        most_nodes: (nodes.len().max(callers.len()) >= MOST_SHOWN).then_some(MOST_SHOWN),
        nodes,
        callers,
    }
}

#[cfg(test)]
mod tests {
    use heapline_model::{Batch, Birth, Damage, InputSize, LocationId, Space};

    use super::*;
    use crate::query::Query;
    use crate::sampling::Estimator;
    use crate::store::{Store, StoreOptions};
    use crate::testing::exact_header;

    /// The tree of blocks that so many functions allocate.
    fn tree_of_functions(functions: u32, bottom_up: bool) -> Tree {
        let mut batch = Batch::default();
        let birth = Birth {
            size: 1,
            samples: 1,
            space: Space::Native,
            ..Birth::default()
        };
        for location in 0..functions {
            let number = u64::from(location);
            batch.define_unnamed(LocationId(location), number);
            let stack = [LocationId(location)];
            batch.birth(number, 0, number, birth, stack.into_iter());
        }
        let mut store = Store::new(exact_header(), StoreOptions::default());
        store.append(&batch);
        let profile = store.finish(Damage::default(), InputSize::default());
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        let options = TreeOptions {
            bottom_up,
            min: Share(0.0),
            ..TreeOptions::default()
        };
        tree(&scope, &options)
    }

    #[test]
    fn a_tree_that_does_not_have_all_nodes_says_so() {
        for bottom_up in [false, true] {
            assert_eq!(tree_of_functions(1000, bottom_up).most_nodes, None);
            let tree = tree_of_functions(1100, bottom_up);
            assert_eq!(tree.most_nodes, Some(MOST_SHOWN));
        }
    }
}
