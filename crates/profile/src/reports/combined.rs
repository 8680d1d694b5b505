//! The summary of several traces, such as those of all programs that a build runs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::summary::{Ranking, RankingKind, SummaryOptions, ranking};
use super::{Figures, Subject};
use crate::amount::Amount;
use crate::groups::{GroupBy, Groups, Label};
use crate::scope::Scope;

/// The totals of several traces, a row for each, and the largest groups of all together.
///
/// Traces are sampled independently, so the variances of their estimates add up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CombinedSummary {
    /// The grouping of the lists.
    pub by: GroupBy,
    /// True if every block of every trace was recorded.
    pub is_exact: bool,
    /// True if all sources tell single blocks and their sizes.
    pub tells_sizes: bool,
    /// True if a source tells promotions.
    pub tells_promotions: bool,
    /// Sampled blocks.
    pub sampled_blocks: usize,
    /// Everything that was allocated.
    pub allocated: Figures,
    /// Memory promoted from the minor to the major heap.
    pub promoted: Figures,
    /// Memory collected.
    pub collected: Figures,
    /// The traces, those with the most bytes allocated first.
    pub traces: Vec<TraceSummary>,
    /// The lists: most allocated; most blocks, if all sources tell how many there were.
    pub lists: Vec<Ranking>,
}

/// One of several traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceSummary {
    /// The file as the user named it.
    pub file: String,
    /// The command line, if the recording has it as its context; otherwise the program.
    pub command: String,
    /// The process.
    pub pid: u64,
    /// The trace and the estimator.
    pub subject: Subject,
    /// Everything that was allocated.
    pub allocated: Figures,
    /// Memory live at the peak.
    pub live_at_peak: Figures,
    /// Seconds from the start to the peak of the whole program.
    pub peak_time: f64,
    /// Memory live at the end.
    pub live_at_end: Figures,
}

/// Adds up traces one by one, so that only one of them must be in memory.
#[derive(Debug)]
pub struct Combiner {
    options: SummaryOptions,
    traces: Vec<TraceSummary>,
    /// In a map with an order: sums must not depend on that of a hash table.
    groups: BTreeMap<Label, Amount>,
    allocated: Amount,
    promoted: Amount,
    collected: Amount,
    /// The figures where nothing was sampled in any trace, of the trace that could miss most.
    none_seen: Figures,
}

impl Combiner {
    /// Nothing yet.
    #[must_use]
    pub fn new(mut options: SummaryOptions) -> Self {
        options.look = options.look.of_list(options.by);
        Self {
            options,
            traces: Vec::new(),
            groups: BTreeMap::new(),
            allocated: Amount::default(),
            promoted: Amount::default(),
            collected: Amount::default(),
            none_seen: Figures::default(),
        }
    }

    /// Adds the blocks in scope of one trace.
    pub fn add(&mut self, file: String, scope: &Scope<'_>) {
        let profile = scope.profile();
        let groups = Groups::shared(profile, &self.options.look.view(self.options.by));
        let peak = profile.peak(scope.estimator());
        let sums = groups.sums_of(scope, |stay| {
            let died = stay.ends();
            [
                true,
                stay.is_live_at(peak.moment),
                !died,
                stay.is_promoted(),
            ]
        });
        let mut totals = [Amount::default(); 4];
        for (label, sums) in groups.labels.iter().zip(&sums) {
            let [allocated, at_peak, at_end, promoted] = *sums;
            let sums = [allocated, scope.as_peak(at_peak), at_end, promoted];
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total += sum;
            }
            if !sums[0].is_empty() {
                *self.groups.entry(label.clone()).or_default() += sums[0];
            }
        }
        let [allocated, mut at_peak, mut at_end, promoted] = totals;
        if scope.is_live_untold() {
            at_peak = Amount::UNTOLD;
            at_end = Amount::UNTOLD;
        }
        self.allocated += allocated;
        self.promoted += promoted;
        self.collected += scope.freed(allocated, at_end);
        let none_seen = Figures::of_total(scope, &Amount::default());
        if none_seen.bytes.high > self.none_seen.bytes.high {
            self.none_seen = none_seen;
        }
        let header = profile.header();
        self.traces.push(TraceSummary {
            file,
            command: header
                .context
                .clone()
                .unwrap_or_else(|| header.program.clone()),
            pid: header.pid,
            subject: Subject::with_look(scope, &self.options.look),
            allocated: Figures::of_total(scope, &allocated),
            live_at_peak: Figures::of_total(scope, &at_peak),
            peak_time: peak.time,
            live_at_end: Figures::of_total(scope, &at_end),
        });
    }

    /// The summary of all traces that were added.
    #[must_use]
    pub fn finish(mut self) -> CombinedSummary {
        let figures = |amount: &Amount| {
            if amount.is_empty() {
                self.none_seen
            } else {
                Figures::new(amount)
            }
        };
        let (labels, sums): (Vec<Label>, Vec<Amount>) = self.groups.into_iter().unzip();
        let allocated = figures(&self.allocated);
        let kinds: &[_] = if allocated.blocks.value.is_nan() {
            &[RankingKind::Allocated]
        } else {
            &[RankingKind::Allocated, RankingKind::Blocks]
        };
        let lists = kinds
            .iter()
            .map(|&kind| ranking(kind, &labels, &sums, allocated, self.options.rows))
            .collect();
        // Stable: traces of the same amount stay in the order that they were given in.
        self.traces.sort_by(|a, b| {
            let bytes = |trace: &TraceSummary| trace.allocated.bytes.value;
            bytes(b).total_cmp(&bytes(a))
        });
        let subjects = || self.traces.iter().map(|trace| &trace.subject);
        CombinedSummary {
            by: self.options.by,
            is_exact: subjects().all(|subject| subject.is_exact),
            tells_sizes: subjects().all(|subject| subject.tells.sizes),
            tells_promotions: subjects().any(|subject| subject.tells.promotions),
            sampled_blocks: subjects().map(|subject| subject.sampled_blocks).sum(),
            allocated,
            promoted: figures(&self.promoted),
            collected: figures(&self.collected),
            lists,
            traces: self.traces,
        }
    }
}
