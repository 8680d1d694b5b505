//! Changes of live blocks in event order.

use std::marker::PhantomData;

use crate::estimate::Estimator;
use crate::store::{ClassId, Id, IdVec, Moment, NEVER, Profile, saturated};

/// Changes in live blocks per event, by weight class; empty for events that neither start nor end a
/// selected block.
pub(crate) struct Changes<I> {
    of_event: Vec<Change>,
    ids: PhantomData<I>,
}

impl<I: Id> Changes<I> {
    /// No changes for all events.
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            of_event: vec![Change(NOTHING); index(profile.events())],
            ids: PhantomData,
        }
    }

    /// Adds a block that is live from one event until before another one, or [`NEVER`].
    #[inline]
    pub(crate) fn add(&mut self, sort: I, start: u64, end: u64) {
        if start == end {
            // It was never seen alive.
            return;
        }
        let sort = saturated(sort.index());
        self.of_event[index(start)] = Change::new(sort, 1.0);
        if end != NEVER {
            self.of_event[index(end)] = Change::new(sort, -1.0);
        }
    }

    /// The changes between two times: the class of the block, and +1 if it appears or -1 if it
    /// disappears.
    #[inline]
    pub(crate) fn between(
        &self,
        Moment(from): Moment,
        Moment(to): Moment,
    ) -> impl Iterator<Item = (I, f64)> {
        let end = index(to).min(self.of_event.len());
        let events = self.of_event[index(from).min(end)..end].iter();
        events.filter_map(|change| change.get())
    }

    /// The first time within a range with the maximum of live bytes, given the bytes that a block of each
    /// class stands for. Until the last of the `known` moments, no others count.
    pub(crate) fn peak(
        &self,
        bytes: impl Fn(I) -> f64,
        known: &[Moment],
        (Moment(from), Moment(to)): (Moment, Moment),
    ) -> Moment {
        let (mut live, mut most, mut peak) = (0.0, f64::INFINITY, from);
        let unknown = known.last().map_or(0, |&Moment(last)| last);
        let mut known = known
            .iter()
            .map(|&Moment(event)| event)
            .filter(|&event| event > from)
            .peekable();
        let end = index(to).min(self.of_event.len());
        for (event, change) in (1..).zip(&self.of_event[..end]) {
            if event == from + 1 {
                most = live;
            }
            while let Some(moment) = known.next_if(|&moment| moment < event) {
                if live > most {
                    (most, peak) = (live, moment);
                }
            }
            let Some((sort, sign)) = change.get() else {
                continue;
            };
            live += sign * bytes(sort);
            if event > unknown && live > most {
                (most, peak) = (live, event);
            }
        }
        match known.next() {
            Some(moment) if moment <= to && live > most => Moment(moment),
            _ => Moment(peak),
        }
    }
}

/// A class and a sign, in four bytes: memory access dominates the cost of scanning.
#[derive(Clone, Copy)]
struct Change(u32);

/// A change of nothing.
const NOTHING: u32 = 0;

impl Change {
    const LESS: u32 = 1 << 31;

    #[inline]
    fn new(sort: u32, sign: f64) -> Self {
        Self((sort + 1) | if sign < 0.0 { Self::LESS } else { 0 })
    }

    #[inline]
    fn get<I: Id>(self) -> Option<(I, f64)> {
        let sort = (self.0 & !Self::LESS).checked_sub(1)?;
        let sort = I::from_index(sort as usize);
        Some((sort, if self.0 & Self::LESS == 0 { 1.0 } else { -1.0 }))
    }
}

/// Bytes allocated before each event.
pub(crate) struct Allocated(Vec<f64>);

impl Allocated {
    pub(crate) fn new(profile: &Profile, estimator: Estimator) -> Self {
        let weights = profile.weights(estimator);
        let classes = profile.classes().iter();
        let bytes: IdVec<ClassId, f64> = classes
            .map(|class| weights[class.kind].bytes.value)
            .collect();
        let mut sums = vec![0.0; index(profile.events())];
        for segment in profile.segments() {
            for (block, &class) in segment.class.iter().enumerate() {
                sums[index(segment.lives.birth(block))] = bytes[class];
            }
        }
        let mut total = 0.0;
        for sum in &mut sums {
            total += std::mem::replace(sum, total);
        }
        Self(sums)
    }

    /// Bytes allocated from an event to another one, or to the last one.
    #[inline]
    pub(crate) fn between(&self, start: u64, end: u64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0[index(end).min(last)] - self.0[index(start)]
    }
}

/// The number of an event as an index.
#[inline]
fn index(event: u64) -> usize {
    usize::try_from(event).unwrap_or(usize::MAX)
}
