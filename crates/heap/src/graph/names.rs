//! Names of things, and what else a snapshot has.

use heapline_heapfile::{Definition, Frame, Site, SymbolKind};

use super::{Graph, NodeId};
use crate::heap::Amount;
use crate::load::properties;
use crate::names::{function_name, module_name};
use crate::roots::place;

impl Graph {
    /// The blocks that the snapshot says it has, and those that it has, both with static data. They differ if blocks were
    /// lost.
    #[must_use]
    pub fn totals(&self) -> (Amount, Amount) {
        let mut stated = Amount::default();
        for (_, amount) in self.tag_totals() {
            stated += amount;
        }
        let mut found = Amount::default();
        for node in 0..self.blocks() {
            let folded = self.folded(node);
            let blocks = folded.cells.saturating_add(folded.others).saturating_add(1);
            let words = self.words(node).saturating_add(folded.words);
            found += Amount {
                bytes: words.saturating_add(blocks).saturating_mul(8),
                blocks,
            };
        }
        (stated, found)
    }

    /// The blocks that the snapshot says it has of each tag, with static data.
    pub fn tag_totals(&self) -> impl Iterator<Item = (u8, Amount)> {
        self.blocks.totals.iter().map(|total| {
            let amount = Amount {
                bytes: total.words.saturating_add(total.blocks).saturating_mul(8),
                blocks: total.blocks,
            };
            (total.tag, amount)
        })
    }

    /// A property of the snapshot, such as `program`.
    #[must_use]
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| value)
    }

    /// The properties of the snapshot.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        properties(&self.blocks.meta)
    }

    /// The name of a module.
    #[must_use]
    pub fn module_name(&self, module: NodeId) -> String {
        let address = self.address(module);
        match self.symbol(SymbolKind::Module, address.wrapping_mul(8)) {
            Some(symbol) => module_name(symbol),
            None => format!("module at {:#x}", address.wrapping_mul(8)),
        }
    }

    /// The name of a function at an address.
    #[must_use]
    pub fn code_name(&self, address: u64) -> Option<String> {
        self.symbol(SymbolKind::Code, address).map(function_name)
    }

    /// The name of the operations of custom blocks.
    #[must_use]
    pub fn operations_name(&self, address: u64) -> Option<&str> {
        self.symbol(SymbolKind::Operations, address)
    }

    fn symbol(&self, kind: SymbolKind, address: u64) -> Option<&str> {
        let symbols = &self.blocks.symbols;
        let at = symbols
            .binary_search_by_key(&(kind, address), |symbol| (symbol.kind, symbol.address))
            .ok()?;
        Some(&symbols[at].name)
            .filter(|name| !name.is_empty())
            .map(String::as_str)
    }

    /// The name of a toplevel definition, and its place in the source.
    #[must_use]
    pub fn definition(&self, module: NodeId, field: u32) -> (String, Option<String>) {
        let name = self.module_name(module);
        let definition = self.definition_of(module, field);
        let field = match definition.map(|definition| definition.name.as_str()) {
            Some(known) if !known.is_empty() => format!("{name}.{known}"),
            _ => format!("{name} field {field}"),
        };
        let place = definition.and_then(|found| place(&found.file, found.line));
        (field, place)
    }

    fn definition_of(&self, module: NodeId, field: u32) -> Option<&Definition> {
        let key = (self.address(module), u64::from(field));
        let definitions = &self.blocks.definitions;
        let at = definitions
            .binary_search_by_key(&key, |found| (found.module, found.field))
            .ok()?;
        Some(&definitions[at])
    }

    /// A function on a stack, by its number.
    #[must_use]
    pub fn frame(&self, number: u64) -> Option<&Frame> {
        self.blocks.frames.get(usize::try_from(number).ok()?)
    }

    /// Sampled blocks that are in the snapshot: their nodes, and their numbers in the trace.
    pub fn sites(&self) -> impl Iterator<Item = (NodeId, &Site)> {
        let sites = self.blocks.sites.iter();
        sites.filter_map(|site| Some((self.find(site.block)?, site)))
    }

    /// The number of sampled blocks, including those that were garbage.
    #[must_use]
    pub fn site_count(&self) -> usize {
        self.blocks.sites.len()
    }

    /// The ephemerons: keys and data, of those that are in the snapshot.
    pub fn ephemerons(&self) -> impl Iterator<Item = (Vec<NodeId>, Option<NodeId>)> {
        self.blocks.ephemerons.iter().map(|ephemeron| {
            let keys = ephemeron.keys.iter().filter_map(|key| self.find(*key));
            (keys.collect(), self.find(ephemeron.data))
        })
    }
}
