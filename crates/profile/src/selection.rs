//! The selected blocks, and the selected part of their lives.

use std::ops::Range;

use crate::parallel;
use crate::store::{ClassId, Moment, NEVER, Profile, SEGMENT, Segment, Zone};

/// A set of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

/// The bits of a range whose start is a multiple of 64.
fn bits_of(range: Range<usize>, is_in: impl Fn(usize) -> bool) -> Vec<u64> {
    let word = |first: usize| {
        (first..range.end.min(first + 64))
            .fold(0, |bits, i| bits | u64::from(is_in(i)) << (i - first))
    };
    range.clone().step_by(64).map(word).collect()
}

impl Bits {
    pub(crate) fn full(len: usize) -> Self {
        Self::from_fn(len, |_| true)
    }

    /// The numbers that a condition holds for, found on all cores.
    pub(crate) fn from_fn(len: usize, is_in: impl Fn(usize) -> bool + Sync) -> Self {
        // Threads do not pay for less.
        const PART: usize = 1024 * 64;
        let parts = parallel::map(len.div_ceil(PART), |part| {
            bits_of(part * PART..len.min((part + 1) * PART), &is_in)
        });
        Self {
            words: parts.concat(),
            len,
        }
    }

    /// The blocks that a condition holds for, found on all cores. The condition is asked of places in segments, and only of segments
    /// with events for which it `may_hold`.
    pub(crate) fn of_blocks(
        profile: &Profile,
        may_hold: impl Fn(Zone) -> bool + Sync,
        is_in: impl Fn(&Segment, usize) -> bool + Sync,
    ) -> Self {
        let len = profile.len();
        let segments = parallel::map(profile.segment_count(), |number| {
            let blocks = SEGMENT.min(len - number * SEGMENT);
            if !may_hold(profile.zone(number)) {
                return vec![0; blocks.div_ceil(64)];
            }
            let segment = profile.segment(number);
            bits_of(0..blocks, |i| is_in(&segment, i))
        });
        Self {
            words: segments.concat(),
            len,
        }
    }

    fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
        self
    }

    pub(crate) fn or(mut self, other: &Self) -> Self {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        self
    }

    pub(crate) fn not(mut self) -> Self {
        for word in &mut self.words {
            *word = !*word;
        }
        if let Some(last) = self.words.last_mut()
            && !self.len.is_multiple_of(64)
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
        self
    }
}

/// The blocks that a query is true of.
///
/// A block that was allocated on the minor heap and promoted has two *stays*: one on each heap. A
/// query that speaks of heaps is asked of each stay, and selects stays; any other query selects
/// whole lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Blocks whose first stay was selected, or all of their life.
    first: Bits,
    /// Blocks whose stay after promotion was selected; `None` for whole lives.
    second: Option<Bits>,
}

/// A selected block and the part of its life that counts: from the event `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) block: usize,
    pub(crate) class: ClassId,
    pub(crate) start: u64,
    /// [`NEVER`] if it outlives the trace.
    pub(crate) end: u64,
    /// The times when the block was allocated, promoted and freed, whatever part of that counts;
    /// [`NEVER`] if that did not happen.
    pub(crate) birth: u64,
    pub(crate) promotion: u64,
    pub(crate) death: u64,
    /// The times of these three events in microseconds, if the block was stored with them.
    times: Option<[u64; 3]>,
}

impl Stay {
    /// A block of a segment, by its place there, and a part of its life.
    pub(crate) fn new(segment: &Segment, i: usize, (start, end): (u64, u64)) -> Self {
        let lives = &segment.lives;
        let times = segment.times.as_deref();
        Self {
            block: i,
            class: segment.class[i],
            start,
            end,
            birth: lives.birth(i),
            promotion: lives.promotion(i),
            death: lives.death(i),
            times: times.map(|times| [times.birth[i], times.promotion(i), times.death[i]]),
        }
    }

    /// The time of its start, in microseconds.
    #[inline]
    pub(crate) fn start_time(&self, profile: &Profile) -> u64 {
        self.time(profile, self.start)
    }

    /// The time of its end, in microseconds; that of the last event if it outlives the trace.
    #[inline]
    pub(crate) fn end_time(&self, profile: &Profile) -> u64 {
        self.time(profile, self.end)
    }

    /// Microseconds from its start to its end.
    #[inline]
    pub(crate) fn age(&self, profile: &Profile) -> u64 {
        self.end_time(profile)
            .saturating_sub(self.start_time(profile))
    }

    /// The time of one of its events, in microseconds.
    #[inline]
    pub(crate) fn time(&self, profile: &Profile, event: u64) -> u64 {
        match self.times {
            None => profile.time(event),
            Some(times) => self.stored_time(profile, event, times),
        }
    }

