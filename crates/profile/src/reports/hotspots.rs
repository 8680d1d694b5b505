//! Hotspots: a flat table of where memory is allocated.

use clap::{Args, ValueEnum};
use heapline_model::Space;
use serde::Serialize;

use super::{Figures, Subject};
use crate::amount::Amount;
use crate::estimate::Estimate;
use crate::groups::{GroupBy, Groups, Label, NONE};
use crate::histogram::Survival;
use crate::options::{self, Look, MAX_ROWS};
use crate::scope::Scope;
use crate::selection::Stay;
use crate::store::{ClassId, IdVec, Moment};
use crate::timeline::Timeline;

/// Points of the growth of each row.
const POINTS: usize = 16;

/// Groups whose lifetimes are in memory at the same time: there may be millions of them.
const GROUPS_AT_ONCE: usize = 4096;

/// The sort order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    /// Bytes allocated by the group itself.
    #[default]
    Allocated,
    /// Bytes allocated by the group and its callees.
    Inclusive,
    /// Bytes live at the peak.
    Peak,
    /// Bytes live at the end.
    End,
    /// Blocks allocated by the group itself.
    Blocks,
    /// Mean size of a block.
    Size,
    /// Median lifetime of the blocks; the longest if it is not known, because most are live at the end.
    Lifetime,
    /// Share of its memory on the minor heap that was promoted.
    Promoted,
    /// Name, from A to Z.
    Name,
}

/// Options of [`hotspots`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HotspotOptions {
    /// Group by
    #[arg(long, value_enum, default_value_t = GroupBy::Function)]
    pub by: GroupBy,

    /// Sort rows by
    #[arg(long, value_enum, default_value_t)]
    pub sort: SortBy,

    /// Reverse the order of rows
    #[arg(long)]
    pub reverse: bool,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 20, value_name = "N", value_parser = options::number(0, MAX_ROWS))]
    pub rows: usize,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for HotspotOptions {
    fn default() -> Self {
        options::defaults()
    }
}

/// A flat table of where memory is allocated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Hotspots {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The grouping of the rows.
    pub by: GroupBy,
    /// The order of the rows.
    pub sort: SortBy,
    /// Seconds from the start to the peak of the whole program.
    pub peak_time: f64,
    /// All rows together, those not shown included.
    pub total: Totals,
    /// The rows.
    pub rows: Vec<Hotspot>,
    /// Rows that are not shown.
    pub hidden_rows: usize,
    /// The sum of the rows not shown.
    pub hidden: Totals,
}

/// The figures that add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Totals {
    /// Allocated.
    pub allocated: Figures,
    /// Alive at the peak of the whole program.
    pub live_at_peak: Figures,
    /// Alive at the end.
    pub live_at_end: Figures,
}

impl Totals {
    /// The figures of amounts that were allocated, live at the peak, and live at the end.
    pub(super) fn of(scope: &Scope<'_>, [allocated, peak, end]: [Amount; 3]) -> Self {
        Self {
            allocated: Figures::new(&allocated),
            live_at_peak: Figures::new(&told(scope, &allocated, scope.as_peak(peak))),
            live_at_end: Figures::new(&told(scope, &allocated, end)),
        }
    }
}

/// The amount of what was allocated that is live at a moment, unless the source does not tell it.
fn told(scope: &Scope<'_>, allocated: &Amount, live: Amount) -> Amount {
    if scope.is_of_moment() && !allocated.is_empty() {
        Amount::UNTOLD
    } else {
        live
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Hotspot {
    /// Its name.
    pub label: Label,
    /// Memory allocated by the group itself.
    #[serde(flatten)]
    pub own: Totals,
    /// Memory allocated by the group and its callees; null if rows are not places.
    pub inclusive: Option<Figures>,
    /// Mean bytes of a block, header included.
    pub mean_size: f64,
    /// Lifetimes of the blocks, in seconds.
    pub lifetime: Quantiles,
    /// Seconds of the oldest block, dead or alive: lifetimes that are null are longer. Null if no block was followed.
    pub oldest: Option<f64>,
    /// Bytes promoted in percent of those allocated on the minor heap, or null.
    pub promoted_percent: Option<f64>,
    /// Live bytes at equal distances of time, the last one at the end.
    pub growth: Vec<f64>,
    /// True if it is within the sampling error.
    pub is_noise: bool,
}

/// The spread of a distribution; null where it was not reached before the trace ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Quantiles {
    /// The median.
    pub p50: Option<f64>,
    /// Nine of ten are not above.
    pub p90: Option<f64>,
    /// 99 of 100 are not above.
    pub p99: Option<f64>,
}

impl Quantiles {
    pub(crate) fn of(survival: &Survival, unit: f64) -> Self {
        let at = |share| survival.quantile(share).map(|age| age as f64 / unit);
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
        }
    }
}

