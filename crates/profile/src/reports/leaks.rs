//! Memory that grows and is never freed.

use std::sync::Arc;

use clap::Args;
use hashbrown::HashMap;
use serde::Serialize;

use super::growth::Curves;
use super::{Figures, Subject, largest};
use crate::amount::Amount;
use crate::estimate::{Estimate, Level, Sum};
use crate::groups::{GroupBy, Groups, Label, View};
use crate::holders::Holders;
use crate::options::{self, Look, MAX_ROWS, Share};
use crate::query::TimePoint;
use crate::scope::Scope;
use crate::selection::Stay;
use crate::store::Moment;
use crate::trend::Trend;

/// Holders of each row that are told.
const HOLDERS: usize = 3;

/// Options of [`leaks`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeakOptions {
    /// Group by
    #[arg(long, value_enum, default_value_t = GroupBy::Site)]
    pub by: GroupBy,

    /// Ignore memory younger than this share of the run, which may still be freed
    #[arg(long, default_value = "10%", value_name = "SHARE", value_parser = tail)]
    pub tail: Share,

    /// Show growth up to this time, as if the run had ended there: peak, 10s, 90%
    #[arg(long, default_value = "end", value_name = "TIME")]
    pub at: TimePoint,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 10, value_name = "N", value_parser = options::number(0, MAX_ROWS))]
    pub rows: usize,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for LeakOptions {
    fn default() -> Self {
        options::defaults()
    }
}

fn tail(text: &str) -> Result<Share, &'static str> {
    match text.parse::<Share>() {
        Ok(share) if share.0 <= 0.5 => Ok(share),
        _ => Err("expected a share from 0% to 50%"),
    }
}

/// Memory that grows and is never freed.
///
/// Memory is *old* at a time if it was allocated more than `min_age` seconds before and is alive
/// then. A leak is a group with more old memory at the end of the run, or at the time `at`, than at
/// half of it, by more than the error of the difference. The more groups there are to choose from, the larger is the
/// error: 95 % of the intervals of rows contain the truth, although only groups that grow are rows.
///
/// Sites and functions are those of the program: memory that the standard library allocates belongs
/// to the function that calls it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Leaks {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The grouping of the rows.
    pub by: GroupBy,
    /// Seconds from the start to the time that the report is about, the end of the run by default.
    pub at: f64,
    /// The share of the run up to then that memory must be older than.
    pub tail: f64,
    /// The minimum age of old memory, in seconds.
    pub min_age: f64,
    /// Old memory at that time.
    pub retained: Figures,
    /// The growth since half of the time.
    pub growth: Estimate,
    /// Groups that grow, those that grow most first.
    pub rows: Vec<Leak>,
    /// Groups that grow and are not shown.
    pub hidden_rows: usize,
    /// Groups that keep old memory but are not known to grow.
    pub steady_groups: usize,
    /// The memory they hold.
    pub steady: Figures,
    /// The heap snapshot of the same run that tells what holds memory, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub snapshot: Option<String>,
}

/// A group that grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Leak {
    /// Its name.
    pub label: Label,
    /// Its old memory at the end.
    pub retained: Figures,
    /// The growth since half-way through the run, in bytes.
    pub growth: Estimate,
    /// Its growth over time, in pieces of a constant rate.
    pub trend: Trend,
    /// Live bytes at equal distances of time, the last one at the time of the report.
    pub live: Vec<f64>,
    /// What holds its old memory, as far as a heap snapshot has it; the largest first.
    pub held_by: Vec<Holder>,
}

/// Something that holds memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Holder {
    /// Its name: a definition, a function on a stack, or another root.
    pub name: String,
    /// The memory that it holds of a row.
    pub bytes: Estimate,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    retained: Amount,
    /// Old at the end, not at half.
    gained: Amount,
    /// Old at half, not at the end.
    lost: Amount,
}

impl Sums {
    fn growth(&self) -> Sum {
        self.gained.bytes.change(self.lost.bytes, Sum::default())
    }

    /// Returns true if what is old at the end was so half-way, as far as samples tell.
    fn is_unchanged(&self) -> bool {
        self.gained.is_empty() && self.lost.is_empty()
    }
}

/// The leaks among the blocks in scope, with what holds them, if that is known.
#[must_use]
pub fn leaks(scope: &Scope<'_>, options: &LeakOptions, holders: Option<&Holders>) -> Leaks {
    let marks = LeakMarks::new(scope, options);
    let groups = leak_groups(scope, options);
    let by_group = groups.sums_of(scope, |stay| marks.of(stay));
    leaks_of_sums(scope, options, holders, &marks, &groups, by_group)
}

/// The groups of a report on leaks.
pub(super) fn leak_groups(scope: &Scope<'_>, options: &LeakOptions) -> Arc<Groups> {
    let look = options.look.of_list(options.by);
    let view = View {
        // Where it is called from is what there is to fix. A function is a whole, whatever it calls.
        name_callers: options.by == GroupBy::Site,
        ..look.view(options.by)
    };
    Groups::shared(scope.profile(), &view)
}

/// Tells which blocks are old, at the end and half-way.
pub(super) struct LeakMarks {
    /// The moment of the report.
    at: Moment,
    /// The time of the report, in microseconds.
    end: u64,
    tail: f64,
    /// Microseconds.
    min_age: u64,
    half: Moment,
    old_at_half: Moment,
    old_at_end: Moment,
}

