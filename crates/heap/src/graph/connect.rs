//! Connects blocks, and adds nodes for what is not a block.

use hashbrown::HashMap;
use heapline_heapfile::FactKind;

use super::{EPHEMERON, Graph, NO_FIELD, NodeId, OUTSIDE, Virtual, saturated};
use crate::load::LoadError;
use crate::roots::{GroupKind, groups};

impl Graph {
    pub(super) fn connect(
        &mut self,
        ends: &[u32],
        fields: &[u32],
        targets: &[u64],
    ) -> Result<(), LoadError> {
        let blocks = self.blocks();
        let (groups, group_targets) =
            groups(&self.blocks.roots, &self.blocks.frames, &self.blocks.stacks);
        self.virtuals.push(Virtual::Root);
        let group_count = groups.len();
        for (group, targets) in groups.into_iter().zip(&group_targets) {
            if matches!(group.kind, GroupKind::Globals | GroupKind::Loaded) {
                let modules = targets.iter().filter_map(|target| self.find(*target));
                self.modules.extend(modules.collect::<Vec<_>>());
            }
            self.virtuals.push(Virtual::Group(group));
        }
        let mut extra = self.ephemeron_edges();
        self.outside_edges(&mut extra);
        extra.sort_unstable();
        let mut extra = extra.into_iter().peekable();

        self.targets.reserve(targets.len());
        self.fields.reserve(targets.len());
        let mut definitions = Vec::new();
        let mut start = 0;
        for (node, &end) in (0..).zip(ends) {
            self.first.push(self.edge_count()?);
            let is_module = self.modules.contains(&node);
            for edge in start as usize..end as usize {
                let Some(target) = self.find(targets[edge]) else {
                    self.damage.references += 1;
                    continue;
                };
                let field = fields[edge];
                self.fields.push(field);
                if is_module {
                    self.targets.push(self.node_count()?);
                    self.virtuals.push(Virtual::Definition {
                        module: node,
                        field,
                    });
                    definitions.push(target);
                } else {
                    self.targets.push(target);
                }
            }
            while let Some((_, field, target)) = extra.next_if(|edge| edge.0 == node) {
                self.fields.push(field);
                self.targets.push(target);
            }
            start = end;
        }
        // The virtual nodes: the root, the groups, memory outside, definitions.
        self.first.push(self.edge_count()?);
        self.targets
            .extend((0..group_count).map(|group| blocks + 1 + saturated(group)));
        for targets in group_targets {
            self.first.push(self.edge_count()?);
            for target in targets {
                match self.find(target) {
                    Some(node) => self.targets.push(node),
                    None => self.damage.roots += 1,
                }
            }
        }
        let outside = self.virtuals.len() - 1 - group_count - definitions.len();
        for _ in 0..outside {
            self.first.push(self.edge_count()?);
        }
        for target in definitions {
            self.first.push(self.edge_count()?);
            self.targets.push(target);
        }
        self.first.push(self.edge_count()?);
        self.fields.resize(self.targets.len(), NO_FIELD);
        Ok(())
    }

    /// References from keys of ephemerons to their data. The data lives as long as the ephemeron and all its keys do:
    /// any of them retains it. The first key is the most telling one.
    fn ephemeron_edges(&mut self) -> Vec<(NodeId, u32, NodeId)> {
        let mut edges = Vec::new();
        let ephemerons = std::mem::take(&mut self.blocks.ephemerons);
        for ephemeron in &ephemerons {
            let block = self.find(ephemeron.block);
            let data = self.find(ephemeron.data);
            let key = ephemeron.keys.iter().find_map(|key| self.find(*key));
            match (key.or(block), data) {
                (Some(from), Some(data)) => edges.push((from, EPHEMERON, data)),
                (None, _) => self.damage.others += 1,
                (_, None) => self.damage.others += u64::from(ephemeron.data != 0),
            }
        }
        self.blocks.ephemerons = ephemerons;
        edges
    }

    /// Adds nodes for memory that several blocks share, with references to it, and takes the other facts.
    fn outside_edges(&mut self, edges: &mut Vec<(NodeId, u32, NodeId)>) {
        let mut shared: HashMap<u64, Vec<(NodeId, u64)>> = HashMap::new();
        for fact in std::mem::take(&mut self.blocks.facts) {
            let Some(node) = self.find(fact.block) else {
                self.damage.others += 1;
                continue;
            };
            match fact.kind {
                FactKind::External if fact.b != 0 => {
                    shared.entry(fact.b).or_default().push((node, fact.a));
                }
                FactKind::External => {
                    let bytes = self.outside.entry(node).or_default();
                    *bytes = bytes.saturating_add(fact.a);
                }
                FactKind::Static => {
                    self.statics
                        .push((fact.block, fact.block.saturating_add(fact.a)));
                }
                _ => {
                    if fact.kind == FactKind::Fiber {
                        self.outside.insert(node, fact.a);
                    }
                    self.facts.insert(node, fact);
                }
            }
        }
        // Whatever a file says.
        self.statics.sort_unstable();
        let mut shared: Vec<_> = shared.into_iter().collect();
        shared.sort_unstable_by_key(|(address, _)| *address);
        for (_, owners) in shared {
            let bytes = owners.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
            if let [(node, _)] = owners[..] {
                let sum = self.outside.entry(node).or_default();
                *sum = sum.saturating_add(bytes);
                continue;
            }
            let memory = self.blocks() + saturated(self.virtuals.len());
            self.virtuals.push(Virtual::Outside { bytes });
            edges.extend(owners.iter().map(|(node, _)| (*node, OUTSIDE, memory)));
        }
    }

    fn edge_count(&self) -> Result<u32, LoadError> {
        u32::try_from(self.targets.len()).map_err(|_| LoadError::TooLarge)
    }

    fn node_count(&self) -> Result<u32, LoadError> {
        let count = self.blocks.addresses.len() + self.virtuals.len();
        u32::try_from(count)
            .ok()
            .filter(|count| *count < u32::MAX)
            .ok_or(LoadError::TooLarge)
    }
}
