//! A snapshot with its dominator tree.

use std::io::Read;
use std::ops::AddAssign;
use std::sync::OnceLock;

use serde::Serialize;

use crate::aggregate::AggregateTree;
use crate::classes::{Class, ClassId, Classes, Kind};
use crate::dominators::Dominators;
use crate::graph::{Graph, NodeId};
use crate::load::LoadError;

/// No node.
const NONE: u32 = u32::MAX;

/// Blocks and their bytes: headers and memory outside of the heap included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "HeapAmount"))]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.blocks = self.blocks.saturating_add(other.blocks);
    }
}

/// A snapshot with its dominator tree and the names of all nodes.
#[derive(Debug)]
pub struct Heap {
    graph: Graph,
    classes: Classes,
    dominators: Dominators,
    /// By preorder number.
    retained: Vec<Amount>,
    dominator_tree: OnceLock<AggregateTree>,
    path_tree: OnceLock<AggregateTree>,
}

impl Heap {
    /// Reads a snapshot.
    ///
    /// ```
    /// use heapline_heap::Heap;
    ///
    /// # let file = heapline_testkit::heap::server().finish();
    /// let heap = Heap::read(&file[..])?;
    /// let table = heap.nodes_named("Cache.table").next().unwrap();
    /// assert_eq!(heap.retained(table).blocks, 5002);
    /// # Ok::<(), heapline_heap::LoadError>(())
    /// ```
    pub fn read(input: impl Read) -> Result<Self, LoadError> {
        Ok(Self::new(Graph::read(input)?))
    }

    /// Computes the dominators of a graph.
    #[must_use]
    pub fn new(graph: Graph) -> Self {
        let (first, targets) = graph.csr();
        let dominators = Dominators::new(graph.root(), first, targets);
        let order = dominators.order().iter();
        let mut retained: Vec<Amount> = order.map(|&node| graph.own(node)).collect();
        let parents = dominators.numbers_of_dominators();
        for node in (1..retained.len()).rev() {
            let amount = retained[node];
            retained[parents[node] as usize] += amount;
        }
        Self {
            classes: Classes::new(&graph),
            graph,
            dominators,
            retained,
            dominator_tree: OnceLock::new(),
            path_tree: OnceLock::new(),
        }
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The dominators.
    #[must_use]
    pub fn dominators(&self) -> &Dominators {
        &self.dominators
    }

    /// All that can be reached.
    #[must_use]
    pub fn total(&self) -> Amount {
        self.retained(self.graph.root())
    }

    /// The amount that a node retains: itself, and all that would be freed with it. Nothing if it cannot be reached.
    #[must_use]
    pub fn retained(&self, node: NodeId) -> Amount {
        let number = self.dominators.number(node);
        number.map_or_else(Amount::default, |number| self.retained[number as usize])
    }

    /// The node itself.
    #[must_use]
    pub fn own(&self, node: NodeId) -> Amount {
        self.graph.own(node)
    }

    /// The class of a node.
    #[must_use]
    pub fn class(&self, node: NodeId) -> &Class {
        self.classes.class(self.classes.of(node))
    }

    /// The class of a node, as a number.
    #[must_use]
    pub fn class_id(&self, node: NodeId) -> ClassId {
        self.classes.of(node)
    }

    /// A class by its number.
    #[must_use]
    pub fn class_by_id(&self, class: ClassId) -> &Class {
        self.classes.class(class)
    }

    /// All nodes that can be reached and whose class has a name.
    pub fn nodes_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        let order = self.dominators.order().iter().copied();
        order.filter(move |node| self.class(*node).name == name)
    }

    /// The name of a single node, with its size.
    #[must_use]
    pub fn label(&self, node: NodeId) -> String {
        let class = self.class(node);
        let words = self.graph.words(node);
        match class.kind {
            Kind::Array | Kind::FloatArray => format!("{} of {}", class.name, grouped(words)),
            Kind::String => format!("string {} B", grouped(words.saturating_mul(8))),
            _ => class.name.clone(),
        }
    }

