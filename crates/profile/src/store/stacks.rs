//! Call stacks, as a tree small enough to keep.
//!
//! The full tree of calling contexts is out of the question: recursion gives the compiler's trace
//! of 3.5 million blocks 8.4 million nodes. With recursion collapsed, so that each function is in
//! a path once, where it was first called, it has 400,000. Blocks that were allocated at the same
//! place by the same path have the same *context*; of those there are 240,000.

use std::sync::Arc;

use hashbrown::HashMap;
use heapline_model::{Batch, LocationId};
use serde::{Deserialize, Serialize};

use super::ids::{ContextId, FrameId, Id, IdVec, NodeId};
use super::pair_table::PairTable;
use super::stack_log::StackLog;
use super::symbols::{SymbolTable, Symbols};
use super::tree_builder::{Full, Name, TreeBuilder};

/// Paths through the program, outermost caller at the root.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CallTree {
    /// The caller; smaller than the node itself, so one pass over the nodes sees callers first.
    pub(crate) parent: IdVec<NodeId, NodeId>,
    pub(crate) frame: IdVec<NodeId, FrameId>,
}

impl CallTree {
    pub(crate) fn len(&self) -> usize {
        self.parent.len()
    }

    /// All nodes but the root.
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (1..self.len()).map(NodeId::from_index)
    }
}

/// Where and through whom blocks were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Context {
    pub(crate) node: NodeId,
    /// The location of the allocation itself, or none.
    pub(crate) site: LocationId,
}

/// Turns the stacks of a trace into contexts, looking only at what is new in each.
#[derive(Debug)]
struct StackTable {
    tree: TreeBuilder,
    contexts: IdVec<ContextId, Context>,
    /// Contexts by node and site.
    numbers: PairTable<NodeId, LocationId, ContextId>,
    /// The current stack of each lane but the current one.
    lanes: HashMap<u16, Current>,
    lane: u16,
    current: Current,
    shortened: u64,
}

/// A block's stack, as far as it differs from the last one of its lane.
#[derive(Clone, Copy, Debug)]
struct ShortStack<'a> {
    lane: u16,
    /// How many locations are those of the last stack.
    shared: usize,
    new: &'a [LocationId],
    /// True if its innermost frames are not known.
    truncated: bool,
}

/// The call tree and the contexts of all stacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stacks {
    pub(crate) contexts: IdVec<ContextId, Context>,
    pub(crate) tree: CallTree,
    /// How many only have their outer part, because the tree was full.
    pub(crate) shortened: u64,
}

/// Finds the contexts of the stacks of batches, and learns names on the way.
#[derive(Debug)]
pub(crate) struct StackReader {
    symbols: SymbolTable,
    table: StackTable,
}

impl StackReader {
    /// Nothing read yet. With `collapse` a function is in a path only once, where it was first
    /// called.
    pub(crate) fn new(collapse: bool) -> Self {
        Self {
            symbols: SymbolTable::default(),
            table: StackTable::new(collapse),
        }
    }

    /// Returns true if all stacks so far were empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.contexts.len() == 1
    }

    /// Appends the context of each birth of a batch.
    pub(crate) fn read(&mut self, batch: &Batch, contexts: &mut Vec<ContextId>) {
        for definition in batch.definitions() {
            if let Some(names) = self.symbols.define(&definition) {
                self.table.name(definition.id, &names);
            }
        }
        let mut frames = batch.frames();
        if frames.is_empty() && self.table.has_no_frames() {
            // A source that is read without stacks.
            contexts.resize(contexts.len() + batch.births().len(), ContextId::NOWHERE);
            return;
        }
        contexts.extend(batch.births().iter().map(|birth| {
            let (new, rest) = frames.split_at(birth.new as usize);
            frames = rest;
            self.table.context(ShortStack {
                lane: birth.lane,
                shared: birth.shared as usize,
                new,
                truncated: birth.truncated,
            })
        }));
    }

    /// A copy of the tables so far.
    pub(crate) fn snapshot(&self) -> (Stacks, Arc<Symbols>) {
        (self.table.snapshot(), Arc::clone(self.symbols.symbols()))
    }

    /// The tables, when no more stacks will come.
    pub(crate) fn finish(self) -> (Stacks, Arc<Symbols>) {
        (self.table.finish(), Arc::clone(self.symbols.symbols()))
    }
}

/// The contexts of all stacks of a log, with every frame of recursive calls.
pub(crate) fn with_recursion(log: &StackLog, symbols: &Symbols) -> (Stacks, Vec<ContextId>) {
    let mut table = StackTable::new(false);
    for (location, frames) in symbols.callable_locations() {
        let names: Vec<Name> = frames
            .iter()
            .map(|&frame| Name {
                frame,
                function: symbols.frames()[frame].function,
            })
            .collect();
        table.name(location, &names);
    }
    let mut contexts = Vec::new();
    log.replay(|stack| {
        contexts.push(table.context(ShortStack {
            lane: stack.lane,
            shared: stack.shared,
            new: stack.new,
            truncated: stack.truncated,
        }));
    });
    (table.finish(), contexts)
}

