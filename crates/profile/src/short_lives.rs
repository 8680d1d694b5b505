//! Finds blocks that live at most some time.

use crate::selection::Stay;
use crate::store::{Moment, Profile};

/// Events of a range, as a power of two.
const SHIFT: u32 = 12;

/// Tells which lives last at most some time.
///
/// The times of two events take longer to look up than all else that reports do with a block. For each range of events at which
/// lives begin, it is known before which event they end in time, and after which they do not: only for lives that end in between,
/// times are looked up.
pub(crate) struct ShortLives<'a> {
    profile: &'a Profile,
    /// Microseconds of the longest one.
    most: u64,
    /// For each range of events, the number of events until a life has lasted too long that begins with the first of them. Empty
    /// if times must be looked up.
    limits: Vec<u64>,
}

impl<'a> ShortLives<'a> {
    pub(crate) fn new(profile: &'a Profile, most: u64) -> Self {
        // Stored blocks have their times with them.
        let has_limits = !profile.is_stored() && profile.known_moments().is_empty();
        let events = if has_limits { profile.events() } else { 0 };
        let limits = (0..events).step_by(1 << SHIFT).map(|first| {
            let Moment(limit) = profile.after(profile.time(first).saturating_add(most));
            limit
        });
        Self {
            profile,
            most,
            limits: limits.collect(),
        }
    }

    /// Returns true if the part of the life of a block between two of its events is short.
    #[inline]
    pub(crate) fn has(&self, stay: Stay, from: u64, to: u64) -> bool {
        let range = usize::try_from(from >> SHIFT).unwrap_or(usize::MAX);
        let limit = |range: usize| self.limits.get(range).copied();
        match (limit(range), limit(range + 1)) {
            (Some(limit), _) if to < limit => true,
            (_, Some(limit)) if to >= limit => false,
            _ => self.compare(stay, from, to),
        }
    }

    // Not inlined: it is rare.
    #[inline(never)]
    fn compare(&self, stay: Stay, from: u64, to: u64) -> bool {
        let age = stay.time(self.profile, to);
        age.saturating_sub(stay.time(self.profile, from)) <= self.most
    }
}

#[cfg(test)]
mod tests {
    use heapline_model::{Batch, Birth, Damage, InputSize, Space};
    use proptest::prelude::*;

    use super::*;
    use crate::query::Query;
    use crate::sampling::Estimator;
    use crate::scope::Scope;
    use crate::store::{NEVER, Store, StoreOptions};
    use crate::testing::exact_header;

    /// Blocks that are born after some pause and die after some of the births that follow.
    fn profile(blocks: &[(u64, usize)]) -> Profile {
        let mut batch = Batch::default();
        let mut dying = vec![Vec::new(); blocks.len()];
        let mut time = 0;
        for (number, &(pause, births)) in blocks.iter().enumerate() {
            time += pause;
            let birth = Birth {
                size: 1,
                samples: 1,
                space: Space::Native,
                ..Birth::default()
            };
            batch.birth(time, 0, number as u64, birth, [].into_iter());
            if let Some(dying) = dying.get_mut(number + births) {
                dying.push(number as u64);
            }
            for &block in &dying[number] {
                batch.death(time, 0, block);
            }
        }
        let mut store = Store::new(exact_header(), StoreOptions::default());
        store.append(&batch);
        store.finish(Damage::default(), InputSize::default())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn lives_are_those_whose_times_are_close(
            blocks in prop::collection::vec((0..5_u64, 0..9000_usize), 5000..20_000),
            most in 0..20_000_u64,
        ) {
            let profile = profile(&blocks);
            let short = ShortLives::new(&profile, most);
            prop_assert!(short.limits.len() > 1);
            let scope = Scope::new(&profile, &Query::default(), Estimator::default());
            let mut wrong = 0;
            scope.for_each(|stay| {
                if stay.end != NEVER {
                    let is_short = stay.age(&profile) <= most;
                    wrong += usize::from(short.has(stay, stay.start, stay.end) != is_short);
                }
            });
            prop_assert_eq!(wrong, 0);
        }
    }
}