    /// The dominator tree, aggregated by name. It is computed once.
    pub fn dominator_tree(&self) -> &AggregateTree {
        self.dominator_tree.get_or_init(|| {
            let order = self.dominators.order();
            let parents = self.dominators.numbers_of_dominators();
            let nodes = order
                .iter()
                .zip(parents)
                .map(|(&node, &parent)| (node, order[parent as usize]));
            AggregateTree::new(self, nodes)
        })
    }

    /// The shortest paths from the roots, aggregated by name. They are computed once.
    pub fn path_tree(&self) -> &AggregateTree {
        self.path_tree
            .get_or_init(|| AggregateTree::new(self, self.shortest_paths().into_iter()))
    }

    /// All nodes that can be reached, nearest first, with the node before them on a shortest path. Nodes of the same
    /// distance are in the order of references, so that globals come before stacks.
    #[must_use]
    pub fn shortest_paths(&self) -> Vec<(NodeId, NodeId)> {
        let (first, targets) = self.graph.csr();
        let root = self.graph.root();
        let mut seen = vec![false; self.graph.nodes() as usize];
        seen[root as usize] = true;
        let mut queue = Vec::with_capacity(self.dominators.len());
        queue.push((root, root));
        let mut at = 0;
        while let Some(&(node, _)) = queue.get(at) {
            at += 1;
            let edges = first[node as usize] as usize..first[node as usize + 1] as usize;
            for &target in &targets[edges] {
                if !std::mem::replace(&mut seen[target as usize], true) {
                    queue.push((target, node));
                }
            }
        }
        queue
    }

    /// For each node, true if one of some nodes dominates it, or it is one of them.
    #[must_use]
    pub fn dominated(&self, is_holder: impl Fn(NodeId) -> bool) -> Vec<bool> {
        let parents = self.dominators.numbers_of_dominators();
        let mut by_number = vec![false; parents.len()];
        let mut by_node = vec![false; self.graph.nodes() as usize];
        for (number, &node) in self.dominators.order().iter().enumerate() {
            let held = is_holder(node) || (number > 0 && by_number[parents[number] as usize]);
            by_number[number] = held;
            by_node[node as usize] = held;
        }
        by_node
    }

    /// For each node, true if it is selected, or if its shortest path from a root goes through a selected one.
    #[must_use]
    pub fn reached_through(&self, is_passed: impl Fn(NodeId) -> bool) -> Vec<bool> {
        let mut through = vec![false; self.graph.nodes() as usize];
        for (node, before) in self.shortest_paths() {
            through[node as usize] = is_passed(node) || through[before as usize];
        }
        through
    }

    /// For each node, the toplevel definition, frame or group of roots that retains it; `None` if several do.
    #[must_use]
    pub fn holders(&self) -> Vec<Option<NodeId>> {
        let order = self.dominators.order();
        let parents = self.dominators.numbers_of_dominators();
        let edges = order.iter().zip(parents);
        self.holders_in(edges.map(|(&node, &parent)| (node, order[parent as usize])))
    }

    /// For each node, the toplevel definition, frame or group of roots from which a shortest path leads to it.
    #[must_use]
    pub fn nearest_holders(&self) -> Vec<Option<NodeId>> {
        self.holders_in(self.shortest_paths().into_iter())
    }

    /// The holders in a tree of nodes and their parents, which come first.
    fn holders_in(&self, tree: impl Iterator<Item = (NodeId, NodeId)>) -> Vec<Option<NodeId>> {
        let mut holders = vec![None; self.graph.nodes() as usize];
        for (node, parent) in tree {
            let is_holder = match self.class(node).kind {
                Kind::Definition => true,
                Kind::Group => !self.is_of_modules(node),
                _ => false,
            };
            holders[node as usize] = if is_holder {
                Some(node)
            } else {
                holders[parent as usize]
            };
        }
        holders
    }

    /// Returns true for the groups of all modules.
    #[must_use]
    pub fn is_of_modules(&self, node: NodeId) -> bool {
        crate::classes::is_of_modules(&self.graph, node)
    }

    /// The number of an absent node.
    pub(crate) const NO_NODE: NodeId = NONE;
}

/// Digits in groups.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
