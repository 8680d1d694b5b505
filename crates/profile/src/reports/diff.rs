//! What changed between two traces, or two parts of one, and whether it is real.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::{Figures, Subject};
use crate::estimate::{Amount, Estimate, Sum};
use crate::groups::{GroupBy, Groups, Label, View};
use crate::scope::Scope;

/// What makes two runs comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalise {
    /// The same time: amounts after are scaled to the duration before.
    Time,
    /// The same work: amounts after are scaled so that as many words are allocated in all.
    Allocated,
}

/// How a diff is made.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// What is compared.
    pub view: View,
    /// How many rows at most.
    pub rows: usize,
    /// The factor for all amounts after.
    pub scale: f64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            view: View::default(),
            rows: 20,
            scale: 1.0,
        }
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// What was before.
    pub before: Subject,
    /// What came after.
    pub after: Subject,
    /// What a row is.
    pub by: GroupBy,
    /// The factor for all amounts after.
    pub scale: f64,
    /// Everything together.
    pub total: Change,
    /// The largest changes first.
    pub rows: Vec<DiffRow>,
    /// Rows that are not shown.
    pub hidden_rows: usize,
    /// How many changes are real, those not shown included.
    pub real_changes: usize,
}

/// A row of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffRow {
    /// What it is called.
    pub label: Label,
    /// What changed.
    #[serde(flatten)]
    pub change: Change,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
    /// How probable a change of bytes at least this large is if nothing has changed.
    pub p_value: f64,
    /// Whether the change is more than sampling can explain: of all changes that are called real,
    /// one in twenty is not, on average.
    pub is_real: bool,
}

impl Change {
    fn new(before: &Amount, after: &Amount, both_sides: &Amount, scale: f64) -> Self {
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
            bytes: bytes.estimate(),
            blocks: after.blocks.change(before.blocks, shared.1).estimate(),
            percent: (before.bytes.value > 0.0).then(|| 100.0 * bytes.value / before.bytes.value),
            p_value: p_value(bytes),
            is_real: false,
        }
    }
}

/// The probability of a change at least as large if there is none.
fn p_value(change: Sum) -> f64 {
    if change.variance > 0.0 {
        let z = change.value.abs() / change.variance.sqrt();
        libm::erfc(z / std::f64::consts::SQRT_2)
    } else if change.value == 0.0 {
        1.0
    } else {
        0.0
    }
}

/// The factor that makes amounts after comparable to those before.
#[must_use]
pub fn scale(before: &Scope<'_>, after: &Scope<'_>, by: Normalise) -> f64 {
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

/// Compares what is in two scopes. If they are of the same profile, blocks that are in both cancel
/// out, and do not add to the error.
#[must_use]
pub fn diff(before: &Scope<'_>, after: &Scope<'_>, options: &DiffOptions) -> Diff {
    let mut rows: HashMap<Label, [Amount; 3]> = HashMap::new();
    let mut add = |scope: &Scope<'_>, side: usize| {
        let groups = Groups::new(scope.profile(), &options.view);
        for (label, amount) in groups.labels.iter().zip(groups.sums(scope)) {
            if !amount.is_empty() {
                rows.entry_ref(label).or_default()[side] += amount;
            }
        }
    };
    add(before, 0);
    add(after, 1);
    if std::ptr::eq(before.profile(), after.profile()) {
        let both = before.selection().blocks_in_both(after.selection());
        add(&before.with(both), 2);
    }
    let mut total = [Amount::default(); 3];
    let mut rows: Vec<DiffRow> = rows
        .into_iter()
        .map(|(label, amounts)| {
            for (total, amount) in total.iter_mut().zip(&amounts) {
                *total += *amount;
            }
            let [before, after, both] = &amounts;
            DiffRow {
                label,
                change: Change::new(before, after, both, options.scale),
            }
        })
        .collect();
    let real_changes = mark_real(&mut rows);
    // The label decides between equals: a hash table has no order.
    rows.sort_by(|a, b| {
        let key = |row: &DiffRow| row.change.bytes.value.abs();
        key(b).total_cmp(&key(a)).then(a.label.cmp(&b.label))
    });
    let hidden_rows = rows.len().saturating_sub(options.rows);
    rows.truncate(options.rows);
    let [sum_before, sum_after, sum_both] = &total;
    let mut total = Change::new(sum_before, sum_after, sum_both, options.scale);
    total.is_real = total.p_value < 0.05;
    Diff {
        before: Subject::new(before),
        after: Subject::new(after),
        by: options.view.by,
        scale: options.scale,
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
    let word_bytes = after.profile().sampling.word_bytes();
    let none = Sum::default();
    let mut rows: Vec<FileChange> = files
        .into_iter()
        .map(
            |(file, [live_before, live_after, before, after])| FileChange {
                file,
                words: live_after
                    .bytes
                    .change(live_before.bytes, none)
                    .estimate()
                    .per(word_bytes),
                allocations: after
                    .bytes
                    .change(before.bytes, none)
                    .estimate()
                    .per(word_bytes),
                blocks: live_after
                    .blocks
                    .change(live_before.blocks, none)
                    .estimate(),
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
