//! The tree of calls while it grows.

use hashbrown::HashMap;

use super::stacks::{CallTree, NONE, ROOT, number};

/// More than any program needs; a crafted trace may want billions.
const MOST_NODES: usize = 1 << 25;

/// Adds calls to a tree, and remembers where they lead.
#[derive(Debug)]
pub(crate) struct TreeBuilder {
    /// Whether a function is in a path only once, where it was first called.
    collapse: bool,
    nodes: Vec<Node>,
    /// All children of nodes that have several.
    children: HashMap<(u32, u32), u32>,
    names: Names,
    path: Path,
    /// Where calls led that were met lately.
    calls: Box<[Call; CALLS]>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    frame: u32,
    /// How many frames it is away from the root.
    depth: u32,
    /// The child that was met last; [`ROOT`] if it has none.
    recent: u32,
}

/// A location called from a node, and where that leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    from: u32,
    location: u32,
    pub(crate) to: u32,
    /// The context of blocks that are allocated there; [`NONE`] as long as nobody asked.
    pub(crate) context: u32,
}

const CALLS: usize = 1 << 16;

/// The tree is full: the node is that of the innermost frame that still fitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full(pub(crate) u32);

impl TreeBuilder {
    pub(crate) fn new(collapse: bool) -> Self {
        let root = Node {
            parent: ROOT,
            frame: NONE,
            depth: 0,
            recent: ROOT,
        };
        let no_call = Call {
            from: NONE,
            location: NONE,
            to: ROOT,
            context: NONE,
        };
        let calls = vec![no_call; CALLS].into_boxed_slice();
        Self {
            collapse,
            nodes: vec![root],
            children: HashMap::new(),
            names: Names::default(),
            path: Path::at_root(),
            calls: calls.try_into().expect("as long as it was made"),
        }
    }

    /// Says what the frames of a location are, before its first use.
    pub(crate) fn name(&mut self, location: u32, frames: &[Name]) {
        self.names.add(location, frames);
    }

    /// Whether it was said what the frames of a location are.
    #[inline]
    pub(crate) fn knows(&self, location: u32) -> bool {
        (location as usize) < self.names.places.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The call of a location from a node, if it is remembered.
    #[inline]
    pub(crate) fn remembered(&self, from: u32, location: u32) -> Option<usize> {
        let slot = slot(from, location);
        [slot, slot ^ 1]
            .into_iter()
            .find(|&slot| self.calls[slot].is(from, location))
    }

    #[inline]
    pub(crate) fn call(&mut self, slot: usize) -> &mut Call {
        &mut self.calls[slot % CALLS]
    }

    /// Finds where a call leads that is not remembered, and remembers it.
    #[inline(never)]
    pub(crate) fn learn(&mut self, from: u32, location: u32) -> Result<usize, Full> {
        let to = self.extend(from, location, Self::child)?;
        let slot = slot(from, location);
        self.calls[slot ^ 1] = self.calls[slot];
        self.calls[slot] = Call {
            from,
            location,
            to,
            context: NONE,
        };
        Ok(slot)
    }

    /// Where a call from a node leads that was made just now: nothing was ever called from there,
    /// so there is nothing to look up.
    #[inline]
    pub(crate) fn grow(&mut self, from: u32, location: u32) -> Result<u32, Full> {
        self.extend(from, location, Self::new_child)
    }

    /// Goes from a node to the frames of a location.
    #[inline]
    fn extend(
        &mut self,
        mut node: u32,
        location: u32,
        child: impl Fn(&mut Self, u32, Name) -> Option<u32>,
    ) -> Result<u32, Full> {
        // A location that was never defined has no frames.
        let place = self.names.places.get(location as usize);
        let (start, end) = place.copied().unwrap_or_default();
        for i in start..end {
            let name = self.names.frames[i as usize];
            node = child(self, node, name).ok_or(Full(node))?;
        }
        Ok(node)
    }

    /// The node of a frame called from a node: the same one if its function is in the path
    /// already.
    #[inline]
    fn child(&mut self, node: u32, name: Name) -> Option<u32> {
        let recent = self.nodes[node as usize].recent;
        if recent == ROOT {
            // No need to look for others, and for most nodes it stays so.
            return self.new_child(node, name);
        }
        let other = self.nodes[recent as usize].frame;
        if other == name.frame {
            return Some(recent);
        }
        if let Some(&child) = self.children.get(&(node, name.frame)) {
            self.nodes[node as usize].recent = child;
            return Some(child);
        }
        let child = self.new_child(node, name)?;
        if child != node {
            self.children.insert((node, name.frame), child);
            // The child that was the only one so far is not among them yet.
            self.children.insert((node, other), recent);
        }
        Some(child)
    }

    /// The same if it is known that there is no such child yet.
    #[inline]
    fn new_child(&mut self, node: u32, name: Name) -> Option<u32> {
        if !self.collapse {
            return self.add(node, name.frame);
        }
        self.path.go_to(node, &self.nodes, &self.names);
        if self.path.has(name.function) {
            return Some(node);
        }
        let child = self.add(node, name.frame)?;
        self.path.push(child, name.function);
        Some(child)
    }

    /// A new node, unless there are too many.
    #[inline]
    fn add(&mut self, node: u32, frame: u32) -> Option<u32> {
        if self.nodes.len() == MOST_NODES {
            return None;
        }
        let child = number(self.nodes.len());
        let parent = &mut self.nodes[node as usize];
        parent.recent = child;
        let depth = parent.depth + 1;
        self.nodes.push(Node {
            parent: node,
            frame,
            depth,
            recent: ROOT,
        });
        Some(child)
    }

    /// The tree as it is now.
    pub(crate) fn call_tree(&self) -> CallTree {
        CallTree {
            parent: self.nodes.iter().map(|node| node.parent).collect(),
            frame: self.nodes.iter().map(|node| node.frame).collect(),
        }
    }

    /// The tree, now that nothing will be added.
    pub(crate) fn finish(mut self) -> CallTree {
        // A tree with every recursive call has millions of children.
        self.children = HashMap::new();
        self.call_tree()
    }
}

impl Call {
    #[inline]
    fn is(&self, from: u32, location: u32) -> bool {
        self.from == from && self.location == location
    }
}

/// Where a call is remembered, unless a later one that also belongs there has pushed it to the
/// neighbouring place, which is in the same cache line.
#[inline]
fn slot(from: u32, location: u32) -> usize {
    let key = u64::from(from) << 32 | u64::from(location);
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The top bits, as many as it takes.
    usize::try_from(hash >> (64 - CALLS.ilog2())).unwrap_or(0) % CALLS
}

/// The frames of locations, outermost first, each with its function.
#[derive(Debug, Default)]
struct Names {
    /// Where the frames of each location start and end.
    places: Vec<(u32, u32)>,
    frames: Vec<Name>,
    /// The function of each frame.
    functions: Vec<u32>,
}

/// A frame and its function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) frame: u32,
    pub(crate) function: u32,
}

