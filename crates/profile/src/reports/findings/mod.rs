//! Findings: the few facts about a trace that deserve a sentence.
//!
//! A sentence each on the peak, on growth and on garbage of the whole program come first. Then come those on code.
//! Each of their rules looks at a report, and finds a part of a whole. It is worth a sentence if the lower end
//! of its interval is a large enough share of the whole, so that nothing within the sampling error is
//! ever found.

mod facts;
mod overall;
mod rules;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::reports::summary::SummaryOptions;
use crate::scope::Scope;
use crate::selection::Stay;
use facts::{Facts, Preparation};

pub(super) use facts::{ALL, LIVE, MARKS, PROMOTED};

/// The largest number of findings.
pub(super) const MOST: usize = 12;

/// A fact that deserves a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TraceFinding {
    /// The rule that found it.
    pub kind: TraceFindingKind,
    /// The sentence.
    pub sentence: Vec<Phrase>,
    /// The report that shows it.
    pub report: Cow<'static, str>,
    /// The parameters of that report, by name.
    pub parameters: Vec<(Cow<'static, str>, String)>,
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum TraceFindingKind {
    /// The trace is damaged, so that figures are too low.
    Damage,
    /// What is live at the peak, and the functions with most of it.
    Peak,
    /// Whether old memory grows.
    TotalGrowth,
    /// What is freed soon after its allocation.
    TotalGarbage,
    /// The garbage collector takes much of the time, or stops the program for long.
    Collector,
    /// A function whose old memory grows.
    Growth,
    /// A function that holds a large part of the peak.
    PeakHolder,
    /// A call under which most of the peak was allocated.
    PeakCall,
    /// A single block that is a large part of the peak.
    LargeBlock,
    /// Memory that was promoted and freed soon after.
    PromotedGarbage,
    /// A function that allocates much memory that is freed soon after.
    Garbage,
    /// A size of blocks that most of the peak is in.
    SizeClass,
    /// Too few samples for the size of the program.
    Resolution,
}

/// A part of a sentence. Amounts are formatted where they are shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Phrase {
    /// Words.
    Text(String),
    /// The name of a function.
    Name(String),
    /// An amount of memory.
    Bytes(Estimate),
    /// An amount of memory per second.
    BytesPerSecond(Estimate),
    /// A share in percent.
    Percent(f64),
    /// A time.
    Seconds(f64),
    /// A number of things.
    Count(u64),
    /// A sampling rate.
    Rate(f64),
    /// The end of the recording, in seconds: "at the end", or "now" while the program runs.
    AtEnd(f64),
}

impl From<&str> for Phrase {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The result of a rule: a part of a whole, or all of it if the rule is about the whole program.
struct Found {
    part: Estimate,
    whole: f64,
    sentence: Vec<Phrase>,
    report: &'static str,
    parameters: Vec<(&'static str, String)>,
}

/// A rule and its thresholds.
struct Rule {
    kind: TraceFindingKind,
    /// The smallest share of the whole that is worth a sentence.
    least: f64,
    /// The importance of a share, compared to those of other rules.
    weight: f64,
    find: fn(&Facts<'_>) -> Option<Found>,
}

impl Rule {
    /// The finding and its rank, if it is worth a sentence.
    fn apply(&self, facts: &Facts<'_>) -> Option<(f64, TraceFinding)> {
        let found = (self.find)(facts)?;
        let is_enough = found.whole > 0.0 && found.part.low >= self.least * found.whole;
        is_enough.then(|| {
            let finding = TraceFinding {
                kind: self.kind,
                sentence: found.sentence,
                report: found.report.into(),
                parameters: found
                    .parameters
                    .into_iter()
                    .map(|(name, value)| (name.into(), value))
                    .collect(),
            };
            (self.weight * found.part.value / found.whole, finding)
        })
    }
}

/// The findings about the blocks in scope, which a pass over these is needed for. Memory is attributed to own code.
pub(super) struct Findings<'a> {
    preparation: Preparation<'a>,
    most: usize,
}

impl<'a> Findings<'a> {
    /// Prepares for the pass; `None` if there is nothing to find.
    pub(super) fn new(scope: &'a Scope<'a>, options: &SummaryOptions) -> Option<Self> {
        if options.findings == 0 || scope.is_of_moment() || scope.selection().is_empty() {
            return None;
        }
        Some(Self {
            preparation: Preparation::new(scope, &options.look),
            most: options.findings,
        })
    }

    /// The properties by which blocks are counted.
    #[inline]
    pub(super) fn marks(&self, stay: Stay) -> [bool; MARKS] {
        self.preparation.marks(stay)
    }

    /// The findings, the most important first, given the number of blocks of each class with each of the marks, and of others
    /// behind them.
    pub(super) fn find<const N: usize>(&self, counts: &[[u32; N]]) -> Vec<TraceFinding> {
        let facts = Facts::new(&self.preparation, counts);
        let mut found: Vec<(f64, TraceFinding)> = rules::RULES
            .iter()
            .filter_map(|rule| rule.apply(&facts))
            .collect();
        // Stable: rules that find the same share are in their own order.
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        found.truncate(self.most);
        found.into_iter().map(|(_, finding)| finding).collect()
    }
}
