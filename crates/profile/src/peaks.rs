//! Finds when most is alive, of all blocks in scope and of parts of them.
//!
//! Live bytes are summed up for ranges of events first. In a range, no more can be alive than at its start and what is born in
//! it: only ranges that may have the peak are looked at event by event. That takes memory for the ranges, not for all events.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::sampling::Estimator;
use crate::scope::Scope;
use crate::selection::Stay;
use crate::store::{Moment, NEVER};
use crate::walk::Changes;

/// Events of a range at least, as a power of two.
const SHIFT: u32 = 10;

/// Ranges at most, as a power of two.
const RANGES: u32 = 16;

/// Ranges that each search looks at in the first pass over all blocks. Further passes look at twice as many each, if that takes no
/// more memory than reports may.
const FIRST: usize = 64;

/// The most groups at once.
pub(crate) const MOST_GROUPS: usize = 100;

/// The search for the first moments within a range with most live bytes.
pub(crate) struct Peaks<'a> {
    scope: &'a Scope<'a>,
    range: (Moment, Moment),
    /// Events of a range, as a power of two.
    shift: u32,
    /// Of all blocks. Kept, because peaks without some of them start from it.
    changes: OnceLock<Arc<Vec<Change>>>,
}

impl<'a> Peaks<'a> {
    pub(crate) fn new(scope: &'a Scope<'a>, range: (Moment, Moment)) -> Self {
        let events = scope.profile().events().max(1);
        let shift = events.ilog2().saturating_sub(RANGES).max(SHIFT);
        Self {
            scope,
            range,
            shift,
            changes: OnceLock::new(),
        }
    }

    /// The peak of all blocks in scope.
    pub(crate) fn of_all(&self) -> Moment {
        self.find(0..1, |_| 0)[0]
    }

    /// The peaks without each of some groups. The group of a block is a number, or a larger one if it is in none.
    pub(crate) fn without_each(
        &self,
        groups: usize,
        group_of: impl Fn(Stay) -> u32 + Sync,
    ) -> Vec<Moment> {
        self.find(1..groups.min(MOST_GROUPS) + 1, group_of)
    }

    /// Some peaks: 0 is that of all blocks, any other the one without the group of the number before.
    fn find(&self, numbers: Range<usize>, group_of: impl Fn(Stay) -> u32 + Sync) -> Vec<Moment> {
        let (scope, range) = (self.scope, self.range);
        let known = scope.profile().known_moments();
        if !known.is_empty() {
            return peaks_at_known_moments(scope, range, &known, numbers, group_of);
        }
        let from = range.0.0.min(range.1.0);
        let to = range.1.0.min(scope.profile().events());
        let ranges = Ranges {
            shift: self.shift,
            all: Arc::clone(self.changes.get_or_init(|| self.changes())),
            groups: changes(scope, self.shift, numbers.end - 1, &group_of),
        };
        let mut searches: Vec<Search> = numbers
            .map(|number| Search::new(&ranges, number, from, to))
            .collect();
        // Lists of steps grow by doubling, and those of all cores are put together.
        let steps_at_once = scope.profile().report_memory() / (4 * size_of::<Step>());
        let most = steps_at_once >> self.shift;
        let mut many = FIRST;
        loop {
            let wanted = choose_ranges(&mut searches, ranges.all.len(), many, most);
            if wanted.iter().all(|&searches| searches == 0) {
                break;
            }
            let mut steps = steps(scope, &ranges, &wanted, &group_of);
            steps.sort_unstable_by_key(|step| step.event);
            for search in &mut searches {
                search.look_at(&steps, &ranges, &wanted);
            }
            many = many.saturating_mul(2);
        }
        searches
            .into_iter()
            .map(|search| Moment(search.peak))
            .collect()
    }

    /// The changes of all blocks in scope. Those of the whole profile are kept for the next report.
    fn changes(&self) -> Arc<Vec<Change>> {
        let (scope, shift) = (self.scope, self.shift);
        let profile = scope.profile();
        let compute = || changes(scope, shift, 1, &|_| 0);
        if scope.selection().is_all(profile) {
            return profile
                .memo()
                .get(&WholeProfile(scope.estimator(), shift), compute);
        }
        Arc::new(compute())
    }
}