/// The sums for each group.
#[derive(Clone, Copy, Default)]
struct Sums {
    allocated: Amount,
    peak: Amount,
    end: Amount,
    /// On the minor heap.
    minor: Amount,
    /// The part that was promoted.
    promoted: Amount,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.allocated += other.allocated;
        self.peak += other.peak;
        self.end += other.end;
        self.minor += other.minor;
        self.promoted += other.promoted;
    }

    /// Mean bytes of a block. A damaged trace may have blocks without samples.
    fn mean_size(&self) -> f64 {
        let blocks = self.allocated.blocks.value;
        if blocks > 0.0 {
            self.allocated.bytes.value / blocks
        } else {
            0.0
        }
    }

    fn promoted_percent(&self) -> Option<f64> {
        let minor = self.minor.bytes.value;
        (minor > 0.0).then(|| 100.0 * self.promoted.bytes.value / minor)
    }

    fn totals(&self) -> Totals {
        Totals {
            allocated: Figures::new(&self.allocated),
            live_at_peak: Figures::new(&self.peak),
            live_at_end: Figures::new(&self.end),
        }
    }
}

/// The table for the blocks in scope.
#[must_use]
pub fn hotspots(scope: &Scope<'_>, options: &HotspotOptions) -> Hotspots {
    let profile = scope.profile();
    let look = options.look.of_list(options.by);
    let groups = Groups::shared(profile, &look.view(options.by));
    let peak = profile.peak(scope.estimator());
    let (by_group, counts) = sums(scope, &groups, peak.moment);
    let order = order(scope, &groups, &by_group, options);
    let shown = &order[..order.len().min(options.rows)];
    let (inclusive, details) = rayon::join(
        || groups.inclusive_sums_of(shown, scope, &counts),
        || details(scope, &groups, shown, POINTS),
    );

    let mut total = Sums::default();
    for sums in &by_group {
        total.add(sums);
    }
    let mut hidden = Sums::default();
    for &group in &order[shown.len()..] {
        hidden.add(&by_group[group]);
    }
    let rows = shown
        .iter()
        .zip(details)
        .enumerate()
        .map(|(row, (&group, (survival, growth)))| {
            let sums = &by_group[group];
            Hotspot {
                label: groups.labels[group].clone(),
                own: sums.totals(),
                inclusive: inclusive
                    .as_ref()
                    .map(|inclusive| Figures::new(&inclusive[row])),
                mean_size: sums.mean_size(),
                lifetime: Quantiles::of(&survival, 1e6),
                oldest: survival.oldest().map(|age| age as f64 / 1e6),
                promoted_percent: sums.promoted_percent(),
                growth: if scope.is_of_moment() {
                    Vec::new()
                } else {
                    growth
                },
                is_noise: is_noise(scope, sums.allocated.bytes.estimate()),
            }
        })
        .collect();
    let mut total = total.totals();
    if scope.selection().is_empty() {
        total.allocated = Figures::of_total(scope, &Amount::default());
    }
    Hotspots {
        subject: Subject::with_look(scope, &look),
        by: options.by,
        sort: options.sort,
        peak_time: peak.time,
        total,
        rows,
        hidden_rows: order.len() - shown.len(),
        hidden: hidden.totals(),
    }
}

/// The groups that have anything, in the order of the rows. Those that are equal are in the order of what they allocate
/// themselves.
fn order(
    scope: &Scope<'_>,
    groups: &Groups,
    by_group: &[Sums],
    options: &HotspotOptions,
) -> Vec<usize> {
    let inclusive = match options.sort {
        SortBy::Inclusive => groups.inclusive_sums(scope),
        _ => None,
    };
    let own = |group: usize| by_group[group].allocated.bytes.value;
    let key = |group: usize| {
        let sums = &by_group[group];
        match options.sort {
            SortBy::Allocated | SortBy::Lifetime | SortBy::Name => sums.allocated.bytes.value,
            SortBy::Inclusive => {
                let inclusive = inclusive.as_ref().map(|inclusive| inclusive[group]);
                inclusive.unwrap_or(sums.allocated).bytes.value
            }
            SortBy::Peak => sums.peak.bytes.value,
            SortBy::End => sums.end.bytes.value,
            SortBy::Blocks => sums.allocated.blocks.value,
            SortBy::Size => sums.mean_size(),
            SortBy::Promoted => sums.promoted_percent().unwrap_or(-1.0),
        }
    };
    let mut order: Vec<usize> = (0..groups.len())
        .filter(|&group| !by_group[group].allocated.is_empty() || key(group) > 0.0)
        .collect();
    let mut keys: Vec<f64> = (0..groups.len()).map(key).collect();
    if options.sort == SortBy::Lifetime {
        let medians = medians(scope, groups, &order);
        for (&group, median) in order.iter().zip(medians) {
            keys[group] = median;
        }
    }
    let names = |a: usize, b: usize| groups.labels[a].name.cmp(&groups.labels[b].name);
    order.sort_by(|&a, &b| {
        let by_key = match options.sort {
            SortBy::Name => names(a, b),
            _ => keys[b].total_cmp(&keys[a]),
        };
        let by_key = if options.reverse {
            by_key.reverse()
        } else {
            by_key
        };
        by_key.then_with(|| own(b).total_cmp(&own(a)))
    });
    order
}

