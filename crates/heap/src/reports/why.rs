//! Why memory is still alive: retaining paths, aggregated by name.

use std::str::FromStr;

use clap::Args;
use hashbrown::HashMap;
use heapline_profile::query::Pattern;
use heapline_profile::{Estimate, Label, Query};
use serde::{Serialize, Serializer};

use super::samples::Samples;
use super::{HeapError, MAX_ROWS, Step, Subject, largest};
use crate::aggregate::AggregateId;
use crate::classes::Kind;
use crate::graph::NodeId;
use crate::heap::{Amount, Heap};

/// Options of [`why`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WhyOptions {
    /// Select values by kind, such as 'string', 'closure Cache.*' or /bigarr/
    #[arg(long, value_name = "PATTERN")]
    pub kind: Option<Pattern>,

    /// Select the block at this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "kind")]
    pub address: Option<Address>,

    /// Select what this definition, module, closure or other value retains
    #[arg(long, value_name = "NAME")]
    pub held_by: Option<Pattern>,

    /// Select what a shortest path through it leads to, also if others reach it too
    #[arg(long, value_name = "NAME")]
    pub through: Option<Pattern>,

    /// Select blocks that matching functions allocated
    #[arg(long, value_name = "PATTERN")]
    pub site: Option<Pattern>,

    /// Select sampled blocks by a query (see docs/query.md)
    #[arg(long = "where", short = 'w', value_name = "QUERY")]
    #[serde(rename = "where")]
    pub query: Option<Query>,

    /// Merge paths that are the same up to this length
    #[arg(long, default_value_t = 4, value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=32))]
    pub depth: usize,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 10, value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=MAX_ROWS))]
    pub rows: usize,
}

impl Default for WhyOptions {
    fn default() -> Self {
        Self {
            kind: None,
            address: None,
            held_by: None,
            through: None,
            site: None,
            query: None,
            depth: 4,
            rows: 10,
        }
    }
}

impl WhyOptions {
    /// Returns true if blocks are selected by a recording, so that rows are estimates.
    #[must_use]
    pub fn is_by_recording(&self) -> bool {
        self.site.is_some() || self.query.is_some()
    }

    /// The selected blocks of the recording.
    #[must_use]
    pub fn recorded(&self) -> Query {
        let site = self.site.clone().map(Query::site);
        let queries = [site, self.query.clone()].into_iter().flatten();
        queries.fold(Query::default(), Query::and)
    }
}

/// An address in bytes: `0x7f12a0` or `8327840`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u64);

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        number
            .map(Self)
            .map_err(|_| "expected an address, such as 0x7f12a0")
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// The shortest paths from roots to the selected blocks, aggregated by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Why {
    /// The snapshot.
    pub subject: Subject,
    /// The selected blocks; where they were selected by a recording, those that were sampled.
    pub selected: Amount,
    /// The estimate of all that was selected by a recording.
    pub estimated: Option<Estimate>,
    /// The largest paths.
    pub rows: Vec<WhyRow>,
    /// The number of paths that a limit hides.
    pub hidden_rows: usize,
    /// The blocks of those.
    pub hidden: Amount,
    /// The places that allocated the selected blocks, as far as they were sampled; the largest first.
    pub sites: Vec<SiteRow>,
    /// The number of places that a limit hides.
    pub hidden_sites: usize,
}

/// A path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct WhyRow {
    /// The names from the root to the blocks.
    pub path: Vec<Step>,
    /// True if the blocks are further below.
    pub is_cut: bool,
    /// The selected blocks at its end, and below.
    pub selected: Amount,
    /// The estimate of these, if they were selected by a recording.
    pub estimated: Option<Estimate>,
    /// Where they were allocated, as far as they were sampled; the largest first.
    pub sites: Vec<SiteRow>,
    /// The address of the largest one, if it is a block.
    pub example: Option<String>,
}

/// A place in the program that allocated blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SiteRow {
    /// The function and its place.
    pub site: Label,
    /// Bytes, headers included.
    pub bytes: Estimate,
    /// Blocks.
    pub blocks: Estimate,
    /// Samples.
    pub samples: u64,
}

