//! Events of several lanes in the order of their times.
//!
//! Events are numbered as they come. Lanes hand over their events in packets, so that some come
//! later than events of other lanes that happened after them. Before a snapshot is taken, those
//! numbers are put right: all from the first event that a late one belongs before. What is earlier
//! has its final order.

use super::clock::Clock;
use super::growing::Early;
use super::sealed::Pending;
use super::segment::{Column, Lives, NEVER};
use super::shared::Shared;

/// Which events have to be put in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LateEvents {
    /// The latest time so far.
    latest: u64,
    /// The earliest time of an event that came after a later one.
    earliest: Option<u64>,
    /// The time up to which all events have their final numbers.
    sealed: u64,
    /// Events that happened before that, but came later.
    pub(crate) moved: u64,
}

impl LateEvents {
    #[inline]
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    /// Notes the time of the next event. Returns the time that it gets: no earlier than what has been sealed.
    #[inline]
    pub(crate) fn note(&mut self, time: u64) -> u64 {
        if time < self.latest {
            self.reopen(time);
            self.moved += u64::from(time < self.sealed);
            time.max(self.sealed)
        } else {
            self.latest = time;
            time
        }
    }

    /// Keeps all events up to a time where they are.
    pub(crate) fn seal(&mut self, time: u64) {
        self.sealed = time;
    }

    /// Has all events from a time on put in order.
    #[cold]
    pub(crate) fn reopen(&mut self, time: u64) {
        let time = time.max(self.sealed);
        self.earliest = Some(self.earliest.map_or(time, |earliest| earliest.min(time)));
    }

    /// The time from which on events have to be put in order.
    pub(crate) fn take(&mut self) -> Option<u64> {
        self.earliest.take()
    }
}

/// Notes what happened to a block. False if a damaged source has it twice, or after the block's
/// death: in time, for lanes may note it in any order.
#[expect(
    clippy::inline_always,
    reason = "the column is known where it is called"
)]
#[inline(always)]
pub(crate) fn apply(
    lives: &mut Lives,
    clock: &Clock,
    block: usize,
    column: Column,
    event: u64,
) -> bool {
    let death = lives.death(block);
    let when = |event: u64| (clock.get(event), event);
    let is_taken = match column {
        Column::Promotion if death != NEVER && when(death) < when(event) => true,
        Column::Promotion => lives.promotion(block) != NEVER,
        _ => death != NEVER,
    };
    if !is_taken {
        lives.set(column, block, event);
    }
    !is_taken
}

/// Puts events in the order of their times, all that are not before `from`; those of the same time
/// stay as they are, unless a block would be promoted or die before it is born.
pub(crate) fn sort(
    clock: &mut Clock,
    segments: &mut [&mut Shared<Lives>],
    pending: &mut [Pending],
    early: &mut [Early],
    from: u64,
) {
    // Numbers before this one are final: nothing that is late belongs before them.
    let first = clock.first_after(from);
    let mut times: Vec<u64> = (first..clock.len()).map(|event| clock.get(event)).collect();
    let place = |event: u64| usize::try_from(event - first).unwrap_or(usize::MAX);
    for lives in segments.iter().map(|lives| lives.get()) {
        for block in 0..lives.len() {
            let birth = lives.birth(block);
            let mut earliest = clock.get(birth);
            for event in [lives.promotion(block), lives.death(block)] {
                if event != NEVER && event >= first {
                    let time = &mut times[place(event)];
                    *time = earliest.max(*time);
                    earliest = *time;
                }
            }
        }
    }
    // Of sealed blocks the births have their final times, which are earlier. Stable: see below.
    pending.sort_by_key(|change| (change.block, change.column));
    for changes in pending.chunk_by(|a, b| a.block == b.block) {
        let mut earliest = 0;
        for change in changes.iter().filter(|change| change.event >= first) {
            let time = &mut times[place(change.event)];
            *time = earliest.max(*time);
            earliest = *time;
        }
    }
    // Births come first among events of the same time that were out of order.
    let mut order: Vec<u64> = (0..times.len() as u64).collect();
    order.sort_by_key(|&event| times[usize::try_from(event).unwrap_or(usize::MAX)]);
    let mut rank = vec![0_u64; order.len()];
    clock.truncate(first);
    for (new, &old) in (first..).zip(&order) {
        let old = usize::try_from(old).unwrap_or(usize::MAX);
        rank[old] = new;
        clock.push(times[old]);
    }
    let number = |event: u64| match event {
        event if event < first => event,
        event => rank[place(event)],
    };
    for change in pending {
        change.event = number(change.event);
    }
    for change in early {
        change.event = number(change.event);
    }
    for lives in segments.iter_mut() {
        let is_touched = {
            let lives = lives.get();
            let moved = |event: u64| event != NEVER && number(event) != event;
            (0..lives.len()).any(|block| {
                moved(lives.birth(block))
                    || moved(lives.promotion(block))
                    || moved(lives.death(block))
            })
        };
        if is_touched {
            let lives = lives.get_mut();
            lives.renumber(number);
            put_in_order(lives);
        }
    }
}

/// Swaps events of the same time that are the wrong way round: a block is born, promoted, and dies.
pub(crate) fn put_in_order(lives: &mut Lives) {
    for block in 0..lives.len() {
        for column in [Column::Promotion, Column::Death] {
            let birth = lives.birth(block);
            let event = match column {
                Column::Promotion => lives.promotion(block),
                _ => lives.death(block),
            };
            if event < birth {
                lives.set(column, block, birth);
                lives.set(Column::Birth, block, event);
            }
        }
        let (promotion, death) = (lives.promotion(block), lives.death(block));
        if promotion != NEVER && death < promotion {
            lives.set(Column::Promotion, block, death);
            lives.set(Column::Death, block, promotion);
        }
    }
}
