//! Significant changes between two traces, or two time windows of one.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use hashbrown::HashMap;
use serde::Serialize;

use super::{Figures, Subject};
use crate::estimate::{Amount, Estimate, Estimator, Sum};
use crate::groups::{GroupBy, Groups, Label, View};
use crate::options::{self, Look, MAX_ROWS, OptionError};
use crate::query::Window;
use crate::scope::Scope;
use crate::store::{IdVec, KindId, Moment};

/// The normalisation of the second trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Normalise {
    /// Scale the second trace to the duration of the first.
    Time,
    /// Scale the second trace to the total allocation of the first.
    Allocated,
}

/// The measure that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Compared {
    /// Allocated memory.
    #[default]
    Allocated,
    /// Memory live at the peak of each trace.
    Peak,
    /// Memory live at the end of each trace or window.
    End,
}

impl Compared {
    /// The part of a whole trace that is compared.
    #[must_use]
    pub fn of_trace(self, scope: Scope<'_>) -> Scope<'_> {
        match self {
            Self::Allocated => scope,
            Self::Peak => scope.at_peak(),
            Self::End => scope.at_end(),
        }
    }

    /// The part of a window that is compared.
    pub fn of_window<'a>(
        self,
        scope: &Scope<'a>,
        window: &Window,
    ) -> Result<Scope<'a>, WindowError> {
        let (from, to) = window_moments(scope, window)?;
        match self {
            Self::Allocated => Ok(scope.allocated_in((from, to))),
            Self::Peak => Err(WindowError::NoPeak),
            Self::End => Ok(scope.live_at(to)),
        }
    }
}

/// The first and the last moment of a window. A part of the run without events is a window; a time
/// outside of it is not.
pub(super) fn window_moments(
    scope: &Scope<'_>,
    window: &Window,
) -> Result<(Moment, Moment), WindowError> {
    let (profile, estimator) = (scope.profile(), scope.estimator());
    let (from, to) = window.moments(profile, estimator);
    if from >= to && !window.is_part_of(profile, estimator) {
        return Err(WindowError::Empty(window.text().to_owned()));
    }
    Ok((from, to))
}

/// The error of a window that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The window contains no events.
    #[error("the window {0} contains no events")]
    Empty(String),
    /// It was asked for its peak.
    #[error("a window has no peak; choose end to compare what is live at its end")]
    NoPeak,
}

/// Options of comparisons.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DiffOptions {
    /// Compare two time windows of one trace: 0s..10s, ..peak, 50%.. (give it twice)
    #[arg(long, value_name = "FROM..TO")]
    pub window: Vec<Window>,

    /// Select the measure to compare
    #[arg(long, value_enum, default_value_t)]
    pub of: Compared,

    /// Group by
    #[arg(long, value_enum, default_value_t = GroupBy::Function)]
    pub by: GroupBy,

    /// Normalise the second trace to the same duration or total allocation
    #[arg(long, value_enum)]
    pub per: Option<Normalise>,

    /// Limit the number of rows
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = options::number(0, MAX_ROWS))]
    pub rows: usize,

    /// Show significant changes only
    #[arg(long)]
    pub only_real: bool,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for DiffOptions {
    fn default() -> Self {
        options::defaults()
    }
}

