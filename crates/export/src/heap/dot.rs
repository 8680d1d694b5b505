//! Paths for Graphviz.

use std::io::{self, Write};

use heapline_heap::{Field, Heap, NodeId};

/// Nodes below this share of everything are left out.
const LEAST_SHARE: f64 = 0.01;

/// Writes the dominator tree by name, as far as nodes retain 1 % of everything.
pub fn dot(heap: &Heap, out: &mut impl Write) -> io::Result<()> {
    let tree = heap.dominator_tree();
    let least = heap.total().bytes as f64 * LEAST_SHARE;
    begin(out)?;
    for id in tree.ids() {
        let retained = tree.total(id).bytes;
        if id > 0 && (retained as f64) < least {
            continue;
        }
        let label = format!("{}\n{retained} bytes", tree.label(heap, id));
        writeln!(out, "  n{id} [label={}];", quoted(&label))?;
        if id > 0 {
            writeln!(out, "  n{} -> n{id};", tree.parent(id))?;
        }
    }
    writeln!(out, "}}")
}

/// Writes the shortest path from a root to a node, with the fields of references.
pub fn dot_of_path(heap: &Heap, node: NodeId, out: &mut impl Write) -> io::Result<()> {
    let graph = heap.graph();
    let mut before = vec![None; graph.nodes() as usize];
    for (node, parent) in heap.shortest_paths() {
        before[node as usize] = Some(parent).filter(|parent| *parent != node);
    }
    let mut path = vec![node];
    let mut at = node;
    while let Some(parent) = before[at as usize] {
        path.push(parent);
        at = parent;
    }
    path.reverse();
    begin(out)?;
    for (n, &node) in path.iter().enumerate() {
        let retained = heap.retained(node).bytes;
        let label = format!("{}\n{retained} bytes retained", heap.label(node));
        writeln!(out, "  n{node} [label={}];", quoted(&label))?;
        if let Some(&next) = path.get(n + 1) {
            let mut edges = graph.edges(node);
            let field = edges
                .find(|(_, target)| *target == next)
                .map(|(field, _)| field);
            let label = match field {
                Some(Field::Number(field)) => format!("field {field}"),
                Some(Field::Ephemeron) => "ephemeron".to_owned(),
                _ => String::new(),
            };
            writeln!(out, "  n{node} -> n{next} [label={}];", quoted(&label))?;
        }
    }
    writeln!(out, "}}")
}

fn begin(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "digraph heap {{")?;
    writeln!(
        out,
        "  rankdir=LR; node [shape=box, fontname=\"sans-serif\"];"
    )
}

/// A text as Graphviz reads it. Names come from a file: control characters are replaced.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
