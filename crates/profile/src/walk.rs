//! Changes of live blocks in event order.

use std::marker::PhantomData;

use crate::by_event::ByEvent;
use crate::store::{Id, Moment, NEVER, Profile, saturated};

/// Changes in live blocks per event, by weight class; none for events that neither start nor end a selected block.
pub(crate) struct Changes<'a, I> {
    /// The class and a sign, in four bytes: memory access dominates the cost of scanning.
    of_event: ByEvent<'a>,
    ids: PhantomData<I>,
}

/// The bit of a block that disappears.
const LESS: u32 = 1 << 31;

impl<'a, I: Id> Changes<'a, I> {
    /// No changes for all events.
    pub(crate) fn new(profile: &'a Profile) -> Self {
        Self {
            of_event: ByEvent::new(profile),
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
        let sort = saturated(sort.index()) + 1;
        self.of_event.set(start, sort);
        if end != NEVER {
            self.of_event.set(end, sort | LESS);
        }
    }

    /// Hands over the changes between two times: the class of the block, and +1 if it appears or -1 if it disappears. Times must be
    /// asked for in order.
    #[inline]
    pub(crate) fn for_each_between(
        &mut self,
        Moment(from): Moment,
        Moment(to): Moment,
        mut f: impl FnMut(I, f64),
    ) {
        self.of_event.for_each(from, to, |_, change| {
            let (sort, sign) = parts(change);
            f(sort, sign);
        });
    }

    /// The first time within a range with the maximum of live bytes, given the bytes that a block of each
    /// class stands for. Until the last of the `known` moments, no others count.
    pub(crate) fn peak(
        &mut self,
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
        let mut has_begun = false;
        self.of_event.for_each(0, to, |event, change| {
            if event >= from && !has_begun {
                (has_begun, most) = (true, live);
            }
            while let Some(moment) = known.next_if(|&moment| moment <= event) {
                if live > most {
                    (most, peak) = (live, moment);
                }
            }
            let (sort, sign) = parts(change);
            live += sign * bytes(sort);
            if event >= unknown && live > most {
                (most, peak) = (live, event + 1);
            }
        });
        match known.next() {
            Some(moment) if moment <= to && live > most => Moment(moment),
            _ => Moment(peak),
        }
    }
}

/// The class and the sign of a change.
#[inline]
fn parts<I: Id>(change: u32) -> (I, f64) {
    let sort = I::from_index((change & !LESS) as usize - 1);
    (sort, if change & LESS == 0 { 1.0 } else { -1.0 })
}