impl DiffOptions {
    /// Checks options that do not go together.
    pub fn validate(&self) -> Result<(), OptionError> {
        match (&self.window[..], self.per) {
            ([], _) | ([_, _], None) => Ok(()),
            ([_, _], Some(_)) => Err(OptionError::new(
                "per",
                "",
                "applies to two traces, not to windows of one",
            )),
            ([first, ..], _) => Err(OptionError::new(
                "window",
                first.text(),
                "must be given exactly twice",
            )),
        }
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Diff {
    /// The first trace or window.
    pub before: Subject,
    /// The second trace or window.
    pub after: Subject,
    /// The grouping of the rows.
    pub by: GroupBy,
    /// The factor for all amounts after.
    pub scale: f64,
    /// Everything together.
    pub total: Change,
    /// The largest changes first.
    pub rows: Vec<DiffRow>,
    /// Rows that are not shown.
    pub hidden_rows: usize,
    /// The number of significant changes, including rows not shown.
    pub real_changes: usize,
}

/// A comparison and what the two sides are called, for a reader who has only that.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct NamedDiff {
    /// The file or the window before.
    pub before_name: String,
    /// The file or the window after.
    pub after_name: String,
    /// The measure that is compared.
    pub of: Compared,
    /// The comparison.
    #[serde(flatten)]
    pub diff: Diff,
}

/// A row of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DiffRow {
    /// Its name.
    pub label: Label,
    /// Its change.
    #[serde(flatten)]
    pub change: Change,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Change {
    /// Before.
    pub before: Figures,
    /// After, scaled.
    pub after: Figures,
    /// Bytes after minus bytes before.
    pub bytes: Estimate,
    /// Blocks after minus blocks before.
    pub blocks: Estimate,
    /// The change of bytes in percent of before; null if there was nothing.
    pub percent: Option<f64>,
    /// The probability of a change of bytes at least this large if nothing changed.
    pub p_value: f64,
    /// True if the change is significant, at a false discovery rate of 5 %.
    pub is_real: bool,
}

/// One side of a comparison, or the blocks on both.
#[derive(Clone, Copy, Default)]
struct Side {
    amount: Amount,
    fourth: f64,
}

impl Side {
    fn add(&mut self, other: &Self) {
        self.amount += other.amount;
        self.fourth += other.fourth;
    }
}

impl Change {
    fn new([before, after, both]: &[Side; 3], scale: f64) -> Self {
        let fourth = scale.powi(4) * (after.fourth - both.fourth)
            + (before.fourth - both.fourth)
            + (scale - 1.0).powi(4) * both.fourth;
        let (before, after, both_sides) = (&before.amount, &after.amount, &both.amount);
        let scaled = |amount: &Amount| Amount {
            bytes: amount.bytes.scaled(scale),
            blocks: amount.blocks.scaled(scale),
            ..*amount
        };
        let after = scaled(after);
        // What is in both was scaled once, not twice.
        let both = |sum: Sum| Sum {
            variance: sum.variance * scale,
            ..sum
        };
        let shared = (both(both_sides.bytes), both(both_sides.blocks));
        let bytes = after.bytes.change(before.bytes, shared.0);
        Self {
            before: Figures::new(before),
            after: Figures::new(&after),
            bytes: bytes.estimate_of_change(),
            blocks: after
                .blocks
                .change(before.blocks, shared.1)
                .estimate_of_change(),
            percent: (before.bytes.value > 0.0).then(|| 100.0 * bytes.value / before.bytes.value),
            p_value: p_value(bytes, fourth.max(0.0)),
            is_real: false,
        }
    }
}

/// The probability of a change at least as large if there is none.
///
/// Sums of few parts have longer tails than a normal distribution: that a single block of ten
/// megabytes was missed on one side is less rare than it is many standard errors. The change is
/// taken for the difference of two Poisson counts that has the same variance, and the same fourth
/// moment; Lugannani and Rice's approximation gives its tail. For many samples this is the normal
/// distribution.
fn p_value(change: Sum, fourth: f64) -> f64 {
    if change.value == 0.0 {
        return 1.0;
    }
    if change.variance <= 0.0 {
        return 0.0;
    }
    // What one of the counts is worth, how many there are, and how many more on one side.
    let unit = (fourth / change.variance).sqrt();
    let count = (change.variance / unit.powi(2)).max(f64::MIN_POSITIVE);
    let more = change.value.abs() / unit;
    // The saddlepoint of the difference, and its variance when tilted that far.
    let tilt = (more / count).asinh();
    let spread = count.hypot(more);
    let deviance = (2.0 * (more * tilt - (spread - count))).max(0.0).sqrt();
    let slope = -(-tilt).exp_m1() * spread.sqrt();
    if deviance < 1e-6 || slope <= 0.0 {
        return 1.0;
    }
    let z = deviance + (slope / deviance).ln() / deviance;
    libm::erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The fourth powers of what hits are worth, for each group: see [`p_value`].
fn fourth_moments(scope: &Scope<'_>, groups: &Groups) -> Vec<f64> {
    let by_kind: IdVec<KindId, f64> = scope
        .weights()
        .iter()
        .map(|weight| {
            let hits = match scope.estimator() {
                Estimator::HorvitzThompson => 1.0,
                Estimator::Count => weight.samples.max(1) as f64,
            };
            weight.bytes.variance * (weight.bytes.value / hits).powi(2)
        })
        .collect();
    let profile = scope.profile();
    let mut sums = vec![0.0; groups.len()];
    scope.for_each(|stay| {
        let kind = profile.classes()[stay.class].kind;
        sums[groups.of(profile, stay) as usize] += by_kind[kind];
    });
    sums
}

/// The factor that makes amounts after comparable to those before.
fn scale(before: &Scope<'_>, after: &Scope<'_>, by: Normalise) -> f64 {
    let (before, after) = match by {
        Normalise::Time => (before.profile().duration(), after.profile().duration()),
        Normalise::Allocated => (
            everything(before).bytes.value,
            everything(after).bytes.value,
        ),
    };
    if before > 0.0 && after > 0.0 {
        before / after
    } else {
        1.0
    }
}

fn everything(scope: &Scope<'_>) -> Amount {
    scope.with(crate::Selection::all(scope.profile())).total()
}

/// Compares what the options ask for of two traces.
#[must_use]
pub fn diff_traces(before: Scope<'_>, after: Scope<'_>, options: &DiffOptions) -> Diff {
    let of = options.of;
    diff(&of.of_trace(before), &of.of_trace(after), options)
}

/// Compares what the options ask for of two windows of a trace.
pub fn diff_windows(
    scope: &Scope<'_>,
    before: &Window,
    after: &Window,
    options: &DiffOptions,
) -> Result<Diff, WindowError> {
    let [before, after] = [before, after].map(|window| options.of.of_window(scope, window));
    Ok(diff(&before?, &after?, options))
}

/// Compares what is in two scopes. If they are of the same profile, blocks that are in both cancel
/// out, and do not add to the error.
#[must_use]
pub fn diff(before: &Scope<'_>, after: &Scope<'_>, options: &DiffOptions) -> Diff {
    let scale = options.per.map_or(1.0, |per| scale(before, after, per));
    diff_scaled(before, after, options, scale)
}

/// Compares what is in two scopes, with a given factor for all amounts after.
#[must_use]
pub fn diff_scaled(
    before: &Scope<'_>,
    after: &Scope<'_>,
    options: &DiffOptions,
    scale: f64,
) -> Diff {
    // A map with an order: sums must not depend on that of a hash table.
    let mut rows: BTreeMap<Label, [Side; 3]> = BTreeMap::new();
    let mut add = |scope: &Scope<'_>, side: usize| {
        let groups = Groups::new(scope.profile(), &options.look.view(options.by));
        let sums = groups.sums(scope).into_iter();
        let fourth = fourth_moments(scope, &groups);
        for ((label, amount), fourth) in groups.labels.iter().zip(sums).zip(fourth) {
            if !amount.is_empty() {
                let sides = rows.entry(label.clone()).or_default();
                sides[side].add(&Side { amount, fourth });
            }
        }
    };
    add(before, 0);
    add(after, 1);
    if std::ptr::eq(before.profile(), after.profile()) {
        let both = before.selection().blocks_in_both(after.selection());
        add(&before.with(both), 2);
    }
    let mut total = [Side::default(); 3];
    let mut rows: Vec<DiffRow> = rows
        .into_iter()
        .map(|(label, sides)| {
            for (total, side) in total.iter_mut().zip(&sides) {
                total.add(side);
            }
            DiffRow {
                label,
                change: Change::new(&sides, scale),
            }
        })
        .collect();
    let real_changes = mark_real(&mut rows);
    // The label decides between equals.
    rows.sort_by(|a, b| {
        let key = |row: &DiffRow| row.change.bytes.value.abs();
        key(b).total_cmp(&key(a)).then(a.label.cmp(&b.label))
    });
    let all_rows = rows.len();
    if options.only_real {
        rows.retain(|row| row.change.is_real);
    }
    rows.truncate(options.rows);
    let hidden_rows = all_rows - rows.len();
    let mut total = Change::new(&total, scale);
    total.is_real = total.p_value < 0.05;
    Diff {
        before: Subject::with_look(before, &options.look),
        after: Subject::with_look(after, &options.look),
        by: options.by,
        scale,
        total,
        rows,
        hidden_rows,
        real_changes,
    }
}

/// Benjamini and Hochberg's rule: among hundreds of rows, some would seem to change by chance.
fn mark_real(rows: &mut [DiffRow]) -> usize {
    const FALSE_ONES: f64 = 0.05;
    rows.sort_by(|a, b| a.change.p_value.total_cmp(&b.change.p_value));
    let n = rows.len() as f64;
    let real = (1_u32..)
        .zip(rows.iter())
        .filter(|(rank, row)| row.change.p_value <= FALSE_ONES * f64::from(*rank) / n)
        .map(|(rank, _)| rank as usize)
        .last()
        .unwrap_or(0);
    for row in &mut rows[..real] {
        row.change.is_real = true;
    }
    real
}

/// A row of what `prof_spacetime compare` prints: after minus before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileChange {
    /// The file of the allocations.
    pub file: String,
    /// Words alive at the end.
    pub words: Estimate,
    /// Words allocated since the start.
    pub allocations: Estimate,
    /// Blocks alive at the end.
    pub blocks: Estimate,
}