/// The key of the changes of all blocks of a profile.
#[derive(Clone, PartialEq)]
struct WholeProfile(Estimator, u32);

/// The peaks of traces of which nothing is known between some moments.
fn peaks_at_known_moments(
    scope: &Scope<'_>,
    range: (Moment, Moment),
    known: &[Moment],
    numbers: Range<usize>,
    group_of: impl Fn(Stay) -> u32,
) -> Vec<Moment> {
    let profile = scope.profile();
    let find = |number: usize| {
        let group = number.checked_sub(1);
        let mut changes = Changes::new(profile);
        scope.for_each(|stay| {
            if group.is_none_or(|group| group_of(stay) as usize != group) {
                let kind = profile.classes()[stay.class].kind;
                changes.add(kind, stay.start, stay.end);
            }
        });
        changes.peak(|kind| scope.weights()[kind].bytes.value, known, range)
    };
    numbers.map(find).collect()
}

/// A change of live bytes in a range of events.
#[derive(Clone, Copy, Default)]
struct Change {
    /// Bytes that appear, less those that disappear.
    bytes: f64,
    /// Bytes that appear.
    born: f64,
}

/// The changes in each range of events, one group of blocks after the other.
fn changes(
    scope: &Scope<'_>,
    shift: u32,
    groups: usize,
    group_of: &(impl Fn(Stay) -> u32 + Sync),
) -> Vec<Change> {
    if groups == 0 {
        return Vec::new();
    }
    let range_of = |event| range_of(event, shift);
    let len = range_of(scope.profile().events()) + 1;
    scope.fold_large(
        len * groups * size_of::<Change>(),
        || vec![Change::default(); len * groups],
        |changes, stay| {
            let group = group_of(stay) as usize;
            // A block that ends as it starts was never seen alive.
            if group >= groups || stay.start == stay.end {
                return;
            }
            let bytes = scope.bytes(&stay);
            let change = &mut changes[len * group + range_of(stay.start)];
            change.bytes += bytes;
            change.born += bytes;
            if stay.end != NEVER {
                changes[len * group + range_of(stay.end)].bytes -= bytes;
            }
        },
        |changes, part| {
            for (change, more) in changes.iter_mut().zip(part) {
                change.bytes += more.bytes;
                change.born += more.born;
            }
        },
    )
}

/// Changes of live bytes by range of events.
struct Ranges {
    /// Events of a range, as a power of two.
    shift: u32,
    /// Of all blocks.
    all: Arc<Vec<Change>>,
    /// Of the blocks of each group, one after the other.
    groups: Vec<Change>,
}

impl Ranges {
    /// The range of an event.
    fn of(&self, event: u64) -> usize {
        range_of(event, self.shift)
    }

    /// The changes of a search: of all blocks, or of those that are not in a group.
    fn of_search(&self, number: usize) -> impl Iterator<Item = Change> {
        let len = self.all.len();
        let group = number
            .checked_sub(1)
            .map(|group| &self.groups[group * len..][..len]);
        self.all.iter().enumerate().map(move |(range, change)| {
            let less = group.map_or(Change::default(), |group| group[range]);
            Change {
                bytes: change.bytes - less.bytes,
                born: change.born - less.born,
            }
        })
    }
}

/// The search for one peak.
struct Search {
    /// 0 for the peak of all blocks, otherwise that of the group that is left out, plus one.
    number: usize,
    from: u64,
    to: u64,
    /// Live bytes at the start of each range.
    at_start: Vec<f64>,
    /// The ranges that may have the peak, with the most that can be alive in each; the largest last.
    left: Vec<(f64, usize)>,
    most: f64,
    peak: u64,
}

