//! Births, promotions and deaths of the blocks of each kind, counted while a profile grows.

use serde::{Deserialize, Serialize};

use super::ids::{IdVec, KindId};
use super::segment::{Column, Lives, NEVER};

/// The blocks of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) blocks: u64,
    pub(crate) promoted: u64,
    pub(crate) died: u64,
    /// Promoted, and died.
    pub(crate) promoted_and_died: u64,
}

/// The blocks of each kind.
///
/// A pass over all blocks would find the same; this is for questions that need nothing else.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tallies(IdVec<KindId, Tally>);

impl Tallies {
    /// Says that there is another kind.
    pub(crate) fn add_kind(&mut self) {
        self.0.push(Tally::default());
    }

    /// Nothing of so many kinds.
    pub(crate) fn of_kinds(kinds: usize) -> Self {
        Self(vec![Tally::default(); kinds].into())
    }

    /// Counts blocks of which everything is known.
    pub(crate) fn count(&mut self, lives: &Lives, kind: impl Fn(usize) -> KindId) {
        for i in 0..lives.len() {
            let tally = &mut self.0[kind(i)];
            let (promoted, died) = (lives.promotion(i) != NEVER, lives.death(i) != NEVER);
            tally.blocks += 1;
            tally.promoted += u64::from(promoted);
            tally.died += u64::from(died);
            tally.promoted_and_died += u64::from(promoted && died);
        }
    }

    #[inline]
    pub(crate) fn born(&mut self, kind: KindId) {
        self.0[kind].blocks += 1;
    }

    /// Counts what has just happened to a block: its promotion or death.
    #[expect(
        clippy::inline_always,
        reason = "the column is known where it is called"
    )]
    #[inline(always)]
    pub(crate) fn changed(&mut self, kind: KindId, column: Column, lives: &Lives, block: usize) {
        let tally = &mut self.0[kind];
        let is_other = match column {
            Column::Promotion => {
                tally.promoted += 1;
                lives.death(block) != NEVER
            }
            _ => {
                tally.died += 1;
                lives.promotion(block) != NEVER
            }
        };
        tally.promoted_and_died += u64::from(is_other);
    }

    pub(crate) fn by_kind(&self) -> &IdVec<KindId, Tally> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use heapline_model::{Batch, Birth, Damage, InputSize, Space};

    use super::*;
    use crate::query::Query;
    use crate::sampling::Estimator;
    use crate::scope::Scope;
    use crate::store::{Profile, Store, StoreOptions};
    use crate::testing::exact_header;

    /// The tallies that a pass over all blocks finds.
    fn counted(profile: &Profile) -> Vec<Tally> {
        let mut tallies = IdVec::like(profile.kinds(), Tally::default());
        let scope = Scope::new(profile, &Query::default(), Estimator::default());
        scope.for_each(|stay| {
            let tally = &mut tallies[profile.classes()[stay.class].kind];
            let (promoted, died) = (stay.is_promoted(), stay.ends());
            tally.blocks += 1;
            tally.promoted += u64::from(promoted);
            tally.died += u64::from(died);
            tally.promoted_and_died += u64::from(promoted && died);
        });
        tallies.to_vec()
    }

    /// Events before the allocation of their block, twice, of blocks that do not exist, and from lanes
    /// whose clocks disagree.
    #[test]
    fn tallies_are_those_of_all_blocks() {
        let header = exact_header();
        let mut store = Store::new(header, StoreOptions::default());
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut batch = Batch::default();
        for round in 0..20 {
            for n in 0..200 {
                let time = 1000 * round + n + random(300);
                let lane = u16::try_from(random(3)).unwrap();
                let block = random(1500);
                match random(4) {
                    0 => batch.promotion(time, lane, block),
                    1 => batch.death(time, lane, block),
                    _ => {
                        let birth = Birth {
                            size: 8 * random(5),
                            samples: 1,
                            space: Space::ALL[usize::try_from(random(4)).unwrap()],
                            passed: random(10) == 0,
                            ..Birth::default()
                        };
                        batch.birth(time, lane, 200 * round + n, birth, [].into_iter());
                    }
                }
            }
            store.append(&batch);
            batch.clear();
            let profile = store.snapshot(Damage::default(), InputSize::default());
            assert_eq!(profile.tallies().to_vec(), counted(&profile));
        }
        let profile = store.finish(Damage::default(), InputSize::default());
        let tallies = profile.tallies().to_vec();
        assert_eq!(tallies, counted(&profile));
        let both: u64 = tallies.iter().map(|tally| tally.promoted_and_died).sum();
        assert!(both > 10);
    }
}