impl LeakMarks {
    pub(super) fn new(scope: &Scope<'_>, options: &LeakOptions) -> Self {
        let profile = scope.profile();
        let (at, end) = options.at.resolve(profile, scope.estimator());
        let end = end.min(profile.micros(profile.end()));
        let tail = options.tail.0.clamp(0.0, 0.5);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a u64"
        )]
        let min_age = (end as f64 * tail).round() as u64;
        Self {
            at,
            end,
            tail,
            min_age,
            half: profile.after(end / 2),
            old_at_half: profile.after((end / 2).saturating_sub(min_age)),
            old_at_end: profile.after(end.saturating_sub(min_age)),
        }
    }

    /// Returns true if a block is old at the end.
    #[inline]
    fn is_old(&self, stay: Stay) -> bool {
        stay.start < self.old_at_end.0 && stay.end >= self.at.0
    }

    /// The marks of a block: old at the end, at the end but not half-way, and half-way but not at the end.
    #[inline]
    pub(super) fn of(&self, stay: Stay) -> [bool; 3] {
        let then = stay.start < self.old_at_half.0 && stay.end >= self.half.0;
        let now = self.is_old(stay);
        [now, now && !then, then && !now]
    }
}

/// The leaks among the blocks in scope, given the sums of each mark by group.
pub(super) fn leaks_of_sums(
    scope: &Scope<'_>,
    options: &LeakOptions,
    holders: Option<&Holders>,
    marks: &LeakMarks,
    groups: &Groups,
    by_group: Vec<[Amount; 3]>,
) -> Leaks {
    let &LeakMarks {
        at,
        end,
        tail,
        min_age,
        ..
    } = marks;
    let by_group: Vec<Sums> = by_group
        .into_iter()
        .map(|[retained, gained, lost]| Sums {
            retained,
            gained,
            lost,
        })
        .collect();

    let candidates: Vec<Sum> = by_group
        .iter()
        .filter(|sums| !sums.is_unchanged())
        .map(Sums::growth)
        .collect();
    let level = Level::of_growing(&candidates);
    let mut total = Sums::default();
    let (mut steady, mut steady_groups) = (Amount::default(), 0);
    let mut growth = vec![0.0; groups.len()];
    for (group, sums) in by_group.iter().enumerate() {
        total.retained += sums.retained;
        total.gained += sums.gained;
        total.lost += sums.lost;
        if sums.growth().change_at(level).low > 0.0 {
            growth[group] = sums.growth().value;
        } else if !sums.retained.is_empty() {
            steady += sums.retained;
            steady_groups += 1;
        }
    }
    let order = largest(&growth, usize::MAX);
    let shown = &order[..order.len().min(options.rows)];
    let curves = Curves::new(scope, groups, shown, at, end);
    let trends = curves.trends(scope, level);
    let held_by = match holders {
        Some(holders) => largest_holders(holders, scope, groups, shown, |stay| marks.is_old(stay)),
        None => vec![Vec::new(); shown.len()],
    };
    let rows = shown
        .iter()
        .zip(curves.live)
        .zip(trends)
        .zip(held_by)
        .map(|(((&group, live), trend), held_by)| {
            let sums = &by_group[group];
            Leak {
                label: groups.labels[group].clone(),
                retained: Figures::new(&sums.retained),
                growth: sums.growth().change_at(level),
                trend,
                live,
                held_by,
            }
        })
        .collect();
    Leaks {
        subject: Subject::with_look(scope, &options.look.of_list(options.by)),
        by: options.by,
        at: end as f64 / 1e6,
        tail,
        min_age: min_age as f64 / 1e6,
        retained: Figures::of_total(scope, &total.retained),
        growth: total.growth().estimate_of_change(),
        rows,
        hidden_rows: order.len() - shown.len(),
        steady_groups,
        steady: Figures::new(&steady),
        snapshot: holders.map(|holders| holders.snapshot().to_owned()),
    }
}

/// The largest holders of some blocks of some groups.
fn largest_holders(
    holders: &Holders,
    scope: &Scope<'_>,
    groups: &Groups,
    shown: &[usize],
    is_meant: impl Fn(Stay) -> bool,
) -> Vec<Vec<Holder>> {
    let profile = scope.profile();
    let mut sums: Vec<HashMap<u32, Amount>> = vec![HashMap::new(); shown.len()];
    let row_of = groups.rows(shown);
    scope.for_each(|stay| {
        let row = row_of.of(profile, stay) as usize;
        if let Some(sums) = sums.get_mut(row)
            && is_meant(stay)
            && let Some(holder) = holders.of(stay.block)
        {
            *sums.entry(holder).or_default() += scope.weight(&stay);
        }
    });
    let largest = |sums: HashMap<u32, Amount>| {
        let mut rows: Vec<(u32, Amount)> = sums.into_iter().collect();
        rows.sort_unstable_by(|(holder, amount), (other, than)| {
            let order = than.bytes.value.total_cmp(&amount.bytes.value);
            order.then(holder.cmp(other))
        });
        rows.truncate(HOLDERS);
        let rows = rows.into_iter().map(|(holder, amount)| Holder {
            name: holders.name(holder).to_owned(),
            bytes: profile.sampling().bytes(&amount),
        });
        rows.collect()
    };
    sums.into_iter().map(largest).collect()
}