impl Search {
    fn new(ranges: &Ranges, number: usize, from: u64, to: u64) -> Self {
        let mut at_start = Vec::with_capacity(ranges.all.len());
        let mut left = Vec::new();
        let mut live = 0.0;
        for (range, Change { bytes, born }) in ranges.of_search(number).enumerate() {
            at_start.push(live);
            let (first, last) = (ranges.of(from), ranges.of(to.saturating_sub(1)));
            // Where the range of moments begins, there is something to start with.
            if range == first || (first < range && range <= last && born > 0.0) {
                left.push((live + born, range));
            }
            live += bytes;
        }
        left.sort_unstable_by(|(most, range), (other, than)| {
            most.total_cmp(other).then(than.cmp(range))
        });
        Self {
            number,
            from,
            to,
            at_start,
            left,
            most: f64::NEG_INFINITY,
            peak: from,
        }
    }

    /// The next range to look at, the most promising first.
    fn next_range(&mut self) -> Option<usize> {
        // Sums in another order differ by their rounding.
        let least = self.most - self.most.abs() * 1e-9;
        if let Some((most, range)) = self.left.pop()
            && most >= least
        {
            return Some(range);
        }
        // All others are smaller.
        self.left.clear();
        None
    }

    /// Looks at the ranges that were chosen, event by event.
    fn look_at(&mut self, steps: &[Step], ranges: &Ranges, wanted: &[u128]) {
        let number = self.number;
        let is_wanted = |range: usize| wanted[range] >> number & 1 != 0;
        let first = ranges.of(self.from);
        let mut is_first_empty = is_wanted(first);
        for steps in steps.chunk_by(|a, b| ranges.of(a.event) == ranges.of(b.event)) {
            let range = ranges.of(steps[0].event);
            if is_wanted(range) {
                is_first_empty &= range != first;
                self.look_at_range(self.at_start[range], range == first, steps);
            }
        }
        if is_first_empty {
            // Nothing happens in it, but it has the first moment.
            self.note(self.at_start[first], self.from);
        }
    }

    /// Looks at the events of a range, given the live bytes at its start.
    fn look_at_range(&mut self, mut live: f64, is_first: bool, steps: &[Step]) {
        let mut has_begun = !is_first;
        for step in steps {
            if !has_begun && step.event >= self.from {
                has_begun = true;
                self.note(live, self.from);
            }
            if step.event >= self.to {
                break;
            }
            if self.number.checked_sub(1) != Some(step.group as usize) {
                live += step.bytes;
                if has_begun {
                    self.note(live, step.event + 1);
                }
            }
        }
        if !has_begun {
            self.note(live, self.from);
        }
    }

    /// Notes what is live at a moment.
    fn note(&mut self, live: f64, moment: u64) {
        let is_first = match live.total_cmp(&self.most) {
            Ordering::Greater => true,
            Ordering::Equal => moment < self.peak,
            Ordering::Less => false,
        };
        if is_first {
            (self.most, self.peak) = (live, moment);
        }
    }
}

/// Chooses ranges for all searches in turn: `many` for each, but no more than `most` different ones in all, and at least one for
/// each. Searches that leave out a little want nearly the same ranges. Returns, by range, the searches that look at it, as bits.
fn choose_ranges(searches: &mut [Search], ranges: usize, many: usize, most: usize) -> Vec<u128> {
    let mut wanted = vec![0_u128; ranges];
    let mut different = 0;
    for _ in 0..many {
        let mut is_done = true;
        for search in &mut *searches {
            if let Some(range) = search.next_range() {
                is_done = false;
                different += usize::from(wanted[range] == 0);
                wanted[range] |= 1 << search.number;
            }
        }
        if is_done || different >= most {
            break;
        }
    }
    wanted
}

/// A block that appears or disappears.
struct Step {
    event: u64,
    bytes: f64,
    group: u32,
}

/// The steps in the ranges that are wanted.
fn steps(
    scope: &Scope<'_>,
    ranges: &Ranges,
    wanted: &[u128],
    group_of: &(impl Fn(Stay) -> u32 + Sync),
) -> Vec<Step> {
    // Small enough for the fastest cache.
    let wanted: Vec<bool> = wanted.iter().map(|&searches| searches != 0).collect();
    let is_wanted = |event: u64| wanted[ranges.of(event)];
    scope.fold(
        Vec::new,
        |steps, stay| {
            if stay.start == stay.end {
                return;
            }
            if is_wanted(stay.start) {
                steps.push(Step {
                    event: stay.start,
                    bytes: scope.bytes(&stay),
                    group: group_of(stay),
                });
            }
            if stay.end != NEVER && is_wanted(stay.end) {
                steps.push(Step {
                    event: stay.end,
                    bytes: -scope.bytes(&stay),
                    group: group_of(stay),
                });
            }
        },
        |steps, mut part| steps.append(&mut part),
    )
}

