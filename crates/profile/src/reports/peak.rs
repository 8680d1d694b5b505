//! The peak of live memory, and what it would be without some of the blocks.

use clap::Args;
use serde::Serialize;

use super::{Figures, Subject, largest};
use crate::amount::{Amount, Overshoot};
use crate::estimate::Estimate;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::{self, Look};
use crate::overshoot::overshoot;
use crate::peaks::{MOST_GROUPS, Peaks};
use crate::query::{Query, QueryError, TimeError, Window};
use crate::scope::Scope;
use crate::selection::Stay;
use crate::store::Moment;

/// The largest number of rows: each takes a pass over all events.
const MAX_PEAK_ROWS: u64 = MOST_GROUPS as u64;

/// The groupings of rows: all in which a block is in the same group as others of its class.
const GROUPINGS: [GroupBy; 8] = [
    GroupBy::Site,
    GroupBy::Address,
    GroupBy::Function,
    GroupBy::File,
    GroupBy::Module,
    GroupBy::Crate,
    GroupBy::Domain,
    GroupBy::Size,
];

/// Options of [`peak`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PeakOptions {
    /// Remove matching blocks, and show the peak of the others: 'site = "Cache.add"'
    ///
    /// Repeated queries are combined with "or".
    #[arg(long, value_name = "QUERY", value_parser = removed)]
    pub without: Vec<Query>,

    /// Show the peak of a time window: 0s..10s, ..peak, 50%.. [default: the whole run]
    #[arg(long, value_name = "FROM..TO", help_heading = "Select")]
    pub window: Option<Window>,

    /// Group by
    #[arg(long, default_value = "function", value_parser = options::one_of(&GROUPINGS))]
    pub by: GroupBy,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 10, value_name = "N",
          value_parser = options::number(0, MAX_PEAK_ROWS))]
    pub rows: usize,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for PeakOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// Parses a query that does not select everything.
fn removed(text: &str) -> Result<Query, QueryError> {
    let query = Query::parse(text)?;
    if query.is_all() {
        let expected = "a condition, such as site = \"Cache.add\"";
        return Err(QueryError::new(0..text.len(), "this removes everything", expected).of(text));
    }
    Ok(query)
}

/// The peak of live memory, and what it would be without some of the blocks.
///
/// Lifetimes are known, so the curve of live memory without some blocks is known as well: its
/// maximum is the peak without them, if nothing else in the program changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PeakReport {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The grouping of the rows.
    pub by: GroupBy,
    /// Seconds from the start of the run to that of the window.
    pub from: f64,
    /// Seconds from the start of the run to the end of the window.
    pub to: f64,
    /// The peak.
    pub peak: PeakPoint,
    /// The peak without the blocks of `--without`; null if nothing is removed.
    pub without: Option<Removal>,
    /// The groups with most memory live at the peak of the blocks that are left.
    pub rows: Vec<PeakRow>,
    /// Groups that are not shown.
    pub hidden_rows: usize,
}

/// A time with most live memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PeakPoint {
    /// Seconds from the start.
    pub time: f64,
    /// Memory live then.
    pub live: Figures,
}

impl PeakPoint {
    fn new(scope: &Scope<'_>, at: Moment, amount: &Amount) -> Self {
        Self {
            time: scope.profile().seconds(at),
            live: Figures::of_total(scope, amount),
        }
    }
}

/// The peak that is left when blocks are removed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PeakWithout {
    /// The peak of the others.
    pub peak: PeakPoint,
    /// Bytes by which the peak is lower.
    pub saved: Estimate,
    /// The same in percent of the peak; 0 if there is no memory.
    pub saved_percent: f64,
}

/// Blocks that are removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Removal {
    /// The queries that select them.
    pub queries: Vec<String>,
    /// Their memory that is live at the peak.
    pub held: Figures,
    /// The peak without them.
    #[serde(flatten)]
    pub rest: PeakWithout,
}

/// A group with memory that is live at the peak.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PeakRow {
    /// Its name.
    pub label: Label,
    /// Its memory that is live at the peak.
    pub live: Figures,
    /// The same in percent of all.
    pub percent: f64,
    /// The peak without this group.
    pub without: PeakWithout,
}

/// The peak of the blocks in scope.
pub fn peak(scope: &Scope<'_>, options: &PeakOptions) -> Result<PeakReport, TimeError> {
    let look = options.look.of_list(options.by);
    let groups = Groups::shared(scope.profile(), &look.view(options.by));
    peak_with_rows(scope, options, &groups, |_, _| true)
}

