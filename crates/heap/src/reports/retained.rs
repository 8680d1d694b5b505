//! Retained sizes: the dominator tree by name.

use clap::{Args, ValueEnum};
use hashbrown::HashMap;
use serde::Serialize;

use super::holders::by_holder;
use super::{HeapError, MAX_ROWS, Step, Subject};
use crate::aggregate::{AggregateId, AggregateTree};
use crate::classes::Kind;
use crate::heap::{Amount, Heap};

/// Options of [`retained`].
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RetainedOptions {
    /// Group by
    #[arg(long, value_enum, default_value_t = RetainedBy::Definition, conflicts_with = "at")]
    pub by: RetainedBy,

    /// Show what is below this path, such as 'Cache.table > Hashtbl.t'
    #[arg(long, value_name = "PATH")]
    pub at: Option<String>,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 20, value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=MAX_ROWS))]
    pub rows: usize,
}

impl Default for RetainedOptions {
    fn default() -> Self {
        Self {
            by: RetainedBy::Definition,
            at: None,
            rows: 20,
        }
    }
}

/// The grouping of retained memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum RetainedBy {
    /// Kind of root: globals, stacks, C roots, ...
    Root,
    /// Module, stack frame, or kind of root.
    Module,
    /// Toplevel definition, stack frame, or kind of root.
    Definition,
    /// Function of closures.
    Closure,
    /// Kind of value.
    Kind,
}

impl RetainedBy {
    /// One of a thing.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Module => "module",
            Self::Definition => "definition",
            Self::Closure => "closure",
            Self::Kind => "kind",
        }
    }
}

/// Retained sizes.
///
/// A group retains what can only be reached through it: it would be freed with the group. Rows by root, module and
/// definition add up to everything; what several of them reach is a row of its own. Closures and kinds overlap.
///
/// Much of a heap may be reachable from several groups, and retained by none of them. So rows by root, module and definition also
/// have what a shortest path from a root reaches through them. That adds up to everything as well, and says where
/// memory belongs that is shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Retained {
    /// The snapshot.
    pub subject: Subject,
    /// The grouping.
    pub by: RetainedBy,
    /// The path that the rows are below, if one was asked for.
    pub at: Vec<Step>,
    /// The amount that the end of the path retains; everything without a path.
    pub retained: Amount,
    /// The largest groups, by what they retain or reach.
    pub rows: Vec<RetainedRow>,
    /// The number of groups that a limit hides.
    pub hidden_rows: usize,
    /// The amount that those retain.
    pub hidden: Amount,
    /// The amount that shortest paths reach through those, of groupings that have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub hidden_reached: Option<Amount>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RetainedRow {
    /// Its name.
    pub name: String,
    /// The place in the source, of definitions and frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub place: Option<String>,
    /// True if several groups reach the memory, so that none of them retains it.
    pub is_shared: bool,
    /// The number of values.
    pub values: u64,
    /// The values themselves.
    pub own: Amount,
    /// The amount that would be freed with all of them.
    pub retained: Amount,
    /// The amount whose shortest path from a root goes through the group: of rows by root, module and definition. Adds
    /// up to everything; globals come before stacks if both are as near.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub reached: Option<Amount>,
    /// True if it reaches more than twice the amount that it retains: others reach most of it too.
    pub is_mostly_shared: bool,
}