/// The locations of a stack, and the node that each leads to.
#[derive(Debug, Default)]
struct Current {
    locations: Vec<LocationId>,
    nodes: Vec<NodeId>,
    /// From where on the nodes are those of a caller, because the tree was full.
    full: Option<usize>,
}

impl Current {
    /// Drops what is not shared with the next stack; returns the innermost node that is left.
    #[inline]
    fn truncate(&mut self, shared: usize) -> NodeId {
        self.locations.truncate(shared);
        self.nodes.truncate(shared);
        self.full = self.full.filter(|&from| from < shared);
        self.nodes.last().copied().unwrap_or(NodeId::ROOT)
    }
}

impl StackTable {
    fn new(collapse: bool) -> Self {
        let nowhere = Context {
            node: NodeId::ROOT,
            site: LocationId::NONE,
        };
        let mut numbers = PairTable::default();
        numbers.insert(nowhere.node, nowhere.site, ContextId::NOWHERE);
        Self {
            tree: TreeBuilder::new(collapse),
            contexts: vec![nowhere].into(),
            numbers,
            lanes: HashMap::new(),
            lane: 0,
            current: Current::default(),
            shortened: 0,
        }
    }

    /// Says what the frames of a location are, before its first use.
    fn name(&mut self, location: LocationId, frames: &[Name]) {
        self.tree.name(location, frames);
    }

    /// Returns true if the last stack of every lane is empty, so that there is nothing to share with.
    fn has_no_frames(&self) -> bool {
        self.current.locations.is_empty() && self.lanes.is_empty()
    }

    /// The context of the next block, with its stack in short.
    #[inline]
    fn context(&mut self, stack: ShortStack<'_>) -> ContextId {
        if stack.lane != self.lane {
            self.switch_to(stack.lane);
        }
        let top = self.current.truncate(stack.shared);
        if stack.new.is_empty() && stack.shared == 0 {
            return ContextId::NOWHERE;
        }
        let (node, call) = self.push(top, stack.new);
        self.shortened += u64::from(self.current.full.is_some());
        // What was cut off is the allocation itself.
        let site = match self.current.locations.last() {
            Some(&location) if !stack.truncated && self.tree.knows(location) => location,
            _ => LocationId::NONE,
        };
        let context = Context { node, site };
        match call {
            Some(call) if !stack.truncated => {
                let known = self.tree.call(call).context;
                if known != ContextId::NONE {
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
    fn switch_to(&mut self, lane: u16) {
        let next = self.lanes.remove(&lane).unwrap_or_default();
        let last = std::mem::replace(&mut self.current, next);
        self.lanes.insert(self.lane, last);
        self.lane = lane;
    }

    /// Extends the current stack. Returns the node it leads to, and the innermost call if that is
    /// remembered.
    #[inline]
    fn push(&mut self, top: NodeId, new: &[LocationId]) -> (NodeId, Option<usize>) {
        let (current, tree) = (&mut self.current, &mut self.tree);
        let start = current.nodes.len();
        let end = start + new.len();
        current.locations.extend_from_slice(new);
        current.nodes.resize(end, top);
        if current.full.is_some() {
            return (top, None);
        }
        let mut node = top;
        let mut last = None;
        for (i, (to, &location)) in (start..).zip(current.nodes[start..].iter_mut().zip(new)) {
            let (call, next) = match tree.remembered(node, location) {
                Some(known) => known,
                None => {
                    let nodes = tree.len();
                    match tree.learn(node, location) {
                        Ok(learnt) if tree.len() == nodes => learnt,
                        Ok((call, next)) => {
                            *to = next;
                            return (current.grow(i, tree), (i + 1 == end).then_some(call));
                        }
                        Err(Full(node)) => return (current.stay(i, node), None),
                    }
                }
            };
            *to = next;
            node = next;
            last = Some(call);
        }
        (node, last)
    }

    #[inline]
    fn number(&mut self, context: Context) -> ContextId {
        let Context { node, site } = context;
        let site_of = |number| self.contexts[number].site;
        if let Some(number) = self.numbers.get(node, site, site_of) {
            return number;
        }
        let number = self.contexts.push(context);
        self.numbers.insert(node, site, number);
        number
    }

    fn snapshot(&self) -> Stacks {
        Stacks {
            contexts: self.contexts.clone(),
            tree: self.tree.call_tree().clone(),
            shortened: self.shortened,
        }
    }

    fn finish(self) -> Stacks {
        // The lookup tables are the most of it.
        drop(self.numbers);
        drop(self.lanes);
        let mut contexts = self.contexts;
        contexts.shrink_to_fit();
        Stacks {
            contexts,
            tree: self.tree.finish(),
            shortened: self.shortened,
        }
    }
}

impl Current {
    /// Finds the nodes inside of a node that is new, to which the tree's path leads.
    fn grow(&mut self, last: usize, tree: &mut TreeBuilder) -> NodeId {
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
    fn stay(&mut self, from: usize, node: NodeId) -> NodeId {
        self.full = Some(from);
        self.nodes[from..].fill(node);
        node
    }
}
