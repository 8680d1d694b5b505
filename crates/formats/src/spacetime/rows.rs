//! From what was alive at each snapshot to rows with a beginning and an end.
//!
//! A snapshot tells how many blocks and words of an allocation point were alive, and how many words
//! had been allocated there by then; not which. Rows are made so that both numbers come out at every
//! snapshot: where more is alive than at the last one, the increase is a row that begins; where
//! less is, as much ends. What was allocated and is not alive is a row that was never seen alive.

use super::series::{Contents, NO_STACK, Snapshot};

/// The snapshot at which rows end that are alive at the last one.
pub(super) const NEVER: u32 = u32::MAX;

/// Blocks of one allocation point that appear at one snapshot and are gone at another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) point: u32,
    pub(super) start: u32,
    /// [`NEVER`] if they are alive at the last snapshot.
    pub(super) end: u32,
    pub(super) words: u64,
    pub(super) blocks: u64,
}

/// Words that were allocated between two snapshots, and not seen alive at the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) point: u32,
    pub(super) at: u32,
    pub(super) words: u64,
}

/// The rows of a profile.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) live: Vec<Row>,
    pub(super) passed: Vec<Passed>,
    /// Words that were alive although they had never been allocated: 0 unless the file is wrong.
    pub(super) never_allocated: u64,
}

/// The figures of a point at a snapshot where they differ from the one before.
#[derive(Clone, Copy, Debug)]
struct Change {
    point: u32,
    at: u32,
    words: u64,
    blocks: u64,
    /// Words allocated since the start.
    total: u64,
}

impl Rows {
    /// The rows of all points. Memory without a point is that of one more, the last.
    pub(super) fn new(contents: &Contents) -> Self {
        let mut changes = changes(contents);
        // Stable: in the order of snapshots.
        changes.sort_by_key(|change| change.point);
        let mut rows = Self::default();
        for of_point in changes.chunk_by(|a, b| a.point == b.point) {
            rows.point(of_point);
        }
        rows
    }

    fn point(&mut self, changes: &[Change]) {
        let point = changes[0].point;
        let values = |value: fn(&Change) -> u64| {
            strips(changes.iter().map(move |change| (change.at, value(change))))
        };
        let words = values(|change| change.words);
        let blocks = values(|change| change.blocks);
        let mut rows: Vec<Row> = words
            .into_iter()
            .map(|(start, end, words)| Row {
                point,
                start,
                end,
                words,
                blocks: 0,
            })
            .collect();
        // Blocks mostly come and go with their words.
        let times = |row: &Row| (row.start, row.end);
        rows.sort_unstable_by_key(times);
        let with_words = rows.len();
        for (start, end, blocks) in blocks {
            match rows[..with_words].binary_search_by_key(&(start, end), times) {
                Ok(place) => rows[place].blocks = blocks,
                Err(_) => rows.push(Row {
                    point,
                    start,
                    end,
                    words: 0,
                    blocks,
                }),
            }
        }
        self.live.append(&mut rows);

        let (mut live, mut total) = (0_u64, 0_u64);
        // Words that were alive before they were counted as allocated.
        let mut owed = 0_u64;
        for change in changes {
            let grown = change.words.saturating_sub(live);
            let allocated = change.total.saturating_sub(total);
            owed = owed.saturating_add(grown);
            let paid = owed.min(allocated);
            owed -= paid;
            let words = allocated - paid;
            if words > 0 {
                self.passed.push(Passed {
                    point,
                    at: change.at,
                    words,
                });
            }
            live = change.words;
            total = total.max(change.total);
        }
        self.never_allocated = self.never_allocated.saturating_add(owed);
    }
}

/// Cuts the area below a curve into horizontal strips: from, to, height.
fn strips(values: impl Iterator<Item = (u32, u64)>) -> Vec<(u32, u32, u64)> {
    let mut done = Vec::new();
    let mut open: Vec<(u32, u64)> = Vec::new();
    let mut height = 0_u64;
    for (at, value) in values {
        if value > height {
            open.push((at, value - height));
        }
        let mut excess = height.saturating_sub(value);
        while excess > 0 {
            let Some((start, top)) = open.last_mut() else {
                break;
            };
            let cut = excess.min(*top);
            done.push((*start, at, cut));
            *top -= cut;
            excess -= cut;
            if *top == 0 {
                open.pop();
            }
        }
        height = value;
    }
    done.extend(
        open.into_iter()
            .map(|(start, height)| (start, NEVER, height)),
    );
    done
}