/// Computes retained sizes.
pub fn retained(heap: &Heap, options: &RetainedOptions) -> Result<Retained, HeapError> {
    let tree = heap.dominator_tree();
    let children = tree.children();
    let mut at = Vec::new();
    let mut whole = tree.total(0);
    let mut rows = match (&options.at, options.by) {
        (Some(path), _) => {
            let id = find(heap, tree, &children, path)?;
            whole = tree.total(id);
            at = Step::path(heap, tree, id);
            let mut rows: Vec<_> = children[id as usize]
                .iter()
                .map(|&child| row(heap, tree, child))
                .collect();
            if tree.own(id).blocks > 0 {
                rows.push(RetainedRow {
                    name: "(itself)".to_owned(),
                    retained: tree.own(id),
                    ..row(heap, tree, id)
                });
            }
            rows
        }
        (None, RetainedBy::Closure) => by_class(heap, tree, |kind| kind == Kind::Closure),
        (None, RetainedBy::Kind) => by_class(heap, tree, |kind| kind >= Kind::Record),
        (None, by) => by_holder(heap, tree, &children, by),
    };
    for row in &mut rows {
        let reached = row.reached.unwrap_or_default();
        row.is_mostly_shared = reached.bytes / 2 > row.retained.bytes;
    }
    let hidden_rows = cut(&mut rows, options.rows);
    let mut hidden = Amount::default();
    let mut hidden_reached = rows
        .iter()
        .any(|row| row.reached.is_some())
        .then(Amount::default);
    for row in &hidden_rows {
        hidden += row.retained;
        if let Some(reached) = row.reached {
            *hidden_reached.get_or_insert_default() += reached;
        }
    }
    Ok(Retained {
        subject: Subject::new(heap),
        by: options.by,
        at,
        retained: whole,
        rows,
        hidden_rows: hidden_rows.len(),
        hidden,
        hidden_reached,
    })
}

/// Sorts rows by what they retain or reach, and keeps the largest ones; returns the others.
fn cut(rows: &mut Vec<RetainedRow>, most: usize) -> Vec<RetainedRow> {
    let size = |row: &RetainedRow| {
        let reached = row.reached.unwrap_or_default();
        row.retained.bytes.max(reached.bytes)
    };
    // Stable: rows of the same size stay in their order.
    rows.sort_by_key(|row| std::cmp::Reverse(size(row)));
    rows.split_off(rows.len().min(most))
}

pub(super) fn row(heap: &Heap, tree: &AggregateTree, id: AggregateId) -> RetainedRow {
    let step = Step::new(heap, tree, id);
    RetainedRow {
        name: step.name,
        place: step.place,
        is_shared: false,
        values: step.values,
        own: tree.own(id),
        retained: tree.total(id),
        reached: None,
        is_mostly_shared: false,
    }
}

/// Finds the node of a path. A path may begin at any definition, module or group.
fn find(
    heap: &Heap,
    tree: &AggregateTree,
    children: &[Vec<AggregateId>],
    path: &str,
) -> Result<AggregateId, HeapError> {
    let matches = |id: AggregateId, name: &str| {
        heap.class_by_id(tree.class(id)).name == name || tree.label(heap, id) == name
    };
    let mut at: Option<AggregateId> = None;
    let mut found = Vec::new();
    for name in path.split(" > ").map(str::trim) {
        let next = match at {
            // Parents come first, so that this is the uppermost one.
            None => tree.ids().find(|&id| matches(id, name)),
            Some(id) => children[id as usize]
                .iter()
                .copied()
                .find(|&id| matches(id, name)),
        };
        let Some(next) = next else {
            let place = if found.is_empty() {
                String::new()
            } else {
                format!(" below `{}`", found.join(" > "))
            };
            return Err(HeapError::NotFound {
                name: name.to_owned(),
                place,
            });
        };
        at = Some(next);
        found.push(name);
    }
    Ok(at.unwrap_or(0))
}

/// Sums by class, of all nodes that have no ancestor of the same class.
fn by_class(
    heap: &Heap,
    tree: &AggregateTree,
    is_meant: impl Fn(Kind) -> bool,
) -> Vec<RetainedRow> {
    let mut rows: HashMap<u32, RetainedRow> = HashMap::new();
    for id in tree.ids().skip(1) {
        let class = tree.class(id);
        if !is_meant(heap.class_by_id(class).kind) {
            continue;
        }
        let row = rows.entry(class).or_insert_with(|| RetainedRow {
            name: heap.class_by_id(class).name.clone(),
            place: None,
            is_shared: false,
            values: 0,
            own: Amount::default(),
            retained: Amount::default(),
            reached: None,
            is_mostly_shared: false,
        });
        row.values += tree.values(id);
        row.own += tree.own(id);
        let mut above = tree.parent(id);
        while above != 0 && tree.class(above) != class {
            above = tree.parent(above);
        }
        if above == 0 {
            row.retained += tree.total(id);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_unstable_by_key(|(class, _)| *class);
    rows.into_iter().map(|(_, row)| row).collect()
}
