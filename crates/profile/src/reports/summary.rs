//! The summary: totals, the peak, and ranked lists.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::findings::{self, Findings, TraceFinding};
use super::gc::{CountedMemory, GcFacts};
use super::{Figures, SHORT, Subject, largest};
use crate::amount::Amount;
use crate::estimate::Estimate;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::{self, Look, MAX_ROWS};
use crate::scope::Scope;
use crate::selection::Stay;
use crate::short_lives::ShortLives;

/// Options of [`summary`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SummaryOptions {
    /// Group by
    #[arg(long, value_enum, default_value_t = GroupBy::Site)]
    pub by: GroupBy,

    /// Limit the number of rows of each list
    #[arg(long, short = 'n', alias = "top", default_value_t = 5, value_name = "N", value_parser = options::number(0, MAX_ROWS))]
    pub rows: usize,

    /// Limit the number of findings
    #[arg(long, default_value_t = findings::MOST, value_name = "N",
          value_parser = options::number(0, findings::MOST as u64))]
    pub findings: usize,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// Totals, the peak, and the five lists that matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Summary {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The grouping of the lists.
    pub by: GroupBy,
    /// Everything that was allocated.
    pub allocated: Figures,
    /// Memory promoted from the minor to the major heap.
    pub promoted: Figures,
    /// Memory collected.
    pub collected: Figures,
    /// Memory live at the end.
    pub live_at_end: Figures,
    /// Memory live at the peak.
    pub live_at_peak: Figures,
    /// Seconds from the start to the peak of the whole program.
    pub peak_time: f64,
    /// Bytes allocated per second; null if no time has passed.
    pub allocation_rate: Option<Estimate>,
    /// Bytes promoted per second; null if no time has passed.
    pub promotion_rate: Option<Estimate>,
    /// What was allocated and promoted as OCaml's runtime counted it, exactly; absent if the trace does not tell it, or the summary is
    /// about some of the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub counted: Option<CountedMemory>,
    /// The facts that deserve a sentence, the most important first.
    pub findings: Vec<TraceFinding>,
    /// Seconds that a block lives less than to be called short-lived: 1 % of the run.
    pub short: f64,
    /// The lists: alive at the peak, alive at the end, most allocated, most blocks, most
    /// short-lived.
    pub lists: Vec<Ranking>,
}

/// A ranked list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Ranking {
    /// The measure it is ranked by.
    pub kind: RankingKind,
    /// All groups together.
    pub total: Figures,
    /// The largest groups.
    pub rows: Vec<Ranked>,
    /// Groups that are not shown.
    pub hidden_rows: usize,
}

/// The measure that a list is ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum RankingKind {
    /// Bytes alive at the peak.
    LiveAtPeak,
    /// Bytes alive at the end.
    LiveAtEnd,
    /// Bytes allocated.
    Allocated,
    /// Blocks allocated.
    Blocks,
    /// Bytes of blocks that soon died.
    ShortLived,
}

/// A row of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Ranked {
    /// Its name.
    pub label: Label,
    /// Its amount.
    pub figures: Figures,
    /// In percent of all groups.
    pub percent: f64,
}

