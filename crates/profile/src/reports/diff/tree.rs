//! Changes as a call tree: the call trees of both sides, merged by the names of functions.

use clap::Args;
use serde::Serialize;

use super::change::{Change, Side, Sides, fourth_powers, mark_real};
use super::sides::{Compared, Comparison, DiffSides, Normalise, SCOPES};
use crate::groups::{GroupBy, Label, NONE};
use crate::options::{self, Look, Share};
use crate::reports::Subject;
use crate::reports::tree::{
    ByStack, Frames, Grown, Labels, Load, MAX_DEPTH, Shape, Source, TreeOptions, grow, number,
};
use crate::scope::Scope;
use crate::store::{Class, IdVec, KindId, NodeId, saturated};

/// Options of [`diff_tree`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DiffTreeOptions {
    /// The sides
    #[command(flatten)]
    #[serde(flatten)]
    pub sides: DiffSides,

    /// Group frames by
    #[arg(
        long,
        default_value = GroupBy::Function.name(),
        value_parser = options::one_of(&GroupBy::FRAMES)
    )]
    pub by: GroupBy,

    /// Merge nodes below this share of before and after together into "other"
    #[arg(long, default_value = "1%", value_name = "SHARE")]
    pub min: Share,

    /// Limit the number of nodes by raising --min
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = options::number(1, 1_000_000))]
    pub max_nodes: usize,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for DiffTreeOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// A comparison of two call trees, from the program's entry down.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DiffTree {
    /// The first trace or window.
    pub before: Subject,
    /// The second trace or window.
    pub after: Subject,
    /// The grouping of the nodes.
    pub by: GroupBy,
    /// The normalisation of amounts after.
    pub per: Normalise,
    /// The factor for all amounts after.
    pub scale: f64,
    /// The share of before and after together below which nodes are merged: as requested, or higher if there would
    /// be too many.
    pub min: f64,
    /// Everything together.
    pub total: Change,
    /// The number of nodes with a significant change.
    pub real_changes: usize,
    /// The distinct labels of nodes.
    pub labels: Vec<Label>,
    /// The nodes, each before its children, the largest first.
    pub nodes: ChangeColumns,
}

/// A comparison of two call trees and the names of the two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct NamedDiffTree {
    /// The file or the window before.
    pub before_name: String,
    /// The file or the window after.
    pub after_name: String,
    /// The measure that is compared.
    pub of: Compared,
    /// The comparison.
    #[serde(flatten)]
    pub tree: DiffTree,
}

/// Nodes with their changes, with one list for each property. Bytes are those allocated by a node and its callees.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ChangeColumns {
    /// The index of the parent, or -1.
    pub parent: Vec<i64>,
    /// The index of its label, or -1 for merged nodes.
    pub label: Vec<i64>,
    /// The number of merged nodes; 0 if it is a node of its own.
    pub others: Vec<usize>,
    /// Bytes before.
    pub before: Vec<f64>,
    /// 1.96 standard errors of that.
    pub before_error: Vec<f64>,
    /// Samples before.
    pub before_samples: Vec<u64>,
    /// Bytes after, scaled.
    pub after: Vec<f64>,
    /// 1.96 standard errors of that.
    pub after_error: Vec<f64>,
    /// Samples after.
    pub after_samples: Vec<u64>,
    /// Bytes after minus bytes before.
    pub change: Vec<f64>,
    /// 1.96 standard errors of that.
    pub change_error: Vec<f64>,
    /// The probability of a change of bytes at least this large if nothing changed.
    pub p_value: Vec<f64>,
    /// True if the change is significant, at a false discovery rate of 5 % among all nodes.
    pub is_real: Vec<bool>,
}

impl ChangeColumns {
    fn push(&mut self, parent: Option<usize>, label: Option<usize>, others: usize, c: &Change) {
        self.parent.push(parent.map_or(-1, number));
        self.label.push(label.map_or(-1, number));
        self.others.push(others);
        self.before.push(c.before.bytes.value);
        self.before_error.push(c.before.bytes.error);
        self.before_samples.push(c.before.samples);
        self.after.push(c.after.bytes.value);
        self.after_error.push(c.after.bytes.error);
        self.after_samples.push(c.after.samples);
        self.change.push(c.bytes.value);
        self.change_error.push(c.bytes.error);
        self.p_value.push(c.p_value);
        self.is_real.push(c.is_real);
    }
}

/// Both sides of a node.
#[derive(Clone, Copy, Default)]
struct Both {
    sides: Sides,
    /// Bytes of both sides together, those after scaled.
    bytes: f64,
}

/// The weights of blocks on both sides.
struct SideWeights {
    fourth: IdVec<KindId, f64>,
    scale: f64,
}

impl Load for Both {
    /// Blocks of each of the scopes.
    type Counts = [u32; SCOPES];
    type Weights = SideWeights;

    fn blocks(&[before, after, ..]: &[u32; SCOPES]) -> u32 {
        before.saturating_add(after)
    }