    // Not inlined: it makes loops over blocks in memory slower.
    #[inline(never)]
    fn stored_time(
        &self,
        profile: &Profile,
        event: u64,
        [birth, promotion, death]: [u64; 3],
    ) -> u64 {
        match event {
            NEVER => profile.time(NEVER),
            event if event == self.birth => birth,
            event if event == self.promotion => promotion,
            event if event == self.death => death,
            event => profile.time(event),
        }
    }

    #[inline]
    pub(crate) fn is_promoted(&self) -> bool {
        self.promotion != NEVER
    }

    /// Returns true if it ends before the trace does.
    #[inline]
    pub(crate) fn ends(&self) -> bool {
        self.end != NEVER
    }

    /// Returns true if the block is collected at its end, and not promoted then.
    #[inline]
    pub(crate) fn is_collected(&self) -> bool {
        self.ends() && self.end == self.death
    }

    /// Returns true if it is live at a given time.
    #[inline]
    pub(crate) fn is_live_at(&self, Moment(moment): Moment) -> bool {
        self.start < moment && self.end >= moment
    }
}

impl Selection {
    /// All blocks of a profile.
    #[must_use]
    pub fn all(profile: &Profile) -> Self {
        Self::lives(Bits::full(profile.len()))
    }

    pub(crate) fn lives(blocks: Bits) -> Self {
        Self {
            first: blocks,
            second: None,
        }
    }

    pub(crate) fn stays(first: Bits, second: Bits) -> Self {
        Self {
            first,
            second: Some(second),
        }
    }

    /// Returns true if parts of lives are selected, each on one heap.
    pub(crate) fn is_of_heaps(&self) -> bool {
        self.second.is_some()
    }

