//! Lines of live memory.

use hashbrown::HashMap;

use super::{Line, Measure, Rows};
use crate::groups::NONE;
use crate::scope::Scope;
use crate::store::{ClassId, IdVec, KindId, Moment, SortId};
use crate::timeline::Timeline;
use crate::walk::Changes;

/// Lines of live memory: the total, then the rows. Also the errors of the total.
pub(super) fn live(
    scope: &Scope<'_>,
    measure: Measure,
    rows: &Rows,
    parts: &Timeline,
    points: usize,
) -> (Vec<Line>, Vec<f64>) {
    let (sorts, mut changes) = changes_by_sort(scope, measure, rows);
    let mut lines = vec![Line::default(); rows.labels.len() + 1];
    let mut now = vec![Extent::default(); lines.len()];
    let mut variance = 0.0_f64;
    let mut error = Vec::with_capacity(points);
    let mut start = Moment::default();
    let snapshots = scope.profile().snapshots().iter();
    let mut snapshots = snapshots.map(|&(moment, _)| moment).peekable();
    for part in 0..points {
        for extent in &mut now {
            extent.begin();
        }
        let end = parts.end(part);
        while start < end {
            // All changes of a snapshot happen at once: in between there is nothing to see.
            let snapshot = snapshots.next_if(|&snapshot| snapshot <= end);
            let stop = snapshot.unwrap_or(end);
            changes.for_each_between(start, stop, |sort, sign| {
                let sort = &sorts[sort];
                variance += sign * sort.variance;
                now[0].add(sign * sort.value, snapshot.is_none());
                if let Some(row) = now.get_mut(sort.line) {
                    row.add(sign * sort.value, snapshot.is_none());
                }
            });
            for extent in &mut now {
                extent.note();
            }
            start = stop.max(start);
        }
        start = end.max(start);
        for (line, extent) in lines.iter_mut().zip(&now) {
            extent.put(line);
        }
        error.push(1.96 * variance.max(0.0).sqrt());
    }
    (lines, error)
}

/// Blocks that stand for the same and are in the same row.
struct Sort {
    value: f64,
    variance: f64,
    /// The line of the row; [`usize::MAX`] if there is none.
    line: usize,
}

/// The changes of live blocks, each with the class of the block. There are so few classes that they
/// stay in the cache while events are scanned.
fn changes_by_sort<'a>(
    scope: &Scope<'a>,
    measure: Measure,
    rows: &Rows,
) -> (IdVec<SortId, Sort>, Changes<'a, SortId>) {
    let profile = scope.profile();
    let word_bytes = profile.sampling().word_bytes();
    let mut sorts = IdVec::default();
    let mut numbers: HashMap<(u32, KindId), SortId> = HashMap::new();
    let mut number = |row: u32, kind: KindId| {
        *numbers.entry((row, kind)).or_insert_with(|| {
            let amount = scope.weights()[kind];
            let (value, variance) = match measure {
                Measure::LiveBlocks => (amount.blocks.value, amount.blocks.variance),
                Measure::LiveWords => (
                    amount.bytes.value / word_bytes,
                    amount.bytes.variance / (word_bytes * word_bytes),
                ),
                _ => (amount.bytes.value, amount.bytes.variance),
            };
            sorts.push(Sort {
                value,
                variance,
                line: if row == NONE {
                    usize::MAX
                } else {
                    row as usize + 1
                },
            })
        })
    };
    let row_of = rows
        .groups
        .as_ref()
        .map(|groups| groups.renumbered(&rows.row_of_group));
    let row_of_class = |class: ClassId| match &row_of {
        Some(row_of) => row_of.of_class(class),
        None => Some(NONE),
    };
    let of_class: IdVec<ClassId, Option<SortId>> = profile
        .classes()
        .enumerate()
        .map(|(id, class)| Some(number(row_of_class(id)?, class.kind)))
        .collect();
    let mut changes = Changes::new(profile);
    scope.for_each(|stay| {
        let sort = of_class[stay.class].unwrap_or_else(|| {
            let row = row_of
                .as_ref()
                .map_or(NONE, |row_of| row_of.of(profile, stay));
            number(row, profile.classes()[stay.class].kind)
        });
        changes.add(sort, stay.start, stay.end);
    });
    (sorts, changes)
}

/// A value and how far it went.
#[derive(Clone, Copy, Default)]
struct Extent {
    value: f64,
    low: f64,
    high: f64,
}

impl Extent {
    fn begin(&mut self) {
        (self.low, self.high) = (self.value, self.value);
    }

    #[inline]
    fn add(&mut self, change: f64, is_seen: bool) {
        self.value += change;
        if is_seen {
            self.note();
        }
    }

    #[inline]
    fn note(&mut self) {
        self.low = self.low.min(self.value);
        self.high = self.high.max(self.value);
    }

    fn put(&self, line: &mut Line) {
        // Rounding errors must not leave a little less than nothing.
        let clean = |value: f64| if value < 1e-6 { 0.0 } else { value };
        line.values.push(clean(self.value));
        line.low.push(clean(self.low));
        line.high.push(clean(self.high));
    }
}