/// The median lifetimes of groups in seconds; infinite if most blocks were live at the end, negative without blocks.
fn medians(scope: &Scope<'_>, groups: &Groups, of: &[usize]) -> Vec<f64> {
    of.chunks(GROUPS_AT_ONCE)
        .flat_map(|part| details(scope, groups, part, 1))
        .map(
            |(survival, _)| match (survival.quantile(0.5), survival.oldest()) {
                (Some(age), _) => age as f64,
                (None, Some(_)) => f64::INFINITY,
                (None, None) => -1.0,
            },
        )
        .collect()
}

/// Returns true if an amount is within the sampling error.
pub(super) fn is_noise(scope: &Scope<'_>, bytes: Estimate) -> bool {
    !scope.profile().sampling().is_exact() && bytes.is_noise()
}

/// The sums of each group, and how many blocks of each class were allocated; the latter are left
/// out if groups are not made of classes.
fn sums(scope: &Scope<'_>, groups: &Groups, peak: Moment) -> (Vec<Sums>, Vec<u32>) {
    let profile = scope.profile();
    let is_minor: IdVec<ClassId, bool> = profile
        .classes()
        .iter()
        .map(|class| profile.kinds()[class.kind].space == Space::Minor)
        .collect();
    let marks = |stay: Stay| {
        let is_minor = is_minor[stay.class];
        [
            true,
            stay.is_live_at(peak),
            !stay.ends(),
            is_minor,
            is_minor && stay.is_promoted(),
        ]
    };
    let (sums, counts) = if groups.are_of_classes() {
        let counts = scope.counts_of(marks);
        let allocated = counts.iter().map(|counts| counts[0]).collect();
        (groups.add_up(scope, &counts), allocated)
    } else {
        (groups.sums_of(scope, marks), Vec::new())
    };
    let sums = sums
        .into_iter()
        .map(|[allocated, peak, end, minor, promoted]| Sums {
            allocated,
            peak: told(scope, &allocated, scope.as_peak(peak)),
            end: told(scope, &allocated, end),
            minor,
            promoted,
        })
        .collect();
    (sums, counts)
}

/// The lifetimes and the growth of some groups.
fn details(
    scope: &Scope<'_>,
    groups: &Groups,
    shown: &[usize],
    points: usize,
) -> Vec<(Survival, Vec<f64>)> {
    let points = points.max(1);
    let profile = scope.profile();
    let row_of = groups.rows(shown);
    let timeline = Timeline::new(profile, points);
    let tells_lifetimes = profile.header().tells.lifetimes;
    let mut rows = scope.fold(
        || vec![(Survival::default(), vec![0.0; points]); shown.len()],
        |rows, stay| {
            let row = row_of.of(profile, stay);
            if row == NONE {
                return;
            }
            let (survival, growth) = &mut rows[row as usize];
            let weight = scope.weight(&stay);
            let died = stay.ends();
            let age = stay.age(profile);
            if tells_lifetimes {
                survival.add(age, died, weight.blocks.value);
            }
            growth[timeline.slot(stay.start)] += weight.bytes.value;
            if died {
                growth[timeline.slot(stay.end)] -= weight.bytes.value;
            }
        },
        |rows, part| {
            for ((survival, growth), (more, growth_too)) in rows.iter_mut().zip(part) {
                survival.merge(&more);
                for (point, more) in growth.iter_mut().zip(growth_too) {
                    *point += more;
                }
            }
        },
    );
    for (_, growth) in &mut rows {
        let mut live = 0.0_f64;
        for point in growth {
            live += *point;
            // Rounding errors must not leave a little less than nothing.
            *point = if live < 1e-6 { 0.0 } else { live };
        }
    }
    rows
}
