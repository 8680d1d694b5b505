//! Likely waste: duplicate strings, empty buckets, parked continuations.

use clap::Args;
use hashbrown::HashMap;
use heapline_heapfile::FactKind;
use serde::Serialize;

use super::duplicates::duplicates;
use super::{MAX_ROWS, Subject, largest};
use crate::classes::Kind;
use crate::graph::{NodeId, Virtual};
use crate::heap::{Amount, Heap};
use crate::names::function_name;
use crate::roots::GroupKind;

/// Options of [`findings`].
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FindingsOptions {
    /// Limit the number of rows of each finding
    #[arg(long, short = 'n', alias = "top", default_value_t = 5, value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=MAX_ROWS))]
    pub rows: usize,
}

impl Default for FindingsOptions {
    fn default() -> Self {
        Self { rows: 5 }
    }
}

/// Likely waste in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Findings {
    /// The snapshot.
    pub subject: Subject,
    /// Strings with the same content: what a single copy of each would save.
    pub duplicate_strings: Finding,
    /// Hash tables with fewer bindings than half of their buckets: the buckets that have none.
    pub sparse_tables: Finding,
    /// Buffers that use less than half of their memory: the rest.
    pub sparse_buffers: Finding,
    /// Continuations that wait to be resumed: what they retain. Those that can only be reached from a finaliser or an
    /// ephemeron are unlikely to be resumed; of the others, a snapshot cannot tell.
    pub continuations: Finding,
    /// Memory that only finalisers keep alive.
    pub finalisers: Finding,
    /// Data of ephemerons whose keys are alive: what it retains, by what holds the keys.
    pub ephemerons: Finding,
}

/// A kind of waste.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Finding {
    /// The number of values.
    pub values: u64,
    /// The bytes that could be saved, or that are retained.
    pub bytes: u64,
    /// The largest ones.
    pub rows: Vec<FindingRow>,
    /// The number of those that a limit hides.
    pub hidden_rows: usize,
}

/// Values of a kind that the same thing holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FindingRow {
    /// A description, such as `12 copies of a string of 24 B`.
    pub name: String,
    /// The definition, frame or kind of root that retains it; absent if several do.
    pub held_by: Option<String>,
    /// The number of values.
    pub values: u64,
    /// The bytes that could be saved, or that are retained.
    pub bytes: u64,
}

impl Finding {
    fn new(mut rows: Vec<FindingRow>, most: usize) -> Self {
        let sum = |get: fn(&FindingRow) -> u64| rows.iter().map(get).fold(0, u64::saturating_add);
        let (values, bytes) = (sum(|row| row.values), sum(|row| row.bytes));
        let (hidden_rows, _) = largest(&mut rows, most, |row| Amount {
            bytes: row.bytes,
            blocks: 0,
        });
        Self {
            values,
            bytes,
            rows,
            hidden_rows,
        }
    }
}

/// Looks for waste.
#[must_use]
pub fn findings(heap: &Heap, options: &FindingsOptions) -> Findings {
    let rows = options.rows;
    let held = Held {
        heap,
        holders: heap.holders(),
    };
    let held = &held;
    Findings {
        subject: Subject::new(heap),
        duplicate_strings: duplicate_strings(held, rows),
        sparse_tables: Finding::new(sparse(held, FactKind::Hashtable), rows),
        sparse_buffers: Finding::new(sparse(held, FactKind::Buffer), rows),
        continuations: Finding::new(continuations(held), rows),
        finalisers: Finding::new(finalisers(heap), rows),
        ephemerons: Finding::new(ephemerons(held), rows),
    }
}

/// A heap, and what retains each of its nodes.
struct Held<'a> {
    heap: &'a Heap,
    holders: Vec<Option<NodeId>>,
}

impl Held<'_> {
    /// The bytes that each of some nodes retains. What one retains that another one retains, too, counts for the
    /// outer one, so that the sum is what they retain together.
    fn retained(&self, nodes: &[NodeId]) -> Vec<u64> {
        let dominators = self.heap.dominators();
        let mut is_meant = vec![false; self.heap.graph().nodes() as usize];
        for &node in nodes {
            is_meant[node as usize] = true;
        }
        let (order, parents) = (dominators.order(), dominators.numbers_of_dominators());
        let mut is_inside = vec![false; order.len()];
        for (number, (&node, &parent)) in order.iter().zip(parents).enumerate().skip(1) {
            let parent = parent as usize;
            is_inside[number] = is_inside[parent] || is_meant[order[parent] as usize];
            is_meant[node as usize] &= !is_inside[number];
        }
        // The same node may be meant several times.
        let is_first = |node: NodeId| std::mem::take(&mut is_meant[node as usize]);
        let is_first: Vec<bool> = nodes.iter().copied().map(is_first).collect();
        let nodes = nodes.iter().zip(is_first);
        nodes
            .map(|(&node, counts)| {
                if counts {
                    self.heap.retained(node).bytes
                } else {
                    0
                }
            })
            .collect()
    }

    fn holder(&self, node: NodeId) -> Option<String> {
        let holder = self.holders[node as usize]?;
        Some(self.heap.class(holder).name.clone())
    }
}

