//! The tree of calls while it grows.

use heapline_model::LocationId;

use super::ids::{ContextId, FrameId, FunctionId, Id, IdVec, NodeId, saturated};
use super::pair_table::PairTable;
use super::stacks::CallTree;

/// More than any program needs; a crafted trace may want billions.
const MOST_NODES: usize = 1 << 25;

/// Adds calls to a tree, and remembers where they lead.
#[derive(Debug)]
pub(crate) struct TreeBuilder {
    tree: CallTree,
    /// Children by node and frame.
    children: PairTable<NodeId, FrameId, NodeId>,
    names: Names,
    /// If recursion is collapsed: the path to the node that was added last.
    path: Option<Path>,
    /// Where calls led that were met lately.
    calls: Box<[Call; CALLS]>,
}

/// A location called from a node, and where that leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    from: NodeId,
    location: LocationId,
    pub(crate) to: NodeId,
    /// The context of blocks that are allocated there; none as long as nobody asked.
    pub(crate) context: ContextId,
}

const CALLS: usize = 1 << 15;

/// The tree is full: the node is that of the innermost frame that still fitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full(pub(crate) NodeId);

impl TreeBuilder {
    /// An empty tree. With `collapse` a function is in a path only once, where it was first called.
    pub(crate) fn new(collapse: bool) -> Self {
        let no_call = Call {
            from: NodeId::NONE,
            location: LocationId::NONE,
            to: NodeId::ROOT,
            context: ContextId::NONE,
        };
        let calls = vec![no_call; CALLS].into_boxed_slice();
        Self {
            tree: CallTree {
                parent: vec![NodeId::ROOT].into(),
                frame: vec![FrameId::NONE].into(),
            },
            children: PairTable::default(),
            names: Names::default(),
            path: collapse.then(Path::at_root),
            calls: calls.try_into().expect("as long as it was made"),
        }
    }

    /// Says what the frames of a location are, before its first use.
    pub(crate) fn name(&mut self, location: LocationId, frames: &[Name]) {
        self.names.add(location, frames);
    }

    /// Returns true if it was said what the frames of a location are.
    #[inline]
    pub(crate) fn knows(&self, location: LocationId) -> bool {
        location.index() < self.names.places.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.tree.len()
    }

    /// The slot of the call of a location from a node, and where that leads, if it is remembered.
    #[inline]
    pub(crate) fn remembered(&self, from: NodeId, location: LocationId) -> Option<(usize, NodeId)> {
        let slot = slot(from, location);
        for slot in [slot, slot ^ 1] {
            let call = &self.calls[slot];
            if call.is(from, location) {
                return Some((slot, call.to));
            }
        }
        None
    }

    #[inline]
    pub(crate) fn call(&mut self, slot: usize) -> &mut Call {
        &mut self.calls[slot % CALLS]
    }

    /// Finds where a call leads that is not remembered, and remembers it.
    #[inline(never)]
    pub(crate) fn learn(
        &mut self,
        from: NodeId,
        location: LocationId,
    ) -> Result<(usize, NodeId), Full> {
        let to = self.extend(from, location, Self::child)?;
        let slot = slot(from, location);
        self.calls[slot ^ 1] = self.calls[slot];
        self.calls[slot] = Call {
            from,
            location,
            to,
            context: ContextId::NONE,
        };
        Ok((slot, to))
    }

    /// Where a call from a node leads that was made just now: nothing was ever called from there,
    /// so there is nothing to look up.
    #[inline]
    pub(crate) fn grow(&mut self, from: NodeId, location: LocationId) -> Result<NodeId, Full> {
        self.extend(from, location, Self::new_child)
    }

