//! The tree that is shown.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A tree of lines of text. The first node is the root.
#[derive(Clone, Debug)]
pub struct Outline {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    id: NodeId,
    depth: usize,
    text: String,
    children: Vec<usize>,
}

/// Identifies a node in later versions of the tree too: a hash of the keys from the root to it.
pub(crate) type NodeId = u64;

impl Outline {
    /// A tree that has only a root.
    #[must_use]
    pub fn new(root: &str) -> Self {
        Self {
            nodes: vec![Node {
                id: 0,
                depth: 0,
                text: one_line(root),
                children: Vec::new(),
            }],
        }
    }

    /// Adds a node below `parent`, which [`add`](Self::add) returned, or 0 for the root; returns
    /// its number. `key` tells the node from its siblings, in later versions of the tree too.
    ///
    /// # Panics
    ///
    /// If there is no such parent.
    pub fn add(&mut self, parent: usize, key: &str, text: &str) -> usize {
        let above = &self.nodes[parent];
        let mut hasher = DefaultHasher::new();
        (above.id, key).hash(&mut hasher);
        let node = Node {
            id: hasher.finish(),
            depth: above.depth + 1,
            text: one_line(text),
            children: Vec::new(),
        };
        let number = self.nodes.len();
        self.nodes.push(node);
        self.nodes[parent].children.push(number);
        number
    }

    pub(crate) fn id(&self, node: usize) -> NodeId {
        self.nodes[node].id
    }

    /// The number of nodes above it.
    pub(crate) fn depth(&self, node: usize) -> usize {
        self.nodes[node].depth
    }

    pub(crate) fn text(&self, node: usize) -> &str {
        &self.nodes[node].text
    }

    /// Returns true if there is something to unfold.
    pub(crate) fn has_children(&self, node: usize) -> bool {
        !self.nodes[node].children.is_empty()
    }

    /// The nodes to show below an open node, in order.
    pub(crate) fn below(&self, node: usize, open: &HashSet<NodeId>) -> Vec<usize> {
        let children = |node: usize| self.nodes[node].children.iter().rev().copied();
        let mut shown = Vec::new();
        let mut pending: Vec<usize> = children(node).collect();
        while let Some(node) = pending.pop() {
            shown.push(node);
            if open.contains(&self.nodes[node].id) {
                pending.extend(children(node));
            }
        }
        shown
    }
}

/// A line of text has no line breaks.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
