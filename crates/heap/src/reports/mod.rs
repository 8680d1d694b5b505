//! Reports on heap snapshots: plain data, rendered elsewhere.

mod diff;
mod dominators;
mod duplicates;
mod findings;
mod holders;
mod info;
mod retained;
mod samples;
mod why;

use serde::Serialize;

pub use diff::{HeapDiff, HeapDiffRow, diff};
pub use dominators::{DominatorNode, DominatorTree, DominatorsOptions, dominators};
pub use duplicates::DuplicateStrings;
pub use findings::{Finding, FindingRow, Findings, FindingsOptions, findings};
pub use info::{HeapInfo, TagRow, info};
pub use retained::{Retained, RetainedBy, RetainedOptions, RetainedRow, retained};
pub use samples::{AllocationNumbers, Samples, join, sample_holders};
pub use why::{Address, SiteRow, Why, WhyOptions, WhyRow, why};

use crate::aggregate::{AggregateId, AggregateTree};
use crate::classes::Kind;
use crate::graph::{Graph, LoadDamage};
use crate::heap::{Amount, Heap};

/// The largest number of rows of a report.
const MAX_ROWS: u64 = 100_000;

/// The snapshot that a report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "HeapSubject"))]
pub struct Subject {
    /// The program, if the snapshot has its name.
    pub program: Option<String>,
    /// Its process.
    pub pid: Option<u64>,
    /// All that can be reached.
    pub total: Amount,
    /// Blocks that are folded into the blocks that hold them, and counted with them.
    pub folded: u64,
    /// References to blocks that the snapshot does not have.
    pub damage: LoadDamage,
}

impl Subject {
    fn new(heap: &Heap) -> Self {
        Self::of_graph(heap.graph(), heap.total())
    }

    fn of_graph(graph: &Graph, total: Amount) -> Self {
        Self {
            program: graph.property("program").map(str::to_owned),
            pid: graph.property("pid").and_then(|pid| pid.parse().ok()),
            total,
            folded: graph.folded_blocks(),
            damage: graph.damage(),
        }
    }
}

/// A name on the way from a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Step {
    /// The name, such as `Cache.table` or `array of 262,144`.
    pub name: String,
    /// The kind of value.
    pub kind: Kind,
    /// The place in the source, of definitions and frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub place: Option<String>,
    /// The number of values.
    pub values: u64,
}

impl Step {
    fn new(heap: &Heap, tree: &AggregateTree, id: AggregateId) -> Self {
        let class = heap.class_by_id(tree.class(id));
        Self {
            name: tree.label(heap, id),
            kind: class.kind,
            place: class.place.clone(),
            values: tree.values(id),
        }
    }

    /// The steps from a root.
    fn path(heap: &Heap, tree: &AggregateTree, id: AggregateId) -> Vec<Self> {
        let path = tree.path(heap, id).into_iter();
        path.map(|id| Self::new(heap, tree, id)).collect()
    }
}

/// An option whose value does not fit the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// Nothing in the snapshot has this name.
    #[error("the snapshot has no `{name}`{place}")]
    NotFound {
        /// The name.
        name: String,
        /// Where it was looked for.
        place: String,
    },
    /// Blocks were to be selected by a recording that is not there.
    #[error("--site and --where need the recording of the same run; give it with --trace")]
    NoRecording,
    /// There is no block at this address.
    #[error("the snapshot has no block at {0:#x}")]
    NoBlock(u64),
}

/// Sorts rows by size and keeps the largest ones; returns the number and the amount of the others.
fn largest<T>(rows: &mut Vec<T>, most: usize, amount: impl Fn(&T) -> Amount) -> (usize, Amount) {
    // Stable: rows of the same size stay in their order.
    rows.sort_by_key(|row| std::cmp::Reverse(amount(row).bytes));
    let mut hidden = Amount::default();
    let cut = rows.len().min(most);
    for row in &rows[cut..] {
        hidden += amount(row);
    }
    let count = rows.len() - cut;
    rows.truncate(cut);
    (count, hidden)
}