    /// Goes from a node to the frames of a location.
    #[inline]
    fn extend(
        &mut self,
        mut node: NodeId,
        location: LocationId,
        child: impl Fn(&mut Self, NodeId, Name) -> Option<NodeId>,
    ) -> Result<NodeId, Full> {
        // A location that was never defined has no frames.
        let place = self.names.places.get(location);
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
    fn child(&mut self, node: NodeId, name: Name) -> Option<NodeId> {
        let frames = &self.tree.frame;
        let frame = |child| frames[child];
        match self.children.get(node, name.frame, frame) {
            Some(child) => Some(child),
            None => self.new_child(node, name),
        }
    }

    /// Fast path of [`Self::child`] if it is known that there is no such child yet.
    #[inline]
    fn new_child(&mut self, node: NodeId, name: Name) -> Option<NodeId> {
        if let Some(path) = &mut self.path {
            path.go_to(node, &self.tree, &self.names);
            if path.has(name.function) {
                return Some(node);
            }
        }
        let child = self.tree.add(node, name.frame)?;
        self.children.insert(node, name.frame, child);
        if let Some(path) = &mut self.path {
            path.add(child, name.function);
        }
        Some(child)
    }

    /// The tree as it is now.
    pub(crate) fn call_tree(&self) -> &CallTree {
        &self.tree
    }

    /// The tree, now that nothing will be added.
    pub(crate) fn finish(self) -> CallTree {
        let mut tree = self.tree;
        tree.parent.shrink_to_fit();
        tree.frame.shrink_to_fit();
        tree
    }
}

impl CallTree {
    /// Adds a node, unless there are too many.
    #[inline]
    fn add(&mut self, parent: NodeId, frame: FrameId) -> Option<NodeId> {
        if self.len() == MOST_NODES {
            return None;
        }
        self.frame.push(frame);
        Some(self.parent.push(parent))
    }
}

impl Call {
    #[inline]
    fn is(&self, from: NodeId, location: LocationId) -> bool {
        self.from == from && self.location == location
    }
}

/// Where a call is remembered, unless a later one that also belongs there has pushed it to the
/// neighbouring place, which is in the same cache line.
#[inline]
fn slot(from: NodeId, location: LocationId) -> usize {
    let key = (from.index() as u64) << 32 | location.index() as u64;
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The top bits, as many as it takes.
    usize::try_from(hash >> (64 - CALLS.ilog2())).unwrap_or(0) % CALLS
}

/// The frames of locations, outermost first, each with its function.
#[derive(Debug, Default)]
struct Names {
    /// Where the frames of each location start and end.
    places: IdVec<LocationId, (u32, u32)>,
    frames: Vec<Name>,
    functions: IdVec<FrameId, FunctionId>,
}

/// A frame and its function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) frame: FrameId,
    pub(crate) function: FunctionId,
}

impl Names {
    fn add(&mut self, location: LocationId, frames: &[Name]) {
        let start = saturated(self.frames.len());
        self.frames.extend_from_slice(frames);
        for name in frames {
            let function = self.functions.get_or_fill(name.frame, FunctionId::NONE);
            *function = name.function;
        }
        *self.places.get_or_fill(location, (0, 0)) = (start, saturated(self.frames.len()));
    }
}

/// The place of functions that are not on a path.
const NOWHERE: u32 = u32::MAX;

/// The functions between the root and a node.
#[derive(Debug)]
struct Path {
    /// How many frames each node of the tree is away from the root.
    depth: IdVec<NodeId, u32>,
    nodes: Vec<NodeId>,
    functions: Vec<FunctionId>,
    /// Where each function is on the path, if it is there at all.
    place: IdVec<FunctionId, u32>,
    missing: Vec<NodeId>,
}

impl Path {
    fn at_root() -> Self {
        Self {
            depth: vec![0].into(),
            nodes: vec![NodeId::ROOT],
            functions: vec![FunctionId::NONE],
            place: IdVec::default(),
            missing: Vec::new(),
        }
    }

    /// Moves to another node. What both paths share is left alone, so this costs no more than the
    /// frames that were pushed since the last time.
    #[inline]
    fn go_to(&mut self, node: NodeId, tree: &CallTree, names: &Names) {
        if self.nodes.last() != Some(&node) {
            self.walk_to(node, tree, names);
        }
    }

    fn walk_to(&mut self, node: NodeId, tree: &CallTree, names: &Names) {
        let mut ancestor = node;
        while self.nodes.get(self.depth[ancestor] as usize) != Some(&ancestor) {
            self.missing.push(ancestor);
            ancestor = tree.parent[ancestor];
        }
        let shared = self.depth[ancestor] as usize + 1;
        self.nodes.truncate(shared);
        self.functions.truncate(shared);
        while let Some(node) = self.missing.pop() {
            let frame = tree.frame[node];
            self.push(node, names.functions[frame]);
        }
    }

    /// Moves to a new node of the tree, called from here.
    fn add(&mut self, node: NodeId, function: FunctionId) {
        self.depth.push(saturated(self.nodes.len()));
        self.push(node, function);
    }

    fn push(&mut self, node: NodeId, function: FunctionId) {
        *self.place.get_or_fill(function, NOWHERE) = saturated(self.nodes.len());
        self.nodes.push(node);
        self.functions.push(function);
    }

    fn has(&self, function: FunctionId) -> bool {
        // The place may be out of date: what counts is what the path says.
        let place = self.place.get(function).copied().unwrap_or(NOWHERE);
        self.functions.get(place as usize) == Some(&function)
    }
}
