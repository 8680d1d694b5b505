//! Sizes and lifetimes.

mod lifetimes;
mod parts;

use clap::Args;
use serde::Serialize;

pub use self::lifetimes::LifetimeStats;
pub use self::parts::Segment;
use super::{Figures, Quantiles, Subject};
use crate::amount::Amount;
use crate::options;
use crate::scope::Scope;

/// Blocks of more words than this go directly to the major heap.
const LARGE: u64 = 256;

/// Options of [`stats`].
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StatsOptions {
    /// Set the number of bins of the linear histogram of lifetimes
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = options::number(1, 10_000))]
    pub bins: usize,

    /// Divide the run into N equal intervals
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = options::number(1, 10_000))]
    pub segments: usize,

    /// Show histograms with bins of equal width
    #[arg(long)]
    pub linear: bool,
}

impl Default for StatsOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// Sizes and lifetimes of blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Stats {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// True if the linear histograms were requested; the report has both kinds.
    pub linear: bool,
    /// All blocks.
    pub total: Figures,
    /// Sizes of blocks.
    pub sizes: SizeStats,
    /// Lifetimes of blocks.
    pub lifetimes: LifetimeStats,
    /// The run in equal parts of time.
    pub segments: Vec<Segment>,
    /// The run in parts that differ: where the rate of allocation changes.
    pub phases: Vec<Segment>,
}

/// Sizes of blocks, in words without the header, each estimated block counted once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SizeStats {
    /// The mean; null if there are no blocks.
    pub mean: Option<f64>,
    /// The variance; null if there are no blocks.
    pub variance: Option<f64>,
    /// The standard deviation; null if there are no blocks.
    pub sd: Option<f64>,
    /// The spread.
    pub quantiles: Quantiles,
    /// The size of the largest sampled block.
    pub max: u64,
    /// Blocks of more words are large.
    pub large_limit: u64,
    /// Large blocks in percent of all blocks; null if there are none.
    pub large_blocks_percent: Option<f64>,
    /// Bytes of large blocks in percent of all bytes; null if there are none.
    pub large_bytes_percent: Option<f64>,
    /// One bar for each size below 32 words.
    pub linear: Vec<Bin>,
    /// A bar for each power of two.
    pub log: Vec<Bin>,
}

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Bin {
    /// The least value in it.
    pub low: f64,
    /// The least value above it.
    pub high: f64,
    /// Estimated blocks.
    pub blocks: f64,
    /// Estimated bytes.
    pub bytes: f64,
    /// Sampled blocks.
    pub sampled: u64,
}

/// The statistics of the blocks in scope.
#[must_use]
pub fn stats(scope: &Scope<'_>, options: &StatsOptions) -> Stats {
    let counts = scope.counts_by_kind();
    let (lifetimes, (segments, phases)) = rayon::join(
        || lifetimes::lifetimes(scope, options.bins.clamp(1, 10_000)),
        || parts::parts_of_run(scope, options.segments.clamp(1, 10_000)),
    );
    Stats {
        subject: Subject::new(scope),
        linear: options.linear,
        total: Figures::of_total(scope, &scope.sum(&counts)),
        sizes: sizes(scope, &counts),
        lifetimes,
        segments,
        phases,
    }
}

fn sizes(scope: &Scope<'_>, counts: &[u64]) -> SizeStats {
    let profile = scope.profile();
    let mut by_length: Vec<(u64, Amount)> = profile
        .kinds()
        .iter()
        .zip(scope.weights())
        .zip(counts)
        .filter(|(_, n)| **n > 0)
        .map(|((kind, weight), &n)| (profile.words(kind), weight.times(n)))
        .collect();
    by_length.sort_by_key(|(length, _)| *length);
    let mut moments = Moments::default();
    for &(length, amount) in &by_length {
        moments.add(length, amount);
    }
    let max = by_length.last().map_or(0, |(length, _)| *length);
    let quantile = |share: f64| {
        let mut below = 0.0;
        by_length
            .iter()
            .find(|(_, amount)| {
                below += amount.blocks.value;
                below >= share * moments.blocks * (1.0 - 1e-12)
            })
            .map(|(length, _)| *length as f64)
    };
    let mut linear: Vec<Bin> = (0..32).map(|low| Bin::from_to(low, low + 1)).collect();
    let mut log: Vec<Bin> = std::iter::once(Bin::from_to(0, 1))
        .chain((0..=max.max(1).ilog2()).map(|power| Bin::from_to(1 << power, 2 << power)))
        .collect();
    for (length, amount) in &by_length {
        if let Some(bin) = usize::try_from(*length)
            .ok()
            .and_then(|n| linear.get_mut(n))
        {
            bin.add(amount);
        }
        let power = length.checked_ilog2().map_or(0, |power| power as usize + 1);
        log[power].add(amount);
    }
    SizeStats {
        mean: moments.mean(),
        variance: moments.variance(),
        sd: moments.variance().map(f64::sqrt),
        quantiles: Quantiles {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
        },
        max,
        large_limit: LARGE,
        large_blocks_percent: moments.percent(moments.large),
        large_bytes_percent: (moments.bytes > 0.0)
            .then(|| 100.0 * moments.large_bytes / moments.bytes),
        linear,
        log,
    }
}

/// Weighted moments of sizes.
#[derive(Clone, Copy, Default)]
struct Moments {
    blocks: f64,
    bytes: f64,
    words: f64,
    squares: f64,
    large: f64,
    large_bytes: f64,
}

impl Moments {
    fn add(&mut self, length: u64, amount: Amount) {
        let (blocks, length_f) = (amount.blocks.value, length as f64);
        self.blocks += blocks;
        self.bytes += amount.bytes.value;
        self.words += blocks * length_f;
        self.squares += blocks * length_f * length_f;
        if length > LARGE {
            self.large += blocks;
            self.large_bytes += amount.bytes.value;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.words += other.words;
        self.squares += other.squares;
        self.large += other.large;
        self.large_bytes += other.large_bytes;
    }

    fn mean(&self) -> Option<f64> {
        (self.blocks > 0.0).then(|| self.words / self.blocks)
    }

    fn variance(&self) -> Option<f64> {
        let mean = self.mean()?;
        Some((self.squares / self.blocks - mean * mean).max(0.0))
    }

    fn percent(&self, part: f64) -> Option<f64> {
        (self.blocks > 0.0).then(|| 100.0 * part / self.blocks)
    }
}

impl Bin {
    fn from_to(low: u64, high: u64) -> Self {
        Self {
            low: low as f64,
            high: high as f64,
            ..Self::default()
        }
    }

    fn add(&mut self, amount: &Amount) {
        self.blocks += amount.blocks.value;
        self.bytes += amount.bytes.value;
        self.sampled += amount.sampled;
    }
}