fn duplicate_strings(held: &Held<'_>, most: usize) -> Finding {
    let heap = held.heap;
    let all = duplicates(heap);
    let rows = all.iter().take(most).map(|strings| FindingRow {
        name: heap.label(strings.example),
        held_by: held.holder(strings.example),
        values: strings.copies,
        bytes: strings.saved(),
    });
    Finding {
        values: all.iter().map(|strings| strings.copies).sum(),
        bytes: all
            .iter()
            .fold(0, |sum, strings| sum.saturating_add(strings.saved())),
        rows: rows.collect(),
        hidden_rows: all.len().saturating_sub(most),
    }
}

/// Values that use less than half of what they have.
fn sparse(held: &Held<'_>, kind: FactKind) -> Vec<FindingRow> {
    let heap = held.heap;
    let facts = heap.graph().facts();
    let found = facts.filter(|(_, fact)| fact.kind == kind && fact.a < fact.b / 2);
    grouped(found.map(|(node, fact)| {
        let (used, has) = (fact.a, fact.b);
        let (name, unit) = match kind {
            FactKind::Hashtable if used == 1 => (format!("1 binding in {has} buckets"), 8),
            FactKind::Hashtable => (format!("{used} bindings in {has} buckets"), 8),
            _ => (format!("{used} of {has} bytes used"), 1),
        };
        let unused = (has - used).saturating_mul(unit);
        (name, held.holder(node), unused)
    }))
}

fn continuations(held: &Held<'_>) -> Vec<FindingRow> {
    let heap = held.heap;
    let graph = heap.graph();
    let order = heap.dominators().order().iter().copied();
    let found = order.filter(|node| heap.class(*node).kind == Kind::Continuation);
    let found: Vec<NodeId> = found.collect();
    let retained = held.retained(&found);
    grouped(found.into_iter().zip(retained).map(|(node, bytes)| {
        let frame = graph
            .fact(node)
            .filter(|fact| fact.kind == FactKind::Fiber)
            .and_then(|fact| graph.frame(fact.b.checked_sub(1)?));
        let name = match frame {
            Some(frame) => format!("waiting in {}", function_name(&frame.function)),
            None => "waiting".to_owned(),
        };
        (name, held.holder(node), bytes)
    }))
}

fn finalisers(heap: &Heap) -> Vec<FindingRow> {
    let groups = heap
        .graph()
        .virtual_nodes()
        .filter_map(|(node, what)| match what {
            Virtual::Group(group)
                if matches!(group.kind, GroupKind::Finalisers | GroupKind::Finalised) =>
            {
                Some((node, group))
            }
            _ => None,
        });
    let rows = groups.map(|(node, group)| FindingRow {
        name: match group.kind {
            GroupKind::Finalisers => "their functions".to_owned(),
            _ => "values that wait for them".to_owned(),
        },
        held_by: Some(group.name.clone()),
        values: heap.graph().edges(node).len() as u64,
        bytes: heap.retained(node).bytes,
    });
    rows.collect()
}

fn ephemerons(held: &Held<'_>) -> Vec<FindingRow> {
    let heap = held.heap;
    let ephemerons = heap.graph().ephemerons();
    let found: Vec<(NodeId, NodeId)> = ephemerons
        .filter_map(|(keys, data)| Some((*keys.first()?, data?)))
        .collect();
    let data: Vec<NodeId> = found.iter().map(|(_, data)| *data).collect();
    let retained = held.retained(&data);
    grouped(found.into_iter().zip(retained).map(|((key, _), bytes)| {
        let name = format!("key: {}", heap.class(key).name);
        (name, held.holder(key), bytes)
    }))
}

/// Sums by description and holder.
fn grouped(found: impl Iterator<Item = (String, Option<String>, u64)>) -> Vec<FindingRow> {
    let mut rows: HashMap<(String, Option<String>), (u64, u64)> = HashMap::new();
    for (name, held_by, bytes) in found {
        let (values, sum) = rows.entry((name, held_by)).or_default();
        *values += 1;
        *sum = sum.saturating_add(bytes);
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_unstable();
    rows.into_iter()
        .map(|((name, held_by), (values, bytes))| FindingRow {
            name,
            held_by,
            values,
            bytes,
        })
        .collect()
}
