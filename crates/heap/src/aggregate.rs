//! Trees of blocks, aggregated by the names on the way from the root.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::classes::{ClassId, Kind};
use crate::graph::NodeId;
use crate::heap::{Amount, Heap, grouped};

/// The number of a node of an aggregated tree. Parents come before their children; the root is 0.
pub type AggregateId = u32;

/// Recursive data is one node: a name is looked for among so many ancestors.
const FOLD_DISTANCE: usize = 3;

/// Deeper nodes are part of their ancestors.
const MAX_DEPTH: u32 = 32;

/// A tree has at most so many nodes; blocks beyond that are part of their ancestors.
const MAX_NODES: usize = 1 << 20;

/// Blocks with the same names on their way from the root.
#[derive(Clone, Debug)]
struct Aggregate {
    parent: AggregateId,
    class: ClassId,
    depth: u32,
    /// A first block, to name it if it is the only one.
    example: NodeId,
    /// The number of times that the way leads to this name from another.
    entries: u64,
    own: Amount,
    total: Amount,
    /// Blocks that are folded into these and are no cells of a list.
    others: u64,
}

/// A dominator tree or a tree of shortest paths, aggregated by name. Every node of the heap belongs to exactly one node of
/// the tree.
#[derive(Debug)]
pub struct AggregateTree {
    aggregates: Vec<Aggregate>,
    of_node: Vec<AggregateId>,
}

impl AggregateTree {
    /// Aggregates nodes, each after its parent. The first one is the root.
    pub(crate) fn new(heap: &Heap, nodes: impl Iterator<Item = (NodeId, NodeId)>) -> Self {
        let mut tree = Self {
            aggregates: Vec::new(),
            of_node: vec![Heap::NO_NODE; heap.graph().nodes() as usize],
        };
        let mut known: HashMap<(AggregateId, ClassId), AggregateId> = HashMap::new();
        for (node, parent) in nodes {
            let class = heap.class_id(node);
            let id = if tree.aggregates.is_empty() {
                tree.add(0, class, node)
            } else {
                let parent = tree.of_node[parent as usize];
                let id = match known.entry((parent, class)) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(entry) => *entry.insert(tree.child(parent, class, node)),
                };
                tree.aggregates[id as usize].entries += u64::from(id != parent);
                id
            };
            tree.of_node[node as usize] = id;
            let aggregate = &mut tree.aggregates[id as usize];
            aggregate.own += heap.own(node);
            let others = heap.graph().folded(node).others;
            aggregate.others = aggregate.others.saturating_add(others);
        }
        for id in (0..tree.aggregates.len()).rev() {
            let own = tree.aggregates[id].own;
            tree.aggregates[id].total += own;
            let total = tree.aggregates[id].total;
            if id > 0 {
                let parent = tree.aggregates[id].parent as usize;
                tree.aggregates[parent].total += total;
            }
        }
        tree
    }

    /// The aggregate of a node with a parent: an ancestor, if the data is recursive, or a new one.
    fn child(&mut self, parent: AggregateId, class: ClassId, node: NodeId) -> AggregateId {
        let mut ancestor = parent;
        for _ in 0..FOLD_DISTANCE {
            let aggregate = &self.aggregates[ancestor as usize];
            if aggregate.class == class {
                return ancestor;
            }
            ancestor = aggregate.parent;
        }
        let depth = self.aggregates[parent as usize].depth;
        if depth >= MAX_DEPTH || self.aggregates.len() >= MAX_NODES {
            return parent;
        }
        self.add(parent, class, node)
    }

    fn add(&mut self, parent: AggregateId, class: ClassId, example: NodeId) -> AggregateId {
        let depth = match self.aggregates.get(parent as usize) {
            Some(parent) => parent.depth + 1,
            None => 0,
        };
        self.aggregates.push(Aggregate {
            parent,
            class,
            depth,
            example,
            entries: 0,
            own: Amount::default(),
            total: Amount::default(),
            others: 0,
        });
        u32::try_from(self.aggregates.len() - 1).unwrap_or(u32::MAX)
    }

    /// All nodes, parents first.
    #[must_use]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = AggregateId> + use<> {
        0..u32::try_from(self.aggregates.len()).unwrap_or(u32::MAX)
    }

    /// The aggregate of a node of the heap; `None` if it cannot be reached.
    #[must_use]
    pub fn of(&self, node: NodeId) -> Option<AggregateId> {
        let id = *self.of_node.get(node as usize)?;
        (id != Heap::NO_NODE).then_some(id)
    }

    /// The parent; the root is its own.
    #[must_use]
    pub fn parent(&self, id: AggregateId) -> AggregateId {
        self.aggregates[id as usize].parent
    }

    /// The number of nodes between it and the root, and the node itself.
    #[must_use]
    pub fn depth(&self, id: AggregateId) -> u32 {
        self.aggregates[id as usize].depth
    }

    /// The class.
    #[must_use]
    pub fn class(&self, id: AggregateId) -> ClassId {
        self.aggregates[id as usize].class
    }

    /// One of its nodes.
    #[must_use]
    pub fn example(&self, id: AggregateId) -> NodeId {
        self.aggregates[id as usize].example
    }

    /// The number of values: lists and other recursive data are one.
    #[must_use]
    pub fn values(&self, id: AggregateId) -> u64 {
        self.aggregates[id as usize].entries
    }

    /// Its nodes.
    #[must_use]
    pub fn own(&self, id: AggregateId) -> Amount {
        self.aggregates[id as usize].own
    }

    /// Its nodes, and those below.
    #[must_use]
    pub fn total(&self, id: AggregateId) -> Amount {
        self.aggregates[id as usize].total
    }

    /// The children of each node.
    #[must_use]
    pub fn children(&self) -> Vec<Vec<AggregateId>> {
        let mut children = vec![Vec::new(); self.aggregates.len()];
        for id in self.ids().skip(1) {
            children[self.parent(id) as usize].push(id);
        }
        children
    }

    /// The name of a node, with its size if it is a single value.
    #[must_use]
    pub fn label(&self, heap: &Heap, id: AggregateId) -> String {
        let class = heap.class_by_id(self.class(id));
        match (self.values(id), class.kind) {
            (1, Kind::List) => {
                let others = self.aggregates[id as usize].others;
                let cells = self.own(id).blocks.saturating_sub(others);
                format!("list of {}", grouped(cells))
            }
            (1, _) => heap.label(self.example(id)),
            _ => class.name.clone(),
        }
    }

    /// The nodes from the root to this one, without those that explain nothing: the root, the group of all modules, and
    /// modules above their definitions.
    #[must_use]
    pub fn path(&self, heap: &Heap, id: AggregateId) -> Vec<AggregateId> {
        let mut path = Vec::new();
        let mut at = id;
        while at != 0 {
            let is_obvious = match heap.class_by_id(self.class(at)).kind {
                Kind::Group => heap.is_of_modules(self.example(at)),
                Kind::Module => path.last().is_some_and(|&below| {
                    heap.class_by_id(self.class(below)).kind == Kind::Definition
                }),
                _ => false,
            };
            if !is_obvious {
                path.push(at);
            }
            at = self.parent(at);
        }
        path.reverse();
        path
    }
}
