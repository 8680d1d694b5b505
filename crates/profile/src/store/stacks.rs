//! Call stacks, as a tree small enough to keep.
//!
//! The full tree of calling contexts is out of the question: recursion gives the compiler's trace
//! of 3.5 million blocks 8.4 million nodes. With recursion collapsed, so that each function is in
//! a path once, where it was first called, it has 400,000. Blocks that were allocated at the same
//! place by the same path have the same *context*; of those there are 240,000. Those of the same
//! context and kind are of the same *class*: what there is to say of them but for times is the
//! same, so most questions are answered by counting the blocks of each class and walking the tree.

use hashbrown::HashMap;

use super::stack_worker::Built;

/// The tree's root: no frame at all.
pub(crate) const ROOT: u32 = 0;
/// No location, node or frame.
pub(crate) const NONE: u32 = u32::MAX;

/// More than any program needs; a crafted trace may want billions.
const MOST_NODES: usize = 1 << 25;

/// Paths through the program, outermost caller at the root.
#[derive(Debug)]
pub(crate) struct CallTree {
    /// The caller; smaller than the node itself, so one pass over the nodes sees callers first.
    pub(crate) parent: Vec<u32>,
    pub(crate) frame: Vec<u32>,
}

impl CallTree {
    pub(crate) fn len(&self) -> usize {
        self.parent.len()
    }

    /// All nodes but the root.
    pub(crate) fn nodes(&self) -> std::ops::Range<usize> {
        1..self.len()
    }
}

/// Where and through whom blocks were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    pub(crate) node: u32,
    /// The location of the allocation itself, or [`NONE`].
    pub(crate) site: u32,
}

/// All that blocks have in common, apart from when they lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) context: u32,
    pub(crate) kind: u32,
}

/// A node of the tree that is being built.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    frame: u32,
    /// How many frames it is away from the root.
    depth: u32,
    /// The child that was met last; [`ROOT`] if it has none.
    recent: u32,
}

/// Turns the stacks of a trace into contexts, looking only at what is new in each.
#[derive(Debug)]
pub(crate) struct StackTable {
    collapse: bool,
    nodes: Vec<Node>,
    /// All children of nodes that have several.
    children: HashMap<(u32, u32), u32>,
    contexts: Vec<Context>,
    context_numbers: HashMap<Context, u32>,
    classes: Vec<Class>,
    class_numbers: HashMap<(Context, u32), u32>,
    names: Names,
    /// The current stack of each domain.
    domains: HashMap<u16, Vec<Entry>>,
    domain: u16,
    current: Vec<Entry>,
    /// Where calls led that were met lately.
    calls: Box<[Call]>,
    path: Path,
    /// Whether the current stack did not fit into the tree.
    is_full: bool,
    /// Stacks of which only the outer part was kept, because the tree was full.
    shortened: u64,
}

/// A block's stack, as far as it differs from the last one of its domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortStack<'a> {
    pub(crate) domain: u16,
    /// How many locations are those of the last stack.
    pub(crate) shared: usize,
    pub(crate) new: &'a [u32],
    /// Whether its innermost frames are not known.
    pub(crate) cut: bool,
    /// The kind of the block.
    pub(crate) kind: u32,
}

/// A location of the current stack, and the node that it leads to.
#[derive(Clone, Copy, Debug)]
struct Entry {
    location: u32,
    node: u32,
    /// Whether the node is that of a caller, because the tree was full.
    is_shortened: bool,
}

impl Entry {
    const BOTTOM: Self = Self {
        location: NONE,
        node: ROOT,
        is_shortened: false,
    };
}

