//! The tables of a heap snapshot.

use std::io::{self, Write};

use heapline_heap::{Field as Edge, Heap, NodeId};

use super::{Column, Field, Kind, ROWS_IN_BATCH, Table, properties};
use crate::names::saturated;

/// The properties of the snapshot.
fn facts(heap: &Heap) -> Vec<(&'static str, String)> {
    let known = [
        ("heapline.executable_name", "program"),
        ("heapline.pid", "pid"),
        ("heapline.runtime", "runtime"),
    ];
    known
        .into_iter()
        .filter_map(|(key, property)| Some((key, heap.graph().property(property)?.to_owned())))
        .collect()
}

fn whole(numbers: impl Iterator<Item = u64>) -> Column {
    Column::new(numbers.map(saturated))
}

/// Writes one row for each node that can be reached: blocks, modules' definitions and groups of roots.
///
/// | column | type | |
/// | --- | --- | --- |
/// | `node` | `INT64` | its number |
/// | `dominator` | `INT64` | the node that it would be freed with; null for the root |
/// | `address` | `INT64` | in bytes; null if it is no block |
/// | `kind`, `name` | `STRING` | such as `closure` and `closure Cache.add` |
/// | `place` | `STRING` | file and line of definitions and frames, or null |
/// | `bytes`, `blocks` | `INT64` | of the node, with what is folded into it |
/// | `retained_bytes`, `retained_blocks` | `INT64` | what would be freed with it |
pub fn nodes(heap: &Heap, out: impl Write + Send) -> io::Result<()> {
    let graph = heap.graph();
    let long = |name: &str| Field::new(name, Kind::Long);
    let text = |name: &str| Field::new(name, Kind::Text);
    let fields = [
        long("node"),
        long("dominator").nullable(),
        long("address").nullable(),
        text("kind"),
        text("name"),
        text("place").nullable(),
        long("bytes"),
        long("blocks"),
        long("retained_bytes"),
        long("retained_blocks"),
    ];
    let mut table = Table::new(facts(heap), &fields, properties(), out)?;
    for batch in heap.dominators().order().chunks(ROWS_IN_BATCH) {
        let nodes = || batch.iter().copied();
        let address = |node: NodeId| {
            (node < graph.blocks()).then(|| saturated(graph.address(node).wrapping_mul(8)))
        };
        table.write(vec![
            whole(nodes().map(u64::from)),
            Column::nullable(nodes().map(|node| heap.dominators().dominator(node).map(i64::from))),
            Column::nullable(nodes().map(address)),
            Column::new(nodes().map(|node| heap.class(node).kind.name())),
            Column::new(nodes().map(|node| &*heap.class(node).name)),
            Column::nullable(nodes().map(|node| heap.class(node).place.as_deref())),
            whole(nodes().map(|node| graph.bytes(node))),
            whole(nodes().map(|node| graph.block_count(node))),
            whole(nodes().map(|node| heap.retained(node).bytes)),
            whole(nodes().map(|node| heap.retained(node).blocks)),
        ])?;
    }
    table.finish()
}

/// Writes one row for each reference between these nodes.
///
/// | column | type | |
/// | --- | --- | --- |
/// | `source`, `target` | `INT64` | see [`nodes`] |
/// | `field` | `INT32` | the number of the field; null if there is none |
/// | `kind` | `STRING` | `field`, `root`, `ephemeron` or `outside` |
pub fn edges(heap: &Heap, out: impl Write + Send) -> io::Result<()> {
    let fields = [
        Field::new("source", Kind::Long),
        Field::new("target", Kind::Long),
        Field::new("field", Kind::Int).nullable(),
        Field::new("kind", Kind::Text),
    ];
    let mut table = Table::new(facts(heap), &fields, properties(), out)?;
    let mut rows: Vec<(NodeId, Edge, NodeId)> = Vec::with_capacity(ROWS_IN_BATCH);
    for &node in heap.dominators().order() {
        for (field, target) in heap.graph().edges(node) {
            rows.push((node, field, target));
            if rows.len() == ROWS_IN_BATCH {
                table.write(edge_columns(&rows))?;
                rows.clear();
            }
        }
    }
    table.write(edge_columns(&rows))?;
    table.finish()
}

fn edge_columns(rows: &[(NodeId, Edge, NodeId)]) -> Vec<Column> {
    let fields = rows.iter().map(|(_, field, _)| match field {
        Edge::Number(field) => i32::try_from(*field).ok(),
        _ => None,
    });
    let kinds = rows.iter().map(|(_, field, _)| match field {
        Edge::Number(_) => "field",
        Edge::Ephemeron => "ephemeron",
        Edge::Outside => "outside",
        Edge::None => "root",
    });
    vec![
        whole(rows.iter().map(|(source, ..)| u64::from(*source))),
        whole(rows.iter().map(|(.., target)| u64::from(*target))),
        Column::nullable(fields),
        Column::new(kinds),
    ]
}
