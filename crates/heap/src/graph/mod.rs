//! The graph of a snapshot: blocks, references, and nodes for what is not a block.

mod connect;
mod names;

use std::io::Read;

use hashbrown::{HashMap, HashSet};
use heapline_heapfile::{Fact, Folded};
use serde::Serialize;

use crate::address_index::AddressIndex;
use crate::heap::Amount;
use crate::load::{LoadError, Sections};
use crate::roots::Group;

/// The number of a node. Blocks come first, in the order of their addresses, then [virtual](Virtual) nodes.
pub type NodeId = u32;

/// The largest number of a field; larger numbers stand for references without one.
pub(crate) const MAX_FIELD: u32 = u32::MAX - 4;
const EPHEMERON: u32 = u32::MAX - 3;
const OUTSIDE: u32 = u32::MAX - 2;
const NO_FIELD: u32 = u32::MAX;

/// The tag of closures.
const CLOSURE: u8 = 247;

/// Where a reference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// In a field of the block.
    Number(u32),
    /// From the key of an ephemeron to its data.
    Ephemeron,
    /// From a block to its memory outside of the heap.
    Outside,
    /// From a virtual node.
    None,
}

/// A node that is not a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Virtual {
    /// The root of everything.
    Root,
    /// A group of roots.
    Group(Group),
    /// A field of a module: the value of a toplevel definition.
    Definition {
        /// The block of the module.
        module: NodeId,
        /// The number of the field.
        field: u32,
    },
    /// Memory outside of the heap that several blocks share.
    Outside {
        /// Its size.
        bytes: u64,
    },
}

/// References and roots that lead to no block, and are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LoadDamage {
    /// References of blocks.
    pub references: u64,
    /// Roots.
    pub roots: u64,
    /// Ephemerons, facts and sites.
    pub others: u64,
}

impl LoadDamage {
    /// Everything that was left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.references + self.roots + self.others
    }
}

/// All blocks of a snapshot, and who refers to whom.
///
/// From a [root](Self::root) there are references to groups of roots, and from those to blocks. The fields of
/// modules are nodes of their own, between the module and the value, so that they have a retained size. Memory
/// outside of the heap is part of its block, or a node if several share it. The data of an ephemeron belongs to its key.
#[derive(Debug, Default)]
pub struct Graph {
    blocks: Sections,
    index: AddressIndex,
    virtuals: Vec<Virtual>,
    first: Vec<u32>,
    fields: Vec<u32>,
    targets: Vec<NodeId>,
    /// Bytes outside of the heap that only this block refers to.
    outside: HashMap<NodeId, u64>,
    facts: HashMap<NodeId, Fact>,
    modules: HashSet<NodeId>,
    /// Addresses of static data, from and to, in order.
    statics: Vec<(u64, u64)>,
    /// A bit for each block that is [plain](Self::is_plain).
    plain: Vec<u64>,
    damage: LoadDamage,
}

impl Graph {
    /// Reads a snapshot.
    pub fn read(input: impl Read) -> Result<Self, LoadError> {
        let mut sections = Sections::read(input)?;
        let index = AddressIndex::new(&sections.addresses);
        let mut graph = Self {
            index,
            ..Self::default()
        };
        let targets = std::mem::take(&mut sections.targets);
        let fields = std::mem::take(&mut sections.fields);
        let ends = std::mem::take(&mut sections.ends);
        graph.blocks = sections;
        graph.connect(&ends, &fields, &targets)?;
        graph.find_plain();
        Ok(graph)
    }
}

fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Access to nodes.
impl Graph {
    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        saturated(self.blocks.addresses.len())
    }

    /// The number of nodes: blocks and virtual nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.blocks() + saturated(self.virtuals.len())
    }

    /// The node of which all others can be reached.
    #[must_use]
    pub fn root(&self) -> NodeId {
        self.blocks()
    }

    /// The block at an address, in words. The functions of a closure have addresses within it.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<NodeId> {
        self.index.find(address).or_else(|| {
            let addresses = &self.blocks.addresses;
            let after = addresses.partition_point(|block| *block < address);
            let before = saturated(after.checked_sub(1)?);
            let is_in = self.tag(before) == Some(CLOSURE)
                && address - self.address(before) < self.words(before);
            is_in.then_some(before)
        })
    }

    /// Returns true for static data of the program, which is not in the heap.
    #[must_use]
    pub fn is_static(&self, node: NodeId) -> bool {
        let address = self.address(node);
        let after = self.statics.partition_point(|(start, _)| *start <= address);
        let range = after.checked_sub(1).map(|n| self.statics[n]);
        range.is_some_and(|(_, end)| address < end)
    }

    /// The address of a block, in words; 0 for virtual nodes.
    #[must_use]
    pub fn address(&self, node: NodeId) -> u64 {
        let addresses = &self.blocks.addresses;
        addresses.get(node as usize).copied().unwrap_or(0)
    }

    /// The virtual node with a number; `None` for blocks.
    #[must_use]
    pub fn virtual_node(&self, node: NodeId) -> Option<&Virtual> {
        self.virtuals.get(node.checked_sub(self.blocks())? as usize)
    }

    /// The virtual nodes, and their numbers.
    pub fn virtual_nodes(&self) -> impl Iterator<Item = (NodeId, &Virtual)> {
        (self.blocks()..).zip(&self.virtuals)
    }

    /// The tag of a block.
    #[must_use]
    pub fn tag(&self, node: NodeId) -> Option<u8> {
        self.blocks.tags.get(node as usize).copied()
    }

    /// The words of a block, without its header; 0 for virtual nodes.
    #[must_use]
    pub fn words(&self, node: NodeId) -> u64 {
        self.blocks.words.get(node as usize).copied().unwrap_or(0)
    }

    /// The code of a closure, the operations of a custom block, or the hash of a string.
    #[must_use]
    pub fn detail(&self, node: NodeId) -> u64 {
        self.blocks.details.get(node as usize).copied().unwrap_or(0)
    }

    /// The blocks that are folded into this one.
    #[must_use]
    pub fn folded(&self, node: NodeId) -> Folded {
        self.blocks
            .folded
            .get(node as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The blocks that are folded into others.
    #[must_use]
    pub fn folded_blocks(&self) -> u64 {
        let folded = self.blocks.folded.iter();
        let blocks = folded.map(|folded| folded.cells.saturating_add(folded.others));
        blocks.fold(0, u64::saturating_add)
    }

    /// The bytes of a node: the block with its header, those folded into it, and what only it has outside of the heap.
    /// Static data has none in the heap.
    #[must_use]
    pub fn bytes(&self, node: NodeId) -> u64 {
        self.own(node).bytes
    }

    /// The blocks in the heap that a node stands for: itself, and those folded into it.
    #[must_use]
    pub fn block_count(&self, node: NodeId) -> u64 {
        self.own(node).blocks
    }

    /// The [bytes](Self::bytes) and [blocks](Self::block_count) of a node.
    #[must_use]
    #[inline]
    pub fn own(&self, node: NodeId) -> Amount {
        if self.is_plain(node) {
            return Amount {
                bytes: self.words(node).saturating_add(1).saturating_mul(8),
                blocks: 1,
            };
        }
        let outside = self.outside_bytes(node);
        if node >= self.blocks() || self.is_static(node) {
            return Amount {
                bytes: outside,
                blocks: 0,
            };
        }
        let folded = self.folded(node);
        let blocks = folded.cells.saturating_add(folded.others).saturating_add(1);
        let words = self.words(node).saturating_add(folded.words);
        let bytes = words.saturating_add(blocks).saturating_mul(8);
        Amount {
            bytes: bytes.saturating_add(outside),
            blocks,
        }
    }

    /// Returns true for most blocks: in the heap, and with nothing outside of it or folded into them.
    #[inline]
    fn is_plain(&self, node: NodeId) -> bool {
        let bits = self.plain.get(node as usize / 64);
        bits.is_some_and(|bits| bits >> (node % 64) & 1 == 1)
    }

    /// Finds the blocks that are plain.
    fn find_plain(&mut self) {
        let mut plain = vec![0; self.blocks.addresses.len().div_ceil(64)];
        for node in 0..self.blocks() {
            let is_plain = self.folded(node) == Folded::default()
                && !self.is_static(node)
                && !self.outside.contains_key(&node);
            plain[node as usize / 64] |= u64::from(is_plain) << (node % 64);
        }
        self.plain = plain;
    }

    /// The bytes outside of the heap that only this block has.
    #[must_use]
    pub fn outside_bytes(&self, node: NodeId) -> u64 {
        match self.virtual_node(node) {
            Some(Virtual::Outside { bytes }) => *bytes,
            _ => self.outside.get(&node).copied().unwrap_or(0),
        }
    }

    /// The references of a node.
    #[must_use]
    pub fn edges(&self, node: NodeId) -> impl ExactSizeIterator<Item = (Field, NodeId)> {
        let range = self.edge_range(node);
        let fields = self.fields[range.clone()].iter().map(|field| match *field {
            EPHEMERON => Field::Ephemeron,
            OUTSIDE => Field::Outside,
            NO_FIELD => Field::None,
            field => Field::Number(field),
        });
        fields.zip(self.targets[range].iter().copied())
    }

    /// The block that a field refers to.
    #[must_use]
    pub fn field(&self, node: NodeId, field: u32) -> Option<NodeId> {
        let range = self.edge_range(node);
        let at = self.fields[range.clone()].binary_search(&field).ok()?;
        Some(self.targets[range.start + at])
    }

    fn edge_range(&self, node: NodeId) -> std::ops::Range<usize> {
        self.first[node as usize] as usize..self.first[node as usize + 1] as usize
    }

    /// The references of all nodes: those of `n` are the targets from its first to the first of the next.
    #[must_use]
    pub fn csr(&self) -> (&[u32], &[NodeId]) {
        (&self.first, &self.targets)
    }

    /// The fact about a block, if there is one.
    #[must_use]
    pub fn fact(&self, node: NodeId) -> Option<&Fact> {
        self.facts.get(&node)
    }

    /// All blocks of which something else is known.
    pub fn facts(&self) -> impl Iterator<Item = (NodeId, &Fact)> {
        self.facts.iter().map(|(node, fact)| (*node, fact))
    }

    /// Returns true if a block is a module.
    #[must_use]
    pub fn is_module(&self, node: NodeId) -> bool {
        self.modules.contains(&node)
    }

    /// References and roots that were left out.
    #[must_use]
    pub fn damage(&self) -> LoadDamage {
        self.damage
    }
}