/// Computes the paths.
///
/// With samples of a recording, which are those that the options select, paths have the sites that allocated
/// their blocks.
pub fn why(heap: &Heap, options: &WhyOptions, samples: Option<&Samples>) -> Result<Why, HeapError> {
    let by_samples = options.is_by_recording();
    if by_samples && samples.is_none() {
        return Err(HeapError::NoRecording);
    }
    let is_selected = selection(heap, options, samples.filter(|_| by_samples))?;
    let tree = heap.path_tree();
    // The ancestor at which paths are cut.
    let most = u32::try_from(options.depth).unwrap_or(u32::MAX);
    let mut cut: Vec<AggregateId> = Vec::new();
    for id in tree.ids() {
        let parent = tree.parent(id);
        let is_deep = tree.depth(id) > most.saturating_add(obvious(heap, tree, id));
        cut.push(if is_deep { cut[parent as usize] } else { id });
    }
    let end = |node: NodeId| tree.of(node).map(|id| cut[id as usize]);
    let mut sums: HashMap<AggregateId, (Amount, NodeId, bool)> = HashMap::new();
    let mut selected = Amount::default();
    for node in (0..heap.graph().nodes()).filter(|node| is_selected(*node)) {
        let Some(id) = tree.of(node) else { continue };
        let own = heap.own(node);
        let (sum, example, is_cut) = sums
            .entry(cut[id as usize])
            .or_insert_with(|| (Amount::default(), node, false));
        *sum += own;
        *is_cut |= cut[id as usize] != id;
        // The largest one is the most telling.
        if own.bytes > heap.own(*example).bytes {
            *example = node;
        }
        selected += own;
    }
    let mut sites = samples.map_or_else(HashMap::new, |samples| {
        samples.by_key(|node| end(node).filter(|_| is_selected(node)))
    });
    let (estimated, mut all_sites) = samples
        .and_then(|samples| {
            let mut all = samples.by_key(|node| is_selected(node).then_some(()));
            all.remove(&())
        })
        .unwrap_or_default();
    let hidden_sites = all_sites.len().saturating_sub(options.rows);
    all_sites.truncate(options.rows);
    let mut ends: Vec<_> = sums.into_iter().collect();
    ends.sort_unstable_by_key(|(id, _)| *id);
    let (hidden_rows, hidden) = largest(&mut ends, options.rows, |(_, (amount, ..))| *amount);
    let mut rows: Vec<WhyRow> = ends
        .into_iter()
        .map(|(id, (selected, example, is_cut))| {
            let (bytes, sites) = sites.remove(&id).unzip();
            WhyRow {
                path: Step::path(heap, tree, id),
                is_cut,
                selected,
                estimated: bytes.filter(|_| by_samples),
                sites: sites.unwrap_or_default(),
                example: (example < heap.graph().blocks())
                    .then(|| format!("{:#x}", heap.graph().address(example).wrapping_mul(8))),
            }
        })
        .collect();
    if by_samples {
        let value = |row: &WhyRow| row.estimated.map_or(0.0, |bytes| bytes.value);
        rows.sort_by(|row, other| value(other).total_cmp(&value(row)));
    }
    Ok(Why {
        subject: Subject::new(heap),
        selected,
        estimated: by_samples.then_some(estimated),
        rows,
        hidden_rows,
        hidden,
        sites: all_sites,
        hidden_sites,
    })
}

/// The nodes at the beginning of a path that are not shown.
fn obvious(heap: &Heap, tree: &crate::AggregateTree, id: AggregateId) -> u32 {
    let shown = u32::try_from(tree.path(heap, id).len()).unwrap_or(u32::MAX);
    tree.depth(id).saturating_sub(shown)
}

/// The selected nodes.
fn selection<'a>(
    heap: &'a Heap,
    options: &WhyOptions,
    samples: Option<&Samples>,
) -> Result<impl Fn(NodeId) -> bool + 'a, HeapError> {
    let graph = heap.graph();
    let address = match options.address {
        Some(Address(address)) => Some(graph.find(address / 8).ok_or(HeapError::NoBlock(address))?),
        None => None,
    };
    // Names are matched once per class.
    let mut matching: HashMap<u32, bool> = HashMap::new();
    let mut by_class = |pattern: &Pattern| -> Result<Vec<bool>, HeapError> {
        matching.clear();
        let mut is_found = false;
        let found = (0..graph.nodes())
            .map(|node| {
                let class = heap.class_id(node);
                let matches = matching.entry(class).or_insert_with(|| {
                    let class = heap.class_by_id(class);
                    let name = match class.kind {
                        Kind::Module | Kind::Closure | Kind::Custom => {
                            class.name.split_once(' ').map(|(_, name)| name)
                        }
                        _ => None,
                    };
                    pattern.matches(&class.name) || name.is_some_and(|name| pattern.matches(name))
                });
                is_found |= *matches;
                *matches
            })
            .collect();
        if is_found {
            return Ok(found);
        }
        Err(HeapError::NotFound {
            name: pattern.text().trim_matches('"').to_owned(),
            place: String::new(),
        })
    };
    let of_kind = options.kind.as_ref().map(&mut by_class).transpose()?;
    let holders = options.held_by.as_ref().map(&mut by_class).transpose()?;
    let held = holders.map(|holders| heap.dominated(|node| holders[node as usize]));
    let passed = options.through.as_ref().map(&mut by_class).transpose()?;
    let through = passed.map(|passed| heap.reached_through(|node| passed[node as usize]));
    let by_trace = samples.map(|samples| {
        let mut selected = vec![false; graph.nodes() as usize];
        for node in samples.nodes() {
            selected[node as usize] = true;
        }
        selected
    });
    let is_in =
        |set: &Option<Vec<bool>>, node: NodeId| set.as_ref().is_none_or(|set| set[node as usize]);
    Ok(move |node| {
        address.is_none_or(|address| node == address)
            && is_in(&of_kind, node)
            && is_in(&held, node)
            && is_in(&through, node)
            && is_in(&by_trace, node)
            // Without memory of its own, there is nothing to explain.
            && heap.own(node) != Amount::default()
    })
}
