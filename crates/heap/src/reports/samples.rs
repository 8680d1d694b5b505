//! Joins the sampled blocks of a recording with the blocks of a snapshot.

use hashbrown::{HashMap, HashSet};
use heapline_model::{Batch, EventKind, Source};
use heapline_profile::{Amount, Estimate, Holders, Label, Sampling, Scope};

use super::why::SiteRow;
use crate::graph::NodeId;
use crate::heap::Heap;

/// Sampled blocks that are in a snapshot.
#[derive(Clone, Debug)]
pub struct Samples {
    sampling: Sampling,
    sites: Vec<Label>,
    /// The node, the number of its site, and what it stands for.
    blocks: Vec<(NodeId, usize, Amount)>,
}

/// The sampled blocks of a snapshot in a recording: the numbers of their allocations, from 0, by the number that the snapshot
/// has of them.
#[derive(Debug)]
pub struct AllocationNumbers(HashMap<u64, usize>);

impl AllocationNumbers {
    /// Reads a recording, for which it needs no stacks.
    pub fn read(heap: &Heap, recording: &mut dyn Source) -> Result<Self, heapline_model::Error> {
        let wanted: HashSet<u64> = heap.graph().sites().map(|(_, site)| site.number).collect();
        let (mut numbers, mut batch, mut next) = (HashMap::new(), Batch::default(), 0);
        while recording.next_batch(&mut batch)? {
            let events = batch.events().iter();
            for birth in events.filter(|event| event.kind == EventKind::Birth) {
                if wanted.contains(&birth.block) {
                    numbers.insert(birth.block, next);
                }
                next += 1;
            }
            batch.clear();
        }
        Ok(Self(numbers))
    }

    /// Returns true if the recording has none of the blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Finds the selected blocks of a recording in a snapshot of the same run.
#[must_use]
pub fn join(heap: &Heap, scope: &Scope<'_>, numbers: &AllocationNumbers) -> Samples {
    let mut nodes: HashMap<usize, NodeId> = HashMap::new();
    for (node, site) in heap.graph().sites() {
        if let Some(&number) = numbers.0.get(&site.number) {
            nodes.insert(number, node);
        }
    }
    let profile = scope.profile();
    let mut numbers: HashMap<Option<heapline_profile::FrameId>, usize> = HashMap::new();
    let mut samples = Samples {
        sampling: *profile.sampling(),
        sites: Vec::new(),
        blocks: Vec::new(),
    };
    scope.for_each_block(|block| {
        let Some(&node) = nodes.get(&block.number) else {
            return;
        };
        let frame = scope.stack(block.stack).first().copied();
        let sites = &mut samples.sites;
        let site = *numbers.entry(frame).or_insert_with(|| {
            let symbols = profile.symbols();
            sites.push(match frame {
                Some(frame) => Label {
                    name: symbols.function(frame).name.clone(),
                    place: Some(symbols.place(frame)),
                    ..Label::default()
                },
                None => Label {
                    name: "(unknown)".to_owned(),
                    ..Label::default()
                },
            });
            sites.len() - 1
        });
        samples.blocks.push((node, site, block.amount));
    });
    samples
}

/// The holders of the sampled blocks of a recording, by a snapshot with this name: what retains a block, or, if several
/// things do together, the nearest of them.
#[must_use]
pub fn sample_holders(heap: &Heap, numbers: &AllocationNumbers, snapshot: &str) -> Holders {
    let (only, nearest) = (heap.holders(), heap.nearest_holders());
    let mut holders = Holders::new(snapshot);
    for (node, site) in heap.graph().sites() {
        let Some(&number) = numbers.0.get(&site.number) else {
            continue;
        };
        let name = |holder: NodeId| heap.class(holder).name.as_str();
        match (only[node as usize], nearest[node as usize]) {
            (Some(holder), _) => holders.add(number, name(holder)),
            (None, Some(holder)) => holders.add(number, &format!("{} and others", name(holder))),
            // It cannot be reached.
            (None, None) => {}
        }
    }
    holders
}

impl Samples {
    /// The selected blocks.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.blocks.iter().map(|(node, ..)| *node)
    }

    /// The estimates of the selected blocks of each key: all, and by site, the largest first.
    pub(super) fn by_key<K: std::hash::Hash + Eq>(
        &self,
        key: impl Fn(NodeId) -> Option<K>,
    ) -> HashMap<K, (Estimate, Vec<SiteRow>)> {
        let mut sums: HashMap<K, (Amount, HashMap<usize, Amount>)> = HashMap::new();
        for &(node, site, amount) in &self.blocks {
            if let Some(key) = key(node) {
                let (all, by_site) = sums.entry(key).or_default();
                *all += amount;
                *by_site.entry(site).or_default() += amount;
            }
        }
        let sums = sums.into_iter();
        sums.map(|(key, (all, by_site))| {
            let mut by_site: Vec<(usize, Amount)> = by_site.into_iter().collect();
            by_site.sort_unstable_by(|(site, amount), (other, than)| {
                let order = than.bytes.value.total_cmp(&amount.bytes.value);
                order.then(site.cmp(other))
            });
            let rows = by_site.into_iter().map(|(site, amount)| SiteRow {
                site: self.sites[site].clone(),
                bytes: self.sampling.bytes(&amount),
                blocks: self.sampling.blocks(&amount),
                samples: amount.samples,
            });
            (key, (self.sampling.bytes(&all), rows.collect()))
        })
        .collect()
    }
}