/// The changes of all points, in the order of snapshots.
fn changes(contents: &Contents) -> Vec<Change> {
    let nowhere = contents.points.len();
    let mut states = vec![State::default(); nowhere + 1];
    let mut changes = Vec::new();
    // Points that were alive at the last snapshot.
    let mut alive: Vec<u32> = Vec::new();
    let mut touched: Vec<u32> = Vec::new();
    let mut all_totals = 0_u64;
    for (at, snapshot) in (0..).zip(&contents.snapshots) {
        for &point in &alive {
            let state = &mut states[point as usize];
            (state.words, state.blocks) = (0, 0);
        }
        touched.append(&mut alive);
        for live in &snapshot.live {
            let state = &mut states[live.point as usize];
            // A point that is there twice has both.
            state.words = state.words.saturating_add(live.words);
            state.blocks = state.blocks.saturating_add(live.blocks);
            alive.push(live.point);
            touched.push(live.point);
        }
        for &(point, total) in &snapshot.totals {
            let state = &mut states[point as usize];
            if total > state.total {
                all_totals = all_totals.saturating_add(total - state.total);
                state.total = total;
                touched.push(point);
            }
        }
        let unattributed = unattributed(snapshot, all_totals);
        if let Some((words, allocated)) = unattributed {
            let state = &mut states[nowhere];
            state.words = words;
            state.total = state.total.max(allocated);
            touched.push(u32::try_from(nowhere).unwrap_or(NO_STACK));
        }
        for point in touched.drain(..) {
            states[point as usize].note(point, at, &mut changes);
        }
    }
    // What was allocated after the last snapshot.
    let at = u32::try_from(contents.snapshots.len()).unwrap_or(NEVER);
    for (number, point) in (0..).zip(&contents.points) {
        let state = &mut states[number as usize];
        state.total = state.total.max(point.at_exit.unwrap_or(0));
        state.note(number, at, &mut changes);
    }
    changes
}

/// Live words without an allocation point, and how many such words were allocated by then: what the
/// garbage collector counted and no point did.
fn unattributed(snapshot: &Snapshot, of_points: u64) -> Option<(u64, u64)> {
    let gc = snapshot.gc.as_ref()?;
    let words = gc.unattributed();
    let allocated = gc.allocated().saturating_sub(of_points);
    Some((words, allocated.max(words)))
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    words: u64,
    blocks: u64,
    total: u64,
    noted: (u64, u64, u64),
}

impl State {
    /// Adds what is new.
    fn note(&mut self, point: u32, at: u32, changes: &mut Vec<Change>) {
        let now = (self.words, self.blocks, self.total);
        if now != self.noted {
            self.noted = now;
            changes.push(Change {
                point,
                at,
                words: self.words,
                blocks: self.blocks,
                total: self.total,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spacetime::series::{Live, Point};

    #[test]
    fn strips_add_up_to_the_curve() {
        let curve = [(0, 5), (1, 9), (2, 3), (3, 3), (4, 7), (6, 0), (7, 2)];
        let strips = strips(curve.into_iter());
        for (at, value) in curve {
            let alive = strips
                .iter()
                .filter(|(start, end, _)| *start <= at && at < *end);
            assert_eq!(alive.map(|(_, _, height)| height).sum::<u64>(), value);
        }
        assert_eq!(strips.len(), 5);
    }

    /// Live words and blocks at each snapshot, and words allocated by then, are those of the file.
    #[test]
    fn rows_add_up_to_the_snapshots() {
        // Words, blocks, total.
        let history = [(10, 3, 12), (4, 3, 12), (6, 1, 40), (6, 2, 42), (0, 0, 42)];
        let snapshots = history.map(|(words, blocks, total)| Snapshot {
            live: vec![Live {
                point: 0,
                blocks,
                words,
            }],
            totals: vec![(0, total)],
            ..Snapshot::default()
        });
        let contents = Contents {
            points: vec![Point {
                annotation: 7,
                stack: NO_STACK,
                at_exit: Some(50),
            }],
            snapshots: snapshots.to_vec(),
            ..Contents::default()
        };
        let rows = Rows::new(&contents);
        for (at, (words, blocks, total)) in (0..).zip(history) {
            let live = rows
                .live
                .iter()
                .filter(|row| row.start <= at && at < row.end);
            let sums = live.fold((0, 0), |sums, row| {
                (sums.0 + row.words, sums.1 + row.blocks)
            });
            assert_eq!(sums, (words, blocks), "at {at}");
            let born = rows.live.iter().filter(|row| row.start <= at);
            let passed = rows.passed.iter().filter(|passed| passed.at <= at);
            let allocated = born.map(|row| row.words).sum::<u64>()
                + passed.map(|passed| passed.words).sum::<u64>();
            assert_eq!(allocated, total, "at {at}");
        }
        let last = rows.passed.last().unwrap();
        assert_eq!((last.at, last.words), (5, 8));
        assert_eq!(rows.never_allocated, 0);
    }
}