/// The summary of the blocks in scope.
#[must_use]
pub fn summary(scope: &Scope<'_>, options: &SummaryOptions) -> Summary {
    let profile = scope.profile();
    let rows = options.rows;
    let look = options.look.of_list(options.by);
    let groups = Groups::shared(profile, &look.view(options.by));
    let peak = profile.peak(scope.estimator());
    let duration = profile.duration();
    let short = duration * SHORT;
    let soon_dead = micros_below(short).map(|most| ShortLives::new(profile, most));

    let is_short = |stay: Stay| {
        soon_dead
            .as_ref()
            .is_some_and(|lives| stay.is_collected() && lives.has(stay, stay.start, stay.end))
    };
    let findings = Findings::new(scope, options);
    let (sums, findings) = match &findings {
        // One pass over all blocks for both.
        Some(findings) if groups.are_of_classes() => {
            let counts = scope.counts_of(|stay| {
                let mut marks = [false; SHORT_LIVED + 1];
                marks[..findings::MARKS].copy_from_slice(&findings.marks(stay));
                marks[AT_END] = !stay.ends();
                marks[SHORT_LIVED] = is_short(stay);
                marks
            });
            let columns = [
                findings::ALL,
                findings::LIVE,
                AT_END,
                SHORT_LIVED,
                findings::PROMOTED,
            ];
            let sums = groups.add_up_columns(scope, &counts, columns);
            (sums, findings.find(&counts))
        }
        _ => {
            let find = |findings: &Findings<'_>| {
                findings.find(&scope.counts_of(|stay| findings.marks(stay)))
            };
            let sums = groups.sums_of(scope, |stay| {
                [
                    true,
                    stay.is_live_at(peak.moment),
                    !stay.ends(),
                    is_short(stay),
                    stay.is_promoted(),
                ]
            });
            (sums, findings.as_ref().map(find).unwrap_or_default())
        }
    };
    let column = |i: usize| -> Vec<Amount> { sums.iter().map(|sums| sums[i]).collect() };
    let [allocated, mut at_peak, mut at_end, short_lived, promoted] = std::array::from_fn(column);
    for amount in &mut at_peak {
        *amount = scope.as_peak(*amount);
    }
    if scope.is_live_untold() {
        at_peak = vec![Amount::UNTOLD];
        at_end = vec![Amount::UNTOLD];
    }
    let total = |sums: &[Amount]| -> Amount { sums.iter().copied().sum() };
    let figures = |amount: &Amount| Figures::of_total(scope, amount);
    let collected = figures(&scope.freed(total(&allocated), total(&at_end)));
    let lists = [
        (RankingKind::LiveAtPeak, &at_peak),
        (RankingKind::LiveAtEnd, &at_end),
        (RankingKind::Allocated, &allocated),
        (RankingKind::Blocks, &allocated),
        (RankingKind::ShortLived, &short_lived),
    ]
    .into_iter()
    // Lists of what is not known are empty.
    .map(|(kind, sums)| {
        let sums = match &sums[..] {
            [only] if only.bytes.value.is_nan() => &[],
            sums => sums,
        };
        ranking(kind, &groups.labels, sums, figures(&total(sums)), rows)
    })
    .collect();
    let [allocated, at_peak, at_end, promoted] =
        [allocated, at_peak, at_end, promoted].map(|sums| figures(&total(&sums)));
    let rate = |estimate: Estimate| (duration > 0.0).then(|| estimate.per(duration));
    Summary {
        subject: Subject::with_look(scope, &look),
        by: options.by,
        allocated,
        promoted,
        collected,
        live_at_end: at_end,
        live_at_peak: at_peak,
        peak_time: peak.time,
        allocation_rate: rate(allocated.bytes),
        promotion_rate: rate(promoted.bytes),
        counted: GcFacts::of(profile).and_then(|facts| facts.counted(scope)),
        findings,
        short,
        lists,
    }
}

/// The place of the blocks that are live at the end, behind the marks of findings.
const AT_END: usize = findings::MARKS;

/// The place of those that soon died.
const SHORT_LIVED: usize = AT_END + 1;

/// The most microseconds that are less than some seconds, if any are.
fn micros_below(seconds: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and a cast saturates"
    )]
    let micros = (seconds * 1e6).ceil() as u64;
    // The product is rounded.
    let near = micros.saturating_sub(1)..=micros.saturating_add(1);
    near.rev().find(|&micros| (micros as f64) / 1e6 < seconds)
}

/// The largest groups.
pub(super) fn ranking(
    kind: RankingKind,
    labels: &[Label],
    sums: &[Amount],
    total: Figures,
    rows: usize,
) -> Ranking {
    let key = |amount: &Amount| match kind {
        RankingKind::Blocks => amount.blocks.value,
        _ => amount.bytes.value,
    };
    let keys: Vec<f64> = sums.iter().map(key).collect();
    let all: Amount = sums.iter().copied().sum();
    let order = largest(&keys, usize::MAX);
    Ranking {
        kind,
        total,
        rows: order
            .iter()
            .take(rows)
            .map(|&group| Ranked {
                label: labels[group].clone(),
                figures: Figures::new(&sums[group]),
                percent: 100.0 * keys[group] / key(&all),
            })
            .collect(),
        hidden_rows: order.len().saturating_sub(rows),
    }
}