/// The range of an event, where ranges have so many events, as a power of two.
#[inline]
fn range_of(event: u64, shift: u32) -> usize {
    usize::try_from(event >> shift).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use heapline_model::{Batch, Birth, Damage, InputSize, Space};
    use proptest::prelude::*;

    use super::*;
    use crate::query::Query;
    use crate::store::{Profile, Store, StoreOptions};
    use crate::testing::exact_header;

    /// A profile of blocks with sizes that are born and die in some order.
    fn profile(events: &[(u64, bool)]) -> Profile {
        let header = exact_header();
        let mut batch = Batch::default();
        let mut live: Vec<u64> = Vec::new();
        for (time, &(number, is_birth)) in (0..).zip(events) {
            if is_birth || live.is_empty() {
                let birth = Birth {
                    size: number % 50,
                    samples: 1,
                    space: Space::Native,
                    ..Birth::default()
                };
                batch.birth(time, 0, time, birth, [].into_iter());
                live.push(time);
            } else {
                let place = usize::try_from(number).unwrap() % live.len();
                batch.death(time, 0, live.swap_remove(place));
            }
        }
        let mut store = Store::new(header, StoreOptions::default());
        store.append(&batch);
        store.finish(Damage::default(), InputSize::default())
    }

    /// A search that wants some ranges, the first one most.
    fn search(number: usize, ranges: &[usize]) -> Search {
        let left = ranges.iter().rev().zip(1_u32..);
        Search {
            number,
            from: 0,
            to: u64::MAX,
            at_start: Vec::new(),
            left: left
                .map(|(&range, most)| (f64::from(most), range))
                .collect(),
            most: f64::NEG_INFINITY,
            peak: 0,
        }
    }

    #[test]
    fn searches_share_the_limit_of_ranges() {
        let mut searches = [search(0, &[5, 1, 2, 3]), search(1, &[5, 4, 2, 1])];
        let mut choose = |many, most| choose_ranges(&mut searches, 6, many, most);
        // After 5, which both want, there are two more in the next turn.
        assert_eq!(choose(64, 2), [0, 1, 0, 0, 2, 3]);
        // No room for any: one for each.
        assert_eq!(choose(64, 0), [0, 0, 3, 0, 0, 0]);
        assert_eq!(choose(1, 64), [0, 2, 0, 1, 0, 0]);
        assert_eq!(choose(usize::MAX, 64), [0; 6]);
    }

    proptest! {
        #[test]
        fn peaks_are_those_of_a_plain_scan(
            events in prop::collection::vec((any::<u64>(), prop::bool::weighted(0.55)), 1..400),
            shift in 0..8_u32,
            ends in any::<(u64, u64)>(),
            is_of_part in any::<bool>(),
        ) {
            let profile = profile(&events);
            let query = Query::parse(if is_of_part { "size >= 20" } else { "" }).unwrap();
            let scope = Scope::new(&profile, &query, Estimator::default());
            let last = profile.events();
            let mut ends = [ends.0 % (last + 1), ends.1 % (last + 1)];
            ends.sort_unstable();
            let range = (Moment(ends[0]), Moment(ends[1]));
            let group_of = |stay: Stay| u32::try_from(stay.block % 4).unwrap();
            let peaks = Peaks { shift, ..Peaks::new(&scope, range) };
            let mut found = vec![peaks.of_all()];
            found.extend(peaks.without_each(3, group_of));
            let all_but = |group: Option<u32>| {
                let mut changes = Changes::new(&profile);
                scope.for_each(|stay| if Some(group_of(stay)) != group {
                    changes.add(profile.classes()[stay.class].kind, stay.start, stay.end);
                });
                changes.peak(|kind| scope.weights()[kind].bytes.value, &[], range)
            };
            let expected = [None, Some(0), Some(1), Some(2)].map(all_but);
            prop_assert_eq!(found, expected);
        }
    }
}