impl Names {
    fn add(&mut self, location: u32, frames: &[Name]) {
        let location = location as usize;
        if self.places.len() <= location {
            self.places.resize(location + 1, (0, 0));
        }
        let start = number(self.frames.len());
        self.frames.extend_from_slice(frames);
        for name in frames {
            let frame = name.frame as usize;
            if self.functions.len() <= frame {
                self.functions.resize(frame + 1, NONE);
            }
            self.functions[frame] = name.function;
        }
        self.places[location] = (start, number(self.frames.len()));
    }
}

/// The functions between the root and a node.
#[derive(Debug)]
struct Path {
    nodes: Vec<u32>,
    functions: Vec<u32>,
    /// Where each function is on the path, if it is there at all.
    place: Vec<u32>,
    missing: Vec<u32>,
}

impl Path {
    fn at_root() -> Self {
        Self {
            nodes: vec![ROOT],
            functions: vec![NONE],
            place: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Moves to another node. What both paths share is left alone, so this costs no more than the
    /// frames that were pushed since the last time.
    #[inline]
    fn go_to(&mut self, node: u32, tree: &[Node], names: &Names) {
        if self.nodes.last() != Some(&node) {
            self.walk_to(node, tree, names);
        }
    }

    fn walk_to(&mut self, node: u32, tree: &[Node], names: &Names) {
        let mut ancestor = node;
        while self.nodes.get(tree[ancestor as usize].depth as usize) != Some(&ancestor) {
            self.missing.push(ancestor);
            ancestor = tree[ancestor as usize].parent;
        }
        let shared = tree[ancestor as usize].depth as usize + 1;
        self.nodes.truncate(shared);
        self.functions.truncate(shared);
        while let Some(node) = self.missing.pop() {
            let frame = tree[node as usize].frame;
            self.push(node, names.functions[frame as usize]);
        }
    }

    fn push(&mut self, node: u32, function: u32) {
        let index = function as usize;
        if self.place.len() <= index {
            self.place.resize(index + 1, NONE);
        }
        self.place[index] = number(self.nodes.len());
        self.nodes.push(node);
        self.functions.push(function);
    }

    fn has(&self, function: u32) -> bool {
        // The place may be out of date: what counts is what the path says.
        let place = self.place.get(function as usize).copied().unwrap_or(NONE);
        self.functions.get(place as usize) == Some(&function)
    }
}