    /// The number of selected blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.second {
            None => self.first.count(),
            Some(second) => self.first.clone().or(second).count(),
        }
    }

    /// Returns true if all blocks of its profile are selected, with their whole lives.
    pub(crate) fn is_all(&self, profile: &Profile) -> bool {
        self.second.is_none() && self.first.count() == profile.len()
    }

    /// Returns true if no block is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Only the blocks that `keep` holds for.
    pub(crate) fn filter(&self, profile: &Profile, keep: impl Fn(Stay) -> bool) -> Self {
        let mut kept = vec![0_u64; profile.len().div_ceil(64)];
        self.for_each(profile, |stay| {
            kept[stay.block / 64] |= u64::from(keep(stay)) << (stay.block % 64);
        });
        let kept = Bits {
            words: kept,
            len: profile.len(),
        };
        Self {
            first: self.first.clone().and(&kept),
            second: self.second.clone().map(|second| second.and(&kept)),
        }
    }

    /// Only the blocks that are in another selection too, whatever part of their lives it has.
    pub(crate) fn blocks_in_both(&self, other: &Self) -> Self {
        let others = match &other.second {
            None => other.first.clone(),
            Some(second) => other.first.clone().or(second),
        };
        Self {
            first: self.first.clone().and(&others),
            second: self.second.clone().map(|second| second.and(&others)),
        }
    }

    /// Only the stays that are not in another selection.
    pub(crate) fn without(&self, other: &Self, profile: &Profile) -> Self {
        let first = self.first.clone().and(&other.first.clone().not());
        if self.second.is_none() && other.second.is_none() {
            return Self::lives(first);
        }
        let promoted = Bits::of_blocks(
            profile,
            |_| true,
            |segment, i| segment.lives.promotion(i) != NEVER,
        );
        let second = |selection: &Self| match &selection.second {
            Some(second) => second.clone(),
            None => selection.first.clone().and(&promoted),
        };
        Self::stays(first, second(self).and(&second(other).not()))
    }

    /// Hands over the selected stays, in the order of the trace.
    #[inline]
    pub(crate) fn for_each(&self, profile: &Profile, f: impl FnMut(Stay)) {
        self.for_each_in(0..self.first.words.len(), profile, f);
    }

    /// Adds up something over all selected stays, on all cores: on fewer if the sums, of so many bytes each, would take too much
    /// memory.
    pub(crate) fn fold<T: Send>(
        &self,
        profile: &Profile,
        sum_bytes: usize,
        empty: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, Stay) + Sync,
        join: impl Fn(&mut T, T),
    ) -> T {
        let words = self.first.words.len();
        // Threads do not pay for a few thousand blocks.
        let parts = rayon::current_num_threads()
            .min(words / 1024)
            .min(profile.report_memory() / sum_bytes.max(1))
            .max(1);
        let parts = self.equal_parts(parts);
        let mut sums = parallel::map(parts.len(), |part| {
            let mut sum = empty();
            self.for_each_in(parts[part].clone(), profile, |stay| add(&mut sum, stay));
            sum
        });
        let mut total = sums.remove(0);
        for sum in sums {
            join(&mut total, sum);
        }
        total
    }

    /// Ranges of words with about the same number of selected blocks each: those of a time window are close together.
    fn equal_parts(&self, parts: usize) -> Vec<Range<usize>> {
        let words = self.first.words.len();
        if parts == 1 {
            return std::iter::once(0..words).collect();
        }
        let blocks = self.first.count().max(1);
        let mut ranges = Vec::with_capacity(parts);
        let (mut start, mut seen) = (0, 0);
        for (place, word) in self.first.words.iter().enumerate() {
            seen += word.count_ones() as usize;
            if seen * parts >= blocks * (ranges.len() + 1) && ranges.len() + 1 < parts {
                ranges.push(start..place + 1);
                start = place + 1;
            }
        }
        ranges.push(start..words);
        ranges
    }

    /// Returns true if a block of some words is selected.
    fn has_any(&self, words: Range<usize>) -> bool {
        let has_any = |bits: &Bits| bits.words[words.clone()].iter().any(|&word| word != 0);
        has_any(&self.first) || self.second.as_ref().is_some_and(has_any)
    }

    // All questions come down to this loop, so what it calls must be compiled into it: hence one
    // call of `f`, and no iterators.
    #[inline]
    fn for_each_in(&self, words: Range<usize>, profile: &Profile, mut f: impl FnMut(Stay)) {
        const WORDS: usize = SEGMENT / 64;
        let mut next = words.start;
        while next < words.end {
            let number = next / WORDS;
            let end = words.end.min((number + 1) * WORDS);
            if !self.has_any(next..end) {
                next = end;
                continue;
            }
            let segment = profile.segment(number);
            let (columns, class) = (segment.lives.columns(), &segment.class[..]);
            let times = segment.times.as_deref();
            for index in next..end {
                let first = self.first.words[index];
                let second = self.second.as_ref().map(|second| second.words[index]);
                let mut rest = first | second.unwrap_or(0);
                while rest != 0 {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    let block = index * 64 + bit as usize;
                    let i = block % SEGMENT;
                    let (birth, promotion, death) = columns.events(i);
                    let (mut start, mut end) = (birth, death);
                    if let Some(second) = second
                        && promotion != NEVER
                    {
                        if first >> bit & 1 == 0 {
                            start = promotion;
                        }
                        if second >> bit & 1 == 0 {
                            end = promotion;
                        }
                    }
                    f(Stay {
                        block,
                        class: class[i],
                        start,
                        end,
                        birth,
                        promotion,
                        death,
                        times: times
                            .map(|times| [times.birth[i], times.promotion(i), times.death[i]]),
                    });
                }
            }
            next = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use heapline_model::{Batch, Birth, Damage, InputSize, Space};

    use super::*;
    use crate::store::{Store, StoreOptions};
    use crate::testing::exact_header;

    #[test]
    fn sets_are_sets() {
        let even = Bits::from_fn(200, |i| i % 2 == 0);
        let third = Bits::from_fn(200, |i| i % 3 == 0);
        let both = even.clone().and(&third);
        assert_eq!(both, Bits::from_fn(200, |i| i % 6 == 0));
        assert_eq!(even.clone().not().count(), 100);
        assert_eq!(even.or(&third).count(), 133);
        assert_eq!(Bits::full(0).not().count(), 0);
        assert_eq!(Bits::full(64).not().count(), 0);
    }

    #[test]
    fn large_sums_are_made_by_fewer_threads() {
        const BLOCKS: u64 = 1 << 18;
        let mut batch = Batch::default();
        let birth = Birth {
            size: 1,
            samples: 1,
            space: Space::Native,
            ..Birth::default()
        };
        for block in 0..BLOCKS {
            batch.birth(block, 0, block, birth, [].into_iter());
        }
        let mut store = Store::new(exact_header(), StoreOptions::default());
        store.append(&batch);
        let profile = store.finish(Damage::default(), InputSize::default());
        let selection = Selection::all(&profile);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(4).build();
        let sums = |sum_bytes: usize| {
            let sums = AtomicUsize::new(0);
            let empty = || {
                sums.fetch_add(1, Ordering::Relaxed);
                0
            };
            let count = || {
                let add = |sum: &mut u64, _| *sum += 1;
                selection.fold(&profile, sum_bytes, empty, add, |sum, part| *sum += part)
            };
            let blocks = threads.as_ref().unwrap().install(count);
            assert_eq!(blocks, BLOCKS);
            sums.into_inner()
        };
        assert_eq!(sums(0), 4);
        assert_eq!(sums(profile.report_memory() / 2), 2);
        assert_eq!(sums(usize::MAX), 1);
    }
}
