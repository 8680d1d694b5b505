//! Single sampled blocks.

use std::cmp::Reverse;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{Figures, Subject};
use crate::estimate::Estimate;
use crate::groups::Label;
use crate::options::{self, MAX_ROWS};
use crate::query::Pattern;
use crate::scope::{SampledBlock, Scope};

/// The sort order of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum BlockSort {
    /// Largest first.
    #[default]
    Size,
    /// Those that represent most bytes first.
    Weight,
    /// Longest lifetime first.
    Age,
    /// Earliest allocation first.
    Birth,
}

/// Options of [`blocks`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BlocksOptions {
    /// Sort blocks by
    #[arg(long, value_enum, default_value_t)]
    pub sort: BlockSort,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 10, value_name = "N",
          value_parser = options::number(0, MAX_ROWS))]
    pub rows: usize,

    /// Hide matching functions in stacks
    ///
    /// A pattern is a name with * and ?, or /REGEX/.
    #[arg(long, value_name = "PATTERN")]
    pub hide: Vec<Pattern>,
}

impl Default for BlocksOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// Single sampled blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Blocks {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The order of the rows.
    pub sort: BlockSort,
    /// All selected blocks together.
    pub total: Figures,
    /// The first blocks in that order.
    pub rows: Vec<BlockRow>,
    /// Sampled blocks that are not shown.
    pub hidden_rows: usize,
}

/// A sampled block.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BlockRow {
    /// The number of sampled allocations before it in the trace.
    pub number: usize,
    /// Bytes, without the header.
    pub size: u64,
    /// The bytes that it represents, headers included.
    pub bytes: Estimate,
    /// The number of blocks that it represents.
    pub blocks: Estimate,
    /// The number of times that it was sampled.
    pub samples: u64,
    /// Sampled blocks that a recording of limited size has merged into it: 1 for a single block.
    pub sampled_blocks: u64,
    /// The heap on which it was allocated.
    pub heap: &'static str,
    /// The domain or thread that allocated it.
    pub domain: u16,
    /// Seconds from the start to its allocation.
    pub allocated: f64,
    /// Seconds from the start to its promotion; null if it was not promoted.
    pub promoted: Option<f64>,
    /// Seconds from the start to its death; null if it is live at the end.
    pub collected: Option<f64>,
    /// Seconds that the selected part of its life lasted, up to the end of the trace.
    pub lifetime: f64,
    /// True if that part lasts longer than the trace.
    pub is_live: bool,
    /// The functions of its stack and their places in the source, innermost first.
    pub stack: Vec<Label>,
}

/// The first blocks in scope by the order of the options.
#[must_use]
pub fn blocks(scope: &Scope<'_>, options: &BlocksOptions) -> Blocks {
    let scope = scope.clone().hiding(&options.hide);
    let end = scope.profile().micros(scope.profile().end());
    let mut first = First::new(options.rows);
    scope.for_each_block(|block| first.add(key(block, options.sort, end), block));
    let rows = first.finish();
    let selected = scope.selection().len();
    Blocks {
        subject: Subject::new(&scope),
        sort: options.sort,
        total: Figures::of_total(&scope, &scope.total()),
        hidden_rows: selected - rows.len(),
        rows: rows.iter().map(|block| row(&scope, block, end)).collect(),
    }
}

/// The end of the selected part of a block's life, in microseconds.
fn until(block: &SampledBlock, end: u64) -> u64 {
    block.until.unwrap_or(end)
}

/// A number that is larger for blocks that come first.
fn key(block: &SampledBlock, sort: BlockSort, end: u64) -> u64 {
    match sort {
        BlockSort::Size => block.size,
        // The bits of floats that are not negative are ordered as the floats are.
        BlockSort::Weight => block.amount.bytes.value.max(0.0).to_bits(),
        BlockSort::Age => until(block, end).saturating_sub(block.from),
        BlockSort::Birth => u64::MAX - block.allocated,
    }
}

fn row(scope: &Scope<'_>, block: &SampledBlock, end: u64) -> BlockRow {
    let seconds = |micros: u64| micros as f64 / 1e6;
    let stack = scope.stack(block.stack);
    BlockRow {
        number: block.number,
        size: block.size,
        bytes: block.amount.bytes.estimate(),
        blocks: block.amount.estimated_blocks(),
        samples: block.samples,
        sampled_blocks: block.amount.sampled,
        heap: block.space.name(),
        domain: block.lane,
        allocated: seconds(block.allocated),
        promoted: block.promoted.map(seconds),
        collected: block.collected.map(seconds),
        lifetime: seconds(until(block, end).saturating_sub(block.from)),
        is_live: block.until.is_none(),
        stack: stack
            .into_iter()
            .map(|frame| Label::of_frame(scope.profile(), frame))
            .collect(),
    }
}

/// Keeps the blocks with the largest keys, in memory for twice as many.
struct First {
    n: usize,
    found: Vec<(u64, SampledBlock)>,
    /// The key and number of the last one, once there are enough: those after it need not be looked at.
    last: Option<(u64, Reverse<usize>)>,
}

impl First {
    fn new(n: usize) -> Self {
        Self {
            n,
            found: Vec::new(),
            last: None,
        }
    }

    fn add(&mut self, key: u64, block: &SampledBlock) {
        if self
            .last
            .is_some_and(|last| (key, Reverse(block.number)) < last)
        {
            return;
        }
        self.found.push((key, *block));
        if self.found.len() > 2 * self.n {
            self.shrink();
        }
    }

    /// Sorts by descending keys, equal ones in the order of the trace, and drops all but the first.
    fn shrink(&mut self) {
        self.found
            .sort_by_key(|(key, block)| (Reverse(*key), block.number));
        if let Some((key, block)) = self.n.checked_sub(1).and_then(|last| self.found.get(last)) {
            self.last = Some((*key, Reverse(block.number)));
        }
        self.found.truncate(self.n);
    }

    fn finish(mut self) -> Vec<SampledBlock> {
        self.shrink();
        self.found.into_iter().map(|(_, block)| block).collect()
    }
}
