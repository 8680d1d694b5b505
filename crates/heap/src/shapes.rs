//! Recognises lists and hash tables by the shape of their blocks.

use heapline_heapfile::FactKind;

use crate::graph::{Field, Graph, NodeId};

/// The shape of a block, where it is one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    #[default]
    Plain,
    /// A cell of a list.
    List,
    /// A `Hashtbl.t`.
    Hashtable,
    /// The array of a hash table.
    Buckets,
    /// A cell of a bucket.
    Binding,
}

/// The smallest number of buckets.
const FEWEST_BUCKETS: u64 = 16;

/// The shapes of all blocks.
pub(crate) fn shapes(graph: &Graph) -> Vec<Shape> {
    let mut shapes = vec![Shape::Plain; graph.blocks() as usize];
    for node in 0..graph.blocks() {
        if graph.tag(node) == Some(0) {
            mark_list(graph, node, &mut shapes);
        }
    }
    for node in 0..graph.blocks() {
        if let Some(buckets) = buckets(graph, node) {
            mark_table(graph, node, buckets, &mut shapes);
        }
    }
    shapes
}

fn is_block(graph: &Graph, node: NodeId, words: u64) -> bool {
    graph.tag(node) == Some(0) && graph.words(node) == words && !graph.is_module(node)
}

/// Marks three cells that follow each other: two could as well be a pair in a pair.
fn mark_list(graph: &Graph, node: NodeId, shapes: &mut [Shape]) {
    let next = |node| {
        graph
            .field(node, 1)
            .filter(|next| is_block(graph, *next, 2))
    };
    if !is_block(graph, node, 2) {
        return;
    }
    if graph.folded(node).cells > 0 {
        shapes[node as usize] = Shape::List;
        let (_, last) = graph.edges(node).last().unzip();
        if let Some(next) = last.filter(|next| is_block(graph, *next, 2)) {
            shapes[next as usize] = Shape::List;
        }
    }
    if let Some(second) = next(node)
        && let Some(third) = next(second)
    {
        for cell in [node, second, third] {
            shapes[cell as usize] = Shape::List;
        }
    }
}

/// The array of a hash table, if a block is one: a record of four fields, of which only the second is a block.
fn buckets(graph: &Graph, node: NodeId) -> Option<NodeId> {
    if !is_block(graph, node, 4) {
        return None;
    }
    let array = graph
        .field(node, 1)
        .filter(|&array| graph.tag(array) == Some(0))?;
    if graph
        .fact(node)
        .is_some_and(|fact| fact.kind == FactKind::Hashtable)
    {
        return Some(array);
    }
    let words = graph.words(array);
    let is_array =
        words >= FEWEST_BUCKETS && words.is_power_of_two() && graph.edges(node).len() == 1;
    let mut bindings = graph
        .edges(array)
        .take(8)
        .map(|(_, binding)| binding)
        .peekable();
    let has_bindings = bindings.peek().is_some();
    let are_bindings = bindings.all(|binding| is_block(graph, binding, 3));
    (is_array && has_bindings && are_bindings).then_some(array)
}

fn mark_table(graph: &Graph, node: NodeId, array: NodeId, shapes: &mut [Shape]) {
    shapes[node as usize] = Shape::Hashtable;
    if shapes[array as usize] == Shape::Buckets {
        return;
    }
    shapes[array as usize] = Shape::Buckets;
    for (field, binding) in graph.edges(array) {
        let mut next = matches!(field, Field::Number(_)).then_some(binding);
        while let Some(binding) = next {
            // A bucket that was seen before: tables share buckets, or a damaged one has a cycle.
            if !is_block(graph, binding, 3) || shapes[binding as usize] == Shape::Binding {
                break;
            }
            shapes[binding as usize] = Shape::Binding;
            next = graph.field(binding, 2);
        }
    }
}
