//! The contents of a snapshot.

use std::time::Duration;

use serde::Serialize;

use super::Subject;
use crate::graph::{Graph, NodeId};
use crate::heap::Amount;

/// The contents of a snapshot, without its dominators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeapInfo {
    /// The snapshot.
    pub subject: Subject,
    /// The runtime of the program, such as `OCaml 5`.
    pub runtime: Option<String>,
    /// When it was taken, in nanoseconds since 1970.
    pub time_ns: Option<u64>,
    /// The time for which the program was stopped, in nanoseconds.
    pub stopped_ns: Option<u64>,
    /// The recording of the same run.
    pub trace: Option<String>,
    /// Blocks that the recording has sampled.
    pub sampled_blocks: u64,
    /// Static data of the program, which does not count.
    pub fixed: Amount,
    /// Bytes outside of the heap, which count.
    pub outside: u64,
    /// Blocks and their sizes by tag, static data and folded blocks included, largest first.
    pub tags: Vec<TagRow>,
}

/// The blocks with a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TagRow {
    /// The tag.
    pub tag: u8,
    /// The values that have it.
    pub name: &'static str,
    /// Blocks and bytes.
    pub amount: Amount,
}

/// Tells what is in a snapshot.
#[must_use]
pub fn info(graph: &Graph) -> HeapInfo {
    let number = |key: &str| graph.property(key).and_then(|text| text.parse().ok());
    let mut total = Amount::default();
    let mut fixed = Amount::default();
    for node in 0..graph.blocks() {
        total += graph.own(node);
        if graph.is_static(node) {
            fixed += Amount {
                bytes: graph.words(node).saturating_add(1).saturating_mul(8),
                blocks: 1,
            };
        }
    }
    let shared = graph.virtual_nodes().map(|(node, _)| node);
    let shared: u64 = shared.map(|node| graph.outside_bytes(node)).sum();
    total.bytes = total.bytes.saturating_add(shared);
    let outside = (0..graph.blocks()).map(|node: NodeId| graph.outside_bytes(node));
    let outside = outside.fold(shared, u64::saturating_add);
    let mut tags: Vec<TagRow> = graph
        .tag_totals()
        .map(|(tag, amount)| TagRow {
            tag,
            name: tag_name(tag),
            amount,
        })
        .collect();
    tags.sort_by_key(|row| std::cmp::Reverse(row.amount.bytes));
    HeapInfo {
        subject: Subject::of_graph(graph, total),
        runtime: graph.property("runtime").map(str::to_owned),
        time_ns: number("time_ns"),
        stopped_ns: number("stopped_ns"),
        trace: graph.property("trace").map(str::to_owned),
        sampled_blocks: graph.sites().count() as u64,
        fixed,
        outside,
        tags,
    }
}

impl HeapInfo {
    /// The time for which the program was stopped.
    #[must_use]
    pub fn stopped(&self) -> Option<Duration> {
        self.stopped_ns.map(Duration::from_nanos)
    }
}

fn tag_name(tag: u8) -> &'static str {
    match tag {
        0 => "records, tuples, arrays, list cells",
        1..=244 => "constructors with arguments",
        245 => "continuations",
        246 => "lazy values",
        247 | 249 => "closures",
        248 => "objects",
        250 => "forced lazy values",
        251 => "abstract blocks, ephemerons, weak arrays",
        252 => "strings",
        253 => "floats",
        254 => "float arrays",
        255 => "custom blocks",
    }
}
