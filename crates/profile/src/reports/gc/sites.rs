//! The sites whose blocks were promoted in some pauses.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::estimate::Estimate;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::Look;
use crate::reports::Figures;
use crate::scope::Scope;
use crate::store::NEVER;

/// Sites that are named.
const NAMED: usize = 3;

/// The sampled blocks that were promoted in a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PromotedSites {
    /// All of them.
    pub total: Figures,
    /// The sites with most of it.
    pub rows: Vec<PromotedSite>,
    /// Sites that are not shown.
    pub hidden_rows: usize,
}

/// A site whose blocks were promoted in a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PromotedSite {
    /// Its name.
    pub label: Label,
    /// What was promoted of it.
    pub bytes: Estimate,
    /// In percent of all that was promoted, as the samples have it.
    pub percent: f64,
}

/// The amount by pause and group.
type Sums = HashMap<(u32, u32), Amount>;

/// Times in which promotions are looked for.
#[derive(Debug, Default)]
pub(super) struct Promotions {
    /// By the lane of blocks, or by none for those of any lane: when it begins and ends, in microseconds, and whose it is.
    expected: HashMap<Option<u16>, Vec<(u64, u64, u32)>>,
}

impl Promotions {
    /// Looks for promotions of a pause, of blocks of a lane or of any, between two times in nanoseconds. The program is told of a
    /// promotion in the collection or soon after it, so that the second time is that of the next collection.
    pub(super) fn expect(&mut self, number: usize, lane: Option<u16>, (from, to): (u64, u64)) {
        // Events have whole microseconds.
        let from = (from / 1000).saturating_sub(1);
        let to = if to == u64::MAX { to } else { to / 1000 };
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let expected = self.expected.entry(lane).or_default();
        expected.push((from, to.max(from + 1), number));
    }

    /// The pause in which a block of a lane was promoted.
    fn of(&self, lane: u16, micros: u64) -> Option<u32> {
        [Some(lane), None].into_iter().find_map(|lane| {
            let expected = self.expected.get(&lane)?;
            let after = expected.partition_point(|&(from, ..)| from <= micros);
            let &(_, to, number) = expected.get(after.checked_sub(1)?)?;
            (micros < to).then_some(number)
        })
    }

    /// The sites of each pause; `None` for those that were not looked for, or if promotions are not known.
    pub(super) fn find(
        mut self,
        scope: &Scope<'_>,
        look: &Look,
        pauses: usize,
    ) -> Vec<Option<PromotedSites>> {
        let mut found = vec![None; pauses];
        let profile = scope.profile();
        // Where the recording was summed up, it is not known when single blocks were promoted.
        let known_from = profile.boundaries().last().copied().unwrap_or(0);
        for expected in self.expected.values_mut() {
            expected.retain(|&(from, ..)| from >= known_from);
            expected.sort_unstable();
        }
        self.expected.retain(|_, expected| !expected.is_empty());
        if !profile.tells().promotions || self.expected.is_empty() {
            return found;
        }
        let look = look.of_list(GroupBy::Site);
        let groups = Groups::shared(profile, &look.view(GroupBy::Site));
        let sums = scope.fold(
            Sums::new,
            |sums, stay| {
                if stay.promotion == NEVER {
                    return;
                }
                let lane = profile.kinds()[profile.classes()[stay.class].kind].lane;
                let time = stay.time(profile, stay.promotion);
                if let Some(pause) = self.of(lane, time) {
                    let key = (pause, groups.of(profile, stay));
                    *sums.entry(key).or_default() += scope.weight(&stay);
                }
            },
            |all, part| {
                for (key, amount) in part {
                    *all.entry(key).or_default() += amount;
                }
            },
        );
        let mut by_pause: Vec<Vec<(u32, Amount)>> = vec![Vec::new(); pauses];
        for ((pause, group), amount) in sums {
            by_pause[pause as usize].push((group, amount));
        }
        for &(.., number) in self.expected.values().flatten() {
            let sums = std::mem::take(&mut by_pause[number as usize]);
            found[number as usize] = Some(sites(scope, &groups, sums));
        }
        found
    }
}

fn sites(scope: &Scope<'_>, groups: &Groups, mut sums: Vec<(u32, Amount)>) -> PromotedSites {
    sums.sort_by(|(a, of_a), (b, of_b)| {
        let order = of_b.bytes.value.total_cmp(&of_a.bytes.value);
        order.then(a.cmp(b))
    });
    let total: Amount = sums.iter().map(|(_, amount)| *amount).sum();
    let rows = sums.iter().take(NAMED).map(|(group, amount)| PromotedSite {
        label: groups.labels[*group as usize].clone(),
        bytes: amount.bytes.estimate(),
        percent: 100.0 * amount.bytes.value / total.bytes.value,
    });
    PromotedSites {
        rows: rows.collect(),
        total: Figures::of_total(scope, &total),
        hidden_rows: sums.len().saturating_sub(NAMED),
    }
}