/// Compares two profiles file by file, as `prof_spacetime compare` does: ascending by words, and
/// without files of which the words or allocations are the same.
#[must_use]
pub fn compare_files(before: &Scope<'_>, after: &Scope<'_>) -> Vec<FileChange> {
    let view = View {
        by: GroupBy::File,
        ..View::default()
    };
    let mut files: HashMap<String, [Amount; 4]> = HashMap::new();
    for (side, scope) in [before, after].into_iter().enumerate() {
        let groups = Groups::new(scope.profile(), &view);
        let live = groups.sums(&scope.at_end());
        let allocated = groups.sums(scope);
        for (label, (live, allocated)) in groups.labels.iter().zip(live.iter().zip(allocated)) {
            if !allocated.is_empty() {
                let sums = files.entry_ref(&label.name).or_default();
                sums[side] += *live;
                sums[2 + side] += allocated;
            }
        }
    }
    let word_bytes = after.profile().sampling().word_bytes();
    let none = Sum::default();
    let mut rows: Vec<FileChange> = files
        .into_iter()
        .map(
            |(file, [live_before, live_after, before, after])| FileChange {
                file,
                words: live_after
                    .bytes
                    .change(live_before.bytes, none)
                    .estimate_of_change()
                    .per(word_bytes),
                allocations: after
                    .bytes
                    .change(before.bytes, none)
                    .estimate_of_change()
                    .per(word_bytes),
                blocks: live_after
                    .blocks
                    .change(live_before.blocks, none)
                    .estimate_of_change(),
            },
        )
        .filter(|row| row.words.value != 0.0 && row.allocations.value != 0.0)
        .collect();
    rows.sort_by(|a, b| {
        let order = a.words.value.total_cmp(&b.words.value);
        order.then_with(|| a.file.cmp(&b.file))
    });
    rows
}