/// The peak of the blocks in scope, with those groups that a function chooses by their name and their percentage. The peak
/// without a group takes longer to find than all else.
pub(super) fn peak_with_rows(
    scope: &Scope<'_>,
    options: &PeakOptions,
    groups: &Groups,
    is_chosen: impl Fn(&Label, f64) -> bool,
) -> Result<PeakReport, TimeError> {
    let profile = scope.profile();
    let (range, (from, to)) = match &options.window {
        Some(window) => (
            window.moments(profile, scope.estimator())?,
            window.seconds(profile, scope.estimator()),
        ),
        None => ((Moment(0), profile.end()), (0.0, profile.duration())),
    };
    let peaks = Peaks::new(scope, range);
    let is_whole = options.window.is_none() && scope.selection().is_all(profile);
    let now = if is_whole {
        let peak = profile.peak(scope.estimator()).moment;
        Live::new(scope, peak, profile.overshoot(scope.estimator()))
    } else {
        Live::at_peak(scope, &peaks)
    };
    let (without, (rows, hidden_rows)) = if options.without.is_empty() {
        let rows = rows(scope, &now, &peaks, options.rows, groups, is_chosen);
        (None, rows)
    } else {
        let rest = options
            .without
            .iter()
            .fold(scope.clone(), |rest, query| rest.without(query));
        let peaks = Peaks::new(&rest, range);
        let left = Live::at_peak(&rest, &peaks);
        let [still_held] = amounts(&rest, |stay| [stay.is_live_at(now.at)]);
        let removal = Removal {
            queries: options
                .without
                .iter()
                .map(|query| query.text().to_owned())
                .collect(),
            held: Figures::of_total(scope, &(now.amount - still_held).chosen(now.overshoot)),
            rest: now.without(&rest, left.at, left.overshoot, |_| true),
        };
        let rows = rows(&rest, &left, &peaks, options.rows, groups, is_chosen);
        (Some(removal), rows)
    };
    Ok(PeakReport {
        subject: Subject::with_look(scope, &options.look.of_list(options.by)),
        by: options.by,
        from,
        to,
        peak: now.point(scope),
        without,
        rows,
        hidden_rows,
    })
}

/// The groups with most live memory at the peak of a scope, and the number of others.
fn rows(
    scope: &Scope<'_>,
    now: &Live,
    peaks: &Peaks<'_>,
    limit: usize,
    groups: &Groups,
    is_chosen: impl Fn(&Label, f64) -> bool,
) -> (Vec<PeakRow>, usize) {
    let profile = scope.profile();
    let sums: Vec<Amount> = groups
        .add_up(scope, &now.counts)
        .into_iter()
        .map(|[sum]| sum)
        .collect();
    let keys: Vec<f64> = sums.iter().map(|sum| sum.bytes.value).collect();
    let order = largest(&keys, usize::MAX);
    let shown: Vec<usize> = order
        .iter()
        .copied()
        .filter(|&group| {
            let share = percent(keys[group], now.amount.bytes.value);
            is_chosen(&groups.labels[group], share)
        })
        .take(limit)
        .collect();
    // The viewer asks for peaks without rows, which must be fast.
    if shown.is_empty() {
        return (Vec::new(), order.len());
    }
    let row_of = groups.rows(&shown);
    let row_of = |stay: Stay| row_of.of(profile, stay);
    let without = peaks.without_each(shown.len(), row_of);
    let rows = (0..)
        .zip(&shown)
        .zip(without)
        .map(|((row, &group), moment)| PeakRow {
            label: groups.labels[group].clone(),
            live: Figures::new(&sums[group].chosen(now.overshoot)),
            percent: percent(keys[group], now.amount.bytes.value),
            without: now.without(scope, moment, now.overshoot, |stay| row_of(stay) != row),
        });
    (rows.collect(), order.len() - shown.len())
}

/// The memory that is live at some moment.
struct Live {
    at: Moment,
    amount: Amount,
    /// How far that is too high, because it is that of a peak.
    overshoot: Overshoot,
    /// Blocks by class.
    counts: Vec<[u32; 1]>,
}

impl Live {
    fn new(scope: &Scope<'_>, at: Moment, overshoot: Overshoot) -> Self {
        let counts = scope.counts_of(|stay| [stay.is_live_at(at)]);
        let [amount] = sums(scope, &counts);
        Self {
            at,
            amount: amount.chosen(overshoot),
            overshoot,
            counts,
        }
    }

    fn at_peak(scope: &Scope<'_>, peaks: &Peaks<'_>) -> Self {
        let peak = peaks.of_all();
        Self::new(scope, peak, overshoot(scope, peaks, peak))
    }

    fn point(&self, scope: &Scope<'_>) -> PeakPoint {
        PeakPoint::new(scope, self.at, &self.amount)
    }

    /// The difference to the blocks of a scope that are kept, whose peak is at another moment. What
    /// is live at both moments cancels out.
    fn without(
        &self,
        scope: &Scope<'_>,
        at: Moment,
        overshoot: Overshoot,
        is_kept: impl Fn(Stay) -> bool + Sync,
    ) -> PeakWithout {
        let [amount, both] = amounts(scope, |stay| {
            let is_live = stay.is_live_at(at) && is_kept(stay);
            [is_live, is_live && stay.is_live_at(self.at)]
        });
        let amount = amount.chosen(overshoot);
        let saved = self.amount.bytes.change(amount.bytes, both.bytes);
        PeakWithout {
            peak: PeakPoint::new(scope, at, &amount),
            saved: saved.estimate_of_change(),
            saved_percent: percent(saved.value, self.amount.bytes.value),
        }
    }
}

/// The amounts of the blocks with each of some properties.
fn amounts<const N: usize>(
    scope: &Scope<'_>,
    marks: impl Fn(Stay) -> [bool; N] + Sync,
) -> [Amount; N] {
    sums(scope, &scope.counts_of(marks))
}

/// The amounts of blocks, given their number by class.
fn sums<const N: usize>(scope: &Scope<'_>, counts: &[[u32; N]]) -> [Amount; N] {
    let mut sums = [Amount::default(); N];
    for (class, counts) in scope.profile().classes().iter().zip(counts) {
        for (sum, &n) in sums.iter_mut().zip(counts) {
            if n > 0 {
                *sum += scope.weights()[class.kind].times(n.into());
            }
        }
    }
    sums
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}
