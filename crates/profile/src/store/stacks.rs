//! Call stacks, as a tree small enough to keep.
//!
//! The full tree of calling contexts is out of the question: recursion gives the compiler's trace
//! of 3.5 million blocks 8.4 million nodes. With recursion collapsed, so that each function is in
//! a path once, where it was first called, it has 400,000. Blocks that were allocated at the same
//! place by the same path have the same *context*; of those there are 240,000.

use hashbrown::HashMap;
use heapline_trace::LocationId;

use super::tree_builder::{Full, Name, TreeBuilder};

/// The tree's root: no frame at all.
pub(crate) const ROOT: u32 = 0;
/// No location, node, frame or context.
pub(crate) const NONE: u32 = u32::MAX;

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

/// Turns the stacks of a trace into contexts, looking only at what is new in each.
#[derive(Debug)]
pub(crate) struct StackTable {
    tree: TreeBuilder,
    contexts: Vec<Context>,
    numbers: HashMap<Context, u32>,
    /// The current stack of each domain but the current one.
    domains: HashMap<u16, Current>,
    domain: u16,
    current: Current,
    shortened: u64,
}

/// A block's stack, as far as it differs from the last one of its domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortStack<'a> {
    pub(crate) domain: u16,
    /// How many locations are those of the last stack.
    pub(crate) shared: usize,
    pub(crate) new: &'a [LocationId],
    /// Whether its innermost frames are not known.
    pub(crate) cut: bool,
}

/// What has become of the stacks.
#[derive(Debug)]
pub(crate) struct Stacks {
    pub(crate) contexts: Vec<Context>,
    pub(crate) tree: CallTree,
    /// How many only have their outer part, because the tree was full.
    pub(crate) shortened: u64,
}

/// The locations of a stack, and the node that each leads to.
#[derive(Debug, Default)]
struct Current {
    locations: Vec<u32>,
    nodes: Vec<u32>,
    /// From where on the nodes are those of a caller, because the tree was full.
    full: Option<usize>,
}

impl Current {
    /// Drops what is not shared with the next stack; returns the innermost node that is left.
    #[inline]
    fn truncate(&mut self, shared: usize) -> u32 {
        self.locations.truncate(shared);
        self.nodes.truncate(shared);
        self.full = self.full.filter(|&from| from < shared);
        self.nodes.last().copied().unwrap_or(ROOT)
    }
}

impl StackTable {
    pub(crate) fn new(collapse: bool) -> Self {
        let nowhere = Context {
            node: ROOT,
            site: NONE,
        };
        Self {
            tree: TreeBuilder::new(collapse),
            contexts: vec![nowhere],
            numbers: HashMap::from([(nowhere, 0)]),
            domains: HashMap::new(),
            domain: 0,
            current: Current::default(),
            shortened: 0,
        }
    }

    /// Says what the frames of a location are, before its first use.
    pub(crate) fn name(&mut self, location: u32, frames: &[Name]) {
        self.tree.name(location, frames);
    }

    /// The context of the next block, with its stack in short.
    #[inline]
    pub(crate) fn context(&mut self, stack: ShortStack<'_>) -> u32 {
        if stack.domain != self.domain {
            self.switch_to(stack.domain);
        }
        let top = self.current.truncate(stack.shared);
        let (node, call) = self.push(top, stack.new);
        self.shortened += u64::from(self.current.full.is_some());
        // What was cut off is the allocation itself.
        let site = match self.current.locations.last() {
            Some(&location) if !stack.cut => location,
            _ => NONE,
        };
        let context = Context { node, site };
        match call {
            Some(call) if !stack.cut => {
                let known = self.tree.call(call).context;
                if known != NONE {
                    return known;
                }
                let number = self.number(context);
                self.tree.call(call).context = number;
                number
            }
            _ => self.number(context),
        }
    }

    #[cold]
    fn switch_to(&mut self, domain: u16) {
        let next = self.domains.remove(&domain).unwrap_or_default();
        let last = std::mem::replace(&mut self.current, next);
        self.domains.insert(self.domain, last);
        self.domain = domain;
    }

    /// Extends the current stack. Returns the node it leads to, and the innermost call if that is
    /// remembered.
    #[inline]
    fn push(&mut self, top: u32, new: &[LocationId]) -> (u32, Option<usize>) {
        let (current, tree) = (&mut self.current, &mut self.tree);
        let start = current.nodes.len();
        let indices = new.iter().map(|location| number(location.index()));
        current.locations.extend(indices);
        current.nodes.resize(current.locations.len(), top);
        if current.full.is_some() {
            return (top, None);
        }
        let mut node = top;
        let mut last = None;
        for i in start..current.nodes.len() {
            let location = current.locations[i];
            let call = match tree.remembered(node, location) {
                Some(call) => call,
                None => {
                    let nodes = tree.len();
                    match tree.learn(node, location) {
                        Ok(call) if tree.len() == nodes => call,
                        Ok(call) => {
                            current.nodes[i] = tree.call(call).to;
                            let is_last = i + 1 == current.nodes.len();
                            return (current.grow(i, tree), is_last.then_some(call));
                        }
                        Err(Full(node)) => return (current.stay(i, node), None),
                    }
                }
            };
            node = tree.call(call).to;
            current.nodes[i] = node;
            last = Some(call);
        }
        (node, last)
    }

    #[inline]
    fn number(&mut self, context: Context) -> u32 {
        let contexts = &mut self.contexts;
        *self.numbers.entry(context).or_insert_with(|| {
            contexts.push(context);
            number(contexts.len() - 1)
        })
    }

    pub(crate) fn finish(mut self) -> Stacks {
        self.contexts.shrink_to_fit();
        Stacks {
            contexts: self.contexts,
            tree: self.tree.finish(),
            shortened: self.shortened,
        }
    }
}

impl Current {
    /// Finds the nodes inside of a node that is new, to which the tree's path leads.
    fn grow(&mut self, last: usize, tree: &mut TreeBuilder) -> u32 {
        let mut node = self.nodes[last];
        for i in last + 1..self.nodes.len() {
            match tree.grow(node, self.locations[i]) {
                Ok(to) => node = to,
                Err(Full(to)) => return self.stay(i, to),
            }
            self.nodes[i] = node;
        }
        node
    }

    /// Stays at a node from some location on, because the tree is full.
    #[cold]
    fn stay(&mut self, from: usize, node: u32) -> u32 {
        self.full = Some(from);
        self.nodes[from..].fill(node);
        node
    }
}

/// Nothing here is counted beyond `u32`: nodes are limited, and the rest is as many as the blocks
/// or locations.
pub(super) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
