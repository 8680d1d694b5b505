//! The tables of a heap snapshot.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field as Column, Schema};
use heapline_heap::{Field, Heap, NodeId};

use super::{ROWS_IN_BATCH, Table, properties};
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

fn whole(numbers: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers.map(saturated)))
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
    let column = |name: &str, nullable| Column::new(name, DataType::Int64, nullable);
    let text = |name: &str, nullable| Column::new(name, DataType::Utf8, nullable);
    let schema = Schema::new(vec![
        column("node", false),
        column("dominator", true),
        column("address", true),
        text("kind", false),
        text("name", false),
        text("place", true),
        column("bytes", false),
        column("blocks", false),
        column("retained_bytes", false),
        column("retained_blocks", false),
    ]);
    let mut table = Table::new(facts(heap), schema, properties(), out)?;
    for batch in heap.dominators().order().chunks(ROWS_IN_BATCH) {
        let nodes = || batch.iter().copied();
        let address = |node: NodeId| {
            (node < graph.blocks()).then(|| saturated(graph.address(node).wrapping_mul(8)))
        };
        table.write(vec![
            whole(nodes().map(u64::from)),
            Arc::new(
                nodes()
                    .map(|node| heap.dominators().dominator(node).map(i64::from))
                    .collect::<Int64Array>(),
            ),
            Arc::new(nodes().map(address).collect::<Int64Array>()),
            Arc::new(StringArray::from_iter_values(
                nodes().map(|node| heap.class(node).kind.name()),
            )),
            Arc::new(StringArray::from_iter_values(
                nodes().map(|node| &heap.class(node).name),
            )),
            Arc::new(
                nodes()
                    .map(|node| heap.class(node).place.as_deref())
                    .collect::<StringArray>(),
            ),
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
    let schema = Schema::new(vec![
        Column::new("source", DataType::Int64, false),
        Column::new("target", DataType::Int64, false),
        Column::new("field", DataType::Int32, true),
        Column::new("kind", DataType::Utf8, false),
    ]);
    let mut table = Table::new(facts(heap), schema, properties(), out)?;
    let mut rows: Vec<(NodeId, Field, NodeId)> = Vec::with_capacity(ROWS_IN_BATCH);
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

fn edge_columns(rows: &[(NodeId, Field, NodeId)]) -> Vec<ArrayRef> {
    let fields = rows.iter().map(|(_, field, _)| match field {
        Field::Number(field) => i32::try_from(*field).ok(),
        _ => None,
    });
    let kinds = rows.iter().map(|(_, field, _)| match field {
        Field::Number(_) => "field",
        Field::Ephemeron => "ephemeron",
        Field::Outside => "outside",
        Field::None => "root",
    });
    vec![
        whole(rows.iter().map(|(source, ..)| u64::from(*source))),
        whole(rows.iter().map(|(.., target)| u64::from(*target))),
        Arc::new(fields.collect::<Int32Array>()),
        Arc::new(StringArray::from_iter_values(kinds)),
    ]
}
