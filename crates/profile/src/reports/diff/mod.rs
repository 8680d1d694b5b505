//! Significant changes between two traces, or two time windows of one.

mod change;
mod files;
mod sides;
mod tree;

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::Subject;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::{self, Look, MAX_ROWS};
use crate::scope::Scope;
pub use change::Change;
use change::{Side, Sides, fourth_powers, mark_real};
pub use files::{FileChange, compare_files};
pub use sides::{Compared, Comparison, DiffSides, Normalise, WindowError};
pub use tree::{ChangeColumns, DiffTree, DiffTreeOptions, NamedDiffTree, diff_tree};

/// Options of comparisons.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DiffOptions {
    /// The sides
    #[command(flatten)]
    #[serde(flatten)]
    pub sides: DiffSides,

    /// Group by
    #[arg(long, value_enum, default_value_t = GroupBy::Function)]
    pub by: GroupBy,

    /// Limit the number of rows
    #[arg(long, short = 'n', alias = "top", default_value_t = 20, value_name = "N", value_parser = options::number(0, MAX_ROWS))]
    pub rows: usize,

    /// Show significant changes only
    #[arg(long, hide_short_help = true)]
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
    /// The normalisation of amounts after.
    pub per: Normalise,
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

/// Compares what is in two scopes, as it is.
#[must_use]
pub fn diff(before: &Scope<'_>, after: &Scope<'_>, options: &DiffOptions) -> Diff {
    let sides = Comparison::unscaled(before.clone(), after.clone());
    diff_sides(&sides, options)
}

/// Compares two traces or windows.
#[must_use]
pub fn diff_sides(sides: &Comparison<'_>, options: &DiffOptions) -> Diff {
    let Comparison {
        before,
        after,
        per,
        scale,
        ..
    } = sides;
    let look = options.look.of_list(options.by);
    // A map with an order: sums must not depend on that of a hash table.
    let mut rows: BTreeMap<Label, Sides> = BTreeMap::new();
    let mut add = |scope: &Scope<'_>, side: usize| {
        let groups = Groups::shared(scope.profile(), &look.view(options.by));
        let sums = groups.sums(scope).into_iter();
        let fourth = fourth_moments(scope, &groups);
        for ((label, amount), fourth) in groups.labels.iter().zip(sums).zip(fourth) {
            if !amount.is_empty() {
                let sides = rows.entry(label.clone()).or_default();
                sides.side(side).add(&Side { amount, fourth });
            }
        }
    };
    for (side, scope) in sides.scopes().into_iter().enumerate() {
        if let Some(scope) = scope {
            add(&scope, side);
        }
    }
    let mut total = Sides::default();
    let mut rows: Vec<DiffRow> = rows
        .into_iter()
        .map(|(label, both)| {
            total.add(&both);
            DiffRow {
                label,
                change: sides.change(&both),
            }
        })
        .collect();
    let real_changes = mark_real(
        &mut rows
            .iter_mut()
            .map(|row| &mut row.change)
            .collect::<Vec<_>>(),
    );
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
    let mut total = Change::new(&total, *scale);
    total.is_real = total.p_value < 0.05;
    Diff {
        before: Subject::with_look(before, &look),
        after: Subject::with_look(after, &look),
        by: options.by,
        per: *per,
        scale: *scale,
        total,
        rows,
        hidden_rows,
        real_changes,
    }
}

/// The fourth powers of what hits are worth, for each group: see [`fourth_powers`].
fn fourth_moments(scope: &Scope<'_>, groups: &Groups) -> Vec<f64> {
    let by_kind = fourth_powers(scope);
    let profile = scope.profile();
    let mut sums = vec![0.0; groups.len()];
    scope.for_each(|stay| {
        let kind = profile.classes()[stay.class].kind;
        sums[groups.of(profile, stay) as usize] += by_kind[kind];
    });
    sums
}