    fn of_class(
        scope: &Scope<'_>,
        weights: &SideWeights,
        class: Class,
        counts: &[u32; SCOPES],
    ) -> Self {
        let weight = scope.weights()[class.kind];
        let sides = Sides::of(*counts, |blocks| Side {
            amount: weight.times(blocks.into()),
            fourth: weights.fourth[class.kind] * f64::from(blocks),
        });
        let [before, after] = [sides.before, sides.after].map(|side| side.amount.bytes.value);
        Self {
            bytes: before + weights.scale * after,
            sides,
        }
    }

    fn add(&mut self, other: &Self) {
        self.sides.add(&other.sides);
        self.bytes += other.bytes;
    }

    fn bytes(&self) -> f64 {
        self.bytes
    }
}

/// The blocks of a profile on both sides.
fn by_stack<'a>(
    profile_of: &'a Scope<'a>,
    scopes: [Option<&Scope<'_>>; SCOPES],
    scale: f64,
) -> ByStack<'a, Both> {
    let mut counts = vec![[0; SCOPES]; profile_of.profile().classes().len()];
    for (side, scope) in scopes.into_iter().enumerate() {
        for (counts, n) in counts
            .iter_mut()
            .zip(scope.into_iter().flat_map(Scope::counts))
        {
            counts[side] = n;
        }
    }
    let weights = SideWeights {
        fourth: fourth_powers(profile_of),
        scale,
    };
    ByStack::of_counts(profile_of, weights, counts)
}

/// Compares two traces or windows as a call tree.
#[must_use]
pub fn diff_tree(sides: &Comparison<'_>, options: &DiffTreeOptions) -> DiffTree {
    let (before, after, scale) = (&sides.before, &sides.after, sides.scale);
    let scopes = sides.scopes();
    let stacks = match scopes.each_ref().map(Option::as_ref) {
        all @ [_, _, Some(_), ..] => vec![by_stack(after, all, scale)],
        [_, _, None, before_elsewhere, after_elsewhere] => vec![
            by_stack(
                before,
                [Some(before), None, None, before_elsewhere, None],
                scale,
            ),
            by_stack(
                after,
                [None, Some(after), None, None, after_elsewhere],
                scale,
            ),
        ],
    };
    let view = options.look.view(options.by);
    let plain = TreeOptions::default();
    let frames: Vec<Frames<'_>> = stacks
        .iter()
        .map(|stacks| Frames::new(stacks.scope().profile(), &view, &plain))
        .collect();
    // Functions of both traces are the same if they have the same name, as in a table.
    let mut labels = Labels::default();
    let keys: Vec<Vec<u32>> = frames
        .iter()
        .map(|frames| {
            let names = frames.groups.labels.iter();
            names
                .map(|label| saturated(labels.insert_full(label.clone()).0))
                .collect()
        })
        .collect();
    let rest = frames
        .iter()
        .zip(&keys)
        .find_map(|(frames, keys)| keys.get(frames.groups.unknown as usize).copied());
    let sources: Vec<Source<'_, Both>> = stacks
        .iter()
        .zip(&frames)
        .zip(&keys)
        .map(|((by_stack, frames), keys)| Source {
            frames,
            by_stack,
            starts: vec![NodeId::ROOT],
            keys: Some(keys),
        })
        .collect();
    let mut all = Both::default();
    for (_, amount) in stacks.iter().flat_map(ByStack::iter) {
        all.add(&amount);
    }
    let mut min = options.min.0;
    let grown = loop {
        let shape = Shape {
            threshold: min * all.bytes,
            depth: MAX_DEPTH,
        };
        let grown = grow(&sources, shape, rest);
        if grown.shown.len() <= options.max_nodes || min >= 1.0 {
            break grown;
        }
        min = (min * 2.0).max(1e-6);
    };
    let mut total = Change::new(&all.sides, scale);
    total.is_real = total.p_value < 0.05;
    let (labels, nodes, real_changes) = columns(&grown, &labels, sides);
    DiffTree {
        before: Subject::with_look(before, &options.look),
        after: Subject::with_look(after, &options.look),
        by: options.by,
        per: sides.per,
        scale,
        min,
        total,
        real_changes,
        labels,
        nodes,
    }
}

/// The nodes with their changes, the labels that they have, and the number of significant changes.
fn columns(
    grown: &Grown<Both>,
    labels: &Labels,
    comparison: &Comparison<'_>,
) -> (Vec<Label>, ChangeColumns, usize) {
    let totals = grown.totals.iter();
    let mut changes: Vec<Change> = totals
        .map(|total| comparison.change(&total.sides))
        .collect();
    let real_changes = mark_real(&mut changes.iter_mut().collect::<Vec<_>>());
    let mut used = Labels::default();
    let mut columns = ChangeColumns::default();
    for (shown, change) in grown.shown.iter().zip(&changes) {
        let label = (shown.key != NONE)
            .then(|| labels.get_index(shown.key as usize))
            .flatten()
            .map(|label| used.insert_full(label.clone()).0);
        columns.push(shown.parent, label, shown.others, change);
    }
    (used.into_iter().collect(), columns, real_changes)
}
