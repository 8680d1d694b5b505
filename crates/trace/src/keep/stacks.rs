//! The call stacks of all blocks that are kept, as a tree.

use crate::{DEEPER_CALLS, LocationId, Locations, TaggedCode};
use hashbrown::HashMap;

/// A stack: its innermost frame's node in the tree. The default is the empty stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Node(u32);

/// The most nodes: some 2 GB. A program would need as many different frames of different stacks.
const MAX_NODES: usize = 1 << 26;

/// Nodes that may be unused before they are looked for.
const SLACK: usize = 1 << 16;

/// The location of [`DEEPER_CALLS`].
const DEEPER: u32 = u32::MAX;

/// The tree. Parents are before their children.
#[derive(Debug)]
pub(crate) struct StackTable {
    /// The parent and the location of each node.
    nodes: Vec<(u32, u32)>,
    children: HashMap<(u32, u32), u32>,
    /// Nodes that were in use when that was last looked at.
    used: usize,
}

impl Default for StackTable {
    fn default() -> Self {
        Self {
            nodes: vec![(0, DEEPER)],
            children: HashMap::new(),
            used: 1,
        }
    }
}

impl StackTable {
    /// The stack with another frame. `None` if there are too many.
    pub(crate) fn child(&mut self, parent: Node, location: LocationId) -> Option<Node> {
        // A trace numbers its locations with 32 bits.
        let location = u32::try_from(location.index()).ok()?;
        self.intern(parent.0, location)
    }

    fn intern(&mut self, parent: u32, location: u32) -> Option<Node> {
        let key = (parent, location);
        if let Some(&node) = self.children.get(&key) {
            return Some(Node(node));
        }
        let node = u32::try_from(self.nodes.len()).ok()?;
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        self.nodes.push(key);
        self.children.insert(key, node);
        Some(Node(node))
    }

    /// Returns true if many nodes may be unused.
    pub(crate) fn is_crowded(&self, records: usize) -> bool {
        self.nodes.len() > 2 * self.used + records + SLACK
    }

    /// The stack's codes, innermost first.
    pub(crate) fn codes(&self, stack: Node, locations: &Locations, codes: &mut Vec<TaggedCode>) {
        codes.clear();
        let mut node = stack.0;
        while node != 0 {
            let (parent, location) = self.nodes[node as usize];
            let known = locations.get(location as usize);
            let code = known.map_or(DEEPER_CALLS, |location| locations.code(location));
            codes.push(TaggedCode::new(code));
            node = parent;
        }
    }

    /// The stack's innermost frames, with [`DEEPER_CALLS`] in place of the others.
    pub(crate) fn cut(&mut self, stack: Node, depth: usize) -> Node {
        let mut frames = Vec::with_capacity(depth);
        let mut node = stack.0;
        while node != 0 && frames.len() < depth {
            let (parent, location) = self.nodes[node as usize];
            frames.push(location);
            node = parent;
        }
        if node == 0 || self.nodes[node as usize] == (0, DEEPER) {
            return stack;
        }
        frames.push(DEEPER);
        let mut cut = 0;
        for location in frames.into_iter().rev() {
            match self.intern(cut, location) {
                Some(Node(node)) => cut = node,
                None => return stack,
            }
        }
        Node(cut)
    }

    /// Drops all stacks but these, which get new numbers.
    pub(crate) fn retain(&mut self, stacks: &mut [&mut Node]) {
        let mut is_used = vec![false; self.nodes.len()];
        is_used[0] = true;
        for stack in &*stacks {
            is_used[stack.0 as usize] = true;
        }
        for node in (1..self.nodes.len()).rev() {
            if is_used[node] {
                is_used[self.nodes[node].0 as usize] = true;
            }
        }
        let mut numbers = vec![0; self.nodes.len()];
        let old = std::mem::take(self);
        for (node, &(parent, location)) in old.nodes.iter().enumerate().skip(1) {
            if is_used[node] {
                let number = self.intern(numbers[parent as usize], location);
                numbers[node] = number.unwrap_or_default().0;
            }
        }
        for stack in stacks {
            stack.0 = numbers[stack.0 as usize];
        }
        self.used = self.nodes.len();
    }
}
