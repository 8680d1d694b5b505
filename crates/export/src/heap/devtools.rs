//! The format of Chrome DevTools: `.heapsnapshot`.

use std::io::{self, Write};

use hashbrown::HashMap;
use heapline_heap::{Field, Heap, Kind};
use serde_json::json;

/// The columns of a node.
const NODE_FIELDS: [&str; 7] = [
    "type",
    "name",
    "id",
    "self_size",
    "edge_count",
    "trace_node_id",
    "detachedness",
];

/// The types of nodes. Their numbers are part of the format.
const NODE_TYPES: [&str; 15] = [
    "hidden",
    "array",
    "string",
    "object",
    "code",
    "closure",
    "regexp",
    "number",
    "native",
    "synthetic",
    "concatenated string",
    "sliced string",
    "symbol",
    "bigint",
    "object shape",
];

/// The types of edges.
const EDGE_TYPES: [&str; 7] = [
    "context", "element", "property", "internal", "hidden", "shortcut", "weak",
];

const ELEMENT: usize = 1;
const PROPERTY: usize = 2;
const INTERNAL: usize = 3;

/// Writes a snapshot for Chrome DevTools (Memory, Load profile). All nodes that can be reached are written, one by one.
pub fn devtools(heap: &Heap, out: &mut impl Write) -> io::Result<()> {
    let graph = heap.graph();
    let order = heap.dominators().order();
    let edge_count: usize = order.iter().map(|&node| graph.edges(node).len()).sum();
    let mut strings = Strings::default();
    write!(
        out,
        "{{\"snapshot\":{},\n\"nodes\":[",
        header(order.len(), edge_count)
    )?;
    for (number, &node) in order.iter().enumerate() {
        let class = heap.class(node);
        let row = [
            node_type(class.kind) as u64,
            strings.number(&class.name),
            // Odd, as those of objects are.
            number as u64 * 2 + 1,
            graph.bytes(node),
            graph.edges(node).len() as u64,
            0,
            0,
        ];
        separated(out, number == 0, &row)?;
    }
    out.write_all(b"],\n\"edges\":[")?;
    let mut is_first = true;
    for &node in order {
        for (field, target) in graph.edges(node) {
            let (kind, name) = match field {
                // The fields of modules have names.
                Field::Number(_) if heap.class(node).kind == Kind::Module => {
                    (PROPERTY, strings.number(&heap.class(target).name))
                }
                Field::Number(field) => (ELEMENT, u64::from(field)),
                Field::Ephemeron => (INTERNAL, strings.number("ephemeron data")),
                Field::Outside => (INTERNAL, strings.number("memory outside of the heap")),
                Field::None => (INTERNAL, strings.number(&heap.class(target).name)),
            };
            let number = heap.dominators().number(target).unwrap_or(0);
            let to = u64::from(number) * NODE_FIELDS.len() as u64;
            separated(out, is_first, &[kind as u64, name, to])?;
            is_first = false;
        }
    }
    out.write_all(
        b"],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n\"strings\":",
    )?;
    serde_json::to_writer(&mut *out, &strings.list)?;
    out.write_all(b"}\n")
}

fn header(nodes: usize, edges: usize) -> serde_json::Value {
    json!({
        "meta": {
            "node_fields": NODE_FIELDS,
            "node_types": [NODE_TYPES, "string", "number", "number", "number", "number", "number"],
            "edge_fields": ["type", "name_or_index", "to_node"],
            "edge_types": [EDGE_TYPES, "string_or_number", "node"],
            "trace_function_info_fields":
                ["function_id", "name", "script_name", "script_id", "line", "column"],
            "trace_node_fields": ["id", "function_info_index", "count", "size", "children"],
            "sample_fields": ["timestamp_us", "last_assigned_id"],
            "location_fields": ["object_index", "script_id", "line", "column"],
        },
        "node_count": nodes,
        "edge_count": edges,
        "trace_function_count": 0,
    })
}

/// The number of a type in [`NODE_TYPES`].
fn node_type(kind: Kind) -> usize {
    match kind {
        Kind::Array | Kind::FloatArray => 1,
        Kind::String => 2,
        Kind::Closure | Kind::Continuation => 5,
        Kind::Float => 7,
        Kind::Custom | Kind::Abstract | Kind::Outside => 8,
        Kind::Root | Kind::Group | Kind::Module | Kind::Definition => 9,
        _ => 3,
    }
}

fn separated(out: &mut impl Write, is_first: bool, numbers: &[u64]) -> io::Result<()> {
    let mut buffer = itoa::Buffer::new();
    for (n, &number) in numbers.iter().enumerate() {
        if n > 0 || !is_first {
            out.write_all(if n == 0 { b"\n," } else { b"," })?;
        }
        out.write_all(buffer.format(number).as_bytes())?;
    }
    Ok(())
}

/// Gives strings their numbers.
#[derive(Default)]
struct Strings {
    list: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Strings {
    fn number(&mut self, string: &str) -> u64 {
        let list = &mut self.list;
        *self.numbers.entry_ref(string).or_insert_with(|| {
            list.push(string.to_owned());
            list.len() as u64 - 1
        })
    }
}