/// The frames of locations, outermost first, each with its function.
#[derive(Debug, Default)]
pub(crate) struct Names {
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
    pub(crate) fn add(&mut self, location: u32, frames: &[Name]) {
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

/// A location called from a node, and where that leads.
#[derive(Clone, Copy, Debug)]
struct Call {
    from: u32,
    location: u32,
    to: u32,
    /// The kind of the last block that was allocated there, and its class; [`NONE`] if no block
    /// was.
    kind: u32,
    class: u32,
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
    /// Moves to another node. What both paths share is left alone, so this costs no more than the
    /// frames that were pushed since the last time.
    fn go_to(&mut self, node: u32, tree: &[Node], names: &Names) {
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

impl StackTable {
    const CALLS: usize = 1 << 16;

    pub(crate) fn new(collapse: bool) -> Self {
        let nowhere = Context {
            node: ROOT,
            site: NONE,
        };
        let no_call = Call {
            from: NONE,
            location: NONE,
            to: ROOT,
            kind: NONE,
            class: NONE,
        };
        let root = Node {
            parent: ROOT,
            frame: NONE,
            depth: 0,
            recent: ROOT,
        };
        Self {
            collapse,
            nodes: vec![root],
            children: HashMap::new(),
            names: Names::default(),
            contexts: vec![nowhere],
            context_numbers: HashMap::from([(nowhere, 0)]),
            classes: Vec::new(),
            class_numbers: HashMap::new(),
            domains: HashMap::new(),
            domain: 0,
            current: Vec::new(),
            calls: vec![no_call; Self::CALLS].into(),
            path: Path {
                nodes: vec![ROOT],
                functions: vec![NONE],
                place: Vec::new(),
                missing: Vec::new(),
            },
            is_full: false,
            shortened: 0,
        }
    }

    /// Says what the frames of a location are, before its first use.
    pub(crate) fn name(&mut self, location: u32, frames: &[Name]) {
        self.names.add(location, frames);
    }

    /// The class of the next block, with its stack in short.
    pub(crate) fn class(&mut self, stack: ShortStack<'_>) -> u32 {
        let ShortStack {
            domain,
            shared,
            new,
            cut,
            kind,
        } = stack;
        if domain != self.domain {
            let next = self.domains.remove(&domain).unwrap_or_default();
            let last = std::mem::replace(&mut self.current, next);
            self.domains.insert(self.domain, last);
            self.domain = domain;
        }
        self.current.truncate(shared);
        let top = self.current.last().copied().unwrap_or(Entry::BOTTOM);
        let mut node = top.node;
        self.is_full = top.is_shortened;
        let mut last = None;
        let mut known = new.iter();
        for &location in known.by_ref() {
            let nodes = self.nodes.len();
            if !self.is_full {
                let call = self.call(node, location);
                node = self.calls[call].to;
                last = Some(call);
            }
            self.push(location, node);
            if self.nodes.len() > nodes {
                break;
            }
        }
        // Nothing was ever called from a node that is new: there is nothing to look up.
        for &location in known {
            if !self.is_full {
                node = self.extend(node, location, Self::add);
            }
            self.push(location, node);
            last = None;
        }
        self.shortened += u64::from(self.is_full);
        // What was cut off is the allocation itself.
        let site = match self.current.last() {
            Some(entry) if !cut => entry.location,
            _ => NONE,
        };
        let context = Context { node, site };
        match last {
            Some(call) if !cut && !self.is_full => {
                if self.calls[call].kind != kind {
                    let class = self.number(context, kind);
                    self.calls[call].kind = kind;
                    self.calls[call].class = class;
                }
                self.calls[call].class
            }
            _ => self.number(context, kind),
        }
    }

    fn push(&mut self, location: u32, node: u32) {
        self.current.push(Entry {
            location,
            node,
            is_shortened: self.is_full,
        });
    }

    /// Finds where a call leads; returns its place in `calls`.
    #[inline]
    fn call(&mut self, from: u32, location: u32) -> usize {
        let key = u64::from(from) << 32 | u64::from(location);
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The top bits, as many as the table has. Two neighbours share a cache line and a place.
        let slot = usize::try_from(hash >> (64 - Self::CALLS.ilog2())).unwrap_or(0) % Self::CALLS;
        let is_it = |call: &Call| call.from == from && call.location == location;
        if is_it(&self.calls[slot]) {
            return slot;
        }
        let other = slot ^ 1;
        if is_it(&self.calls[other]) {
            return other;
        }
        self.calls[other] = self.calls[slot];
        let to = self.step(from, location);
        self.calls[slot] = Call {
            // What did not fit into the tree is not remembered.
            from: if self.is_full { NONE } else { from },
            location,
            to,
            kind: NONE,
            class: NONE,
        };
        slot
    }

    /// The node for a location called from a node.
    #[inline(never)]
    fn step(&mut self, from: u32, location: u32) -> u32 {
        if self.collapse {
            self.path.go_to(from, &self.nodes, &self.names);
        }
        self.extend(from, location, Self::child)
    }

    /// Goes from a node, to which the path leads, to the frames of a location.
    #[inline]
    fn extend(
        &mut self,
        mut node: u32,
        location: u32,
        child: impl Fn(&mut Self, u32, u32) -> u32,
    ) -> u32 {
        let (start, end) = self.names.places[location as usize];
        for i in start..end {
            let Name { frame, function } = self.names.frames[i as usize];
            if self.collapse && self.path.has(function) {
                continue;
            }
            let child = child(self, node, frame);
            if child == node {
                self.is_full = true;
                break;
            }
            if self.collapse {
                self.path.push(child, function);
            }
            node = child;
        }
        node
    }

    #[inline]
    fn child(&mut self, node: u32, frame: u32) -> u32 {
        let recent = self.nodes[node as usize].recent;
        if recent == ROOT {
            // The first child: no need to look for others, and for most nodes it stays so.
            return self.add(node, frame);
        }
        let other = self.nodes[recent as usize].frame;
        if other == frame {
            return recent;
        }
        if let Some(&child) = self.children.get(&(node, frame)) {
            self.nodes[node as usize].recent = child;
            return child;
        }
        let child = self.add(node, frame);
        if child != node {
            self.children.insert((node, frame), child);
            // The child that was the only one so far is not among them yet.
            self.children.insert((node, other), recent);
        }
        child
    }

    /// A new node; the old one if there are too many.
    fn add(&mut self, node: u32, frame: u32) -> u32 {
        if self.nodes.len() == MOST_NODES {
            return node;
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
        child
    }

    fn number(&mut self, context: Context, kind: u32) -> u32 {
        let (contexts, numbers) = (&mut self.contexts, &mut self.context_numbers);
        let classes = &mut self.classes;
        *self
            .class_numbers
            .entry((context, kind))
            .or_insert_with(|| {
                let context = *numbers.entry(context).or_insert_with(|| {
                    contexts.push(context);
                    number(contexts.len() - 1)
                });
                classes.push(Class { context, kind });
                number(classes.len() - 1)
            })
    }

    pub(crate) fn finish(mut self, column: Vec<u32>) -> Built {
        self.contexts.shrink_to_fit();
        self.classes.shrink_to_fit();
        Built {
            column,
            contexts: self.contexts,
            classes: self.classes,
            tree: CallTree {
                parent: self.nodes.iter().map(|node| node.parent).collect(),
                frame: self.nodes.iter().map(|node| node.frame).collect(),
            },
            shortened: self.shortened,
        }
    }
}

/// Nothing here is counted beyond `u32`: nodes are limited, and the rest is as many as the blocks
/// or locations.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
