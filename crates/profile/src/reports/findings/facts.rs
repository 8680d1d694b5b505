//! The reports that rules look at.

use crate::amount::Amount;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::Look;
use crate::reports::blocks::{BlockRow, BlocksOptions, blocks};
use crate::reports::leaks::{LeakMarks, LeakOptions, Leaks, leak_groups, leaks_of_sums};
use crate::reports::peak::{PeakOptions, PeakReport, peak_with_rows};
use crate::reports::temporary::{
    Temporary, TemporaryMarks, TemporaryOptions, Within, temporary_of_sums,
};
use crate::reports::{SHORT, largest};
use crate::scope::Scope;
use crate::selection::Stay;
use crate::store::Moment;

use super::rules::{LEAST_OF_BLOCK, LEAST_OF_PEAK};

/// The reports that rules look at, each attributed to own functions.
pub(super) struct Facts<'a> {
    pub(super) scope: &'a Scope<'a>,
    /// The parameters of attribution, for the reports that show findings.
    pub(super) look: Vec<(&'static str, String)>,
    /// Live at the peak of the whole program.
    pub(super) at_peak: Amount,
    /// The same by function.
    pub(super) by_function: Vec<(Label, Amount)>,
    /// The same with callees.
    pub(super) under_calls: Vec<(Label, Amount)>,
    /// The same by size.
    pub(super) by_size: Vec<(Label, Amount)>,
    /// The largest block of it.
    pub(super) largest_block: Option<BlockRow>,
    pub(super) peak: Option<PeakReport>,
    /// Of sources that tell when blocks die.
    pub(super) leaks: Option<Leaks>,
    pub(super) temporary: Option<Temporary>,
    pub(super) promoted: Amount,
}

/// Reports that are ready but for a pass over all blocks, in which these are counted.
pub(super) struct Preparation<'a> {
    scope: &'a Scope<'a>,
    look: Look,
    leak_options: LeakOptions,
    leak_marks: LeakMarks,
    temporary_options: TemporaryOptions,
    temporary_marks: TemporaryMarks<'a>,
    peak: Moment,
}

impl<'a> Preparation<'a> {
    pub(super) fn new(scope: &'a Scope<'a>, look: &Look) -> Self {
        let profile = scope.profile();
        let look = Look {
            own_code: true,
            all_code: false,
            ..look.clone()
        };
        let leak_options = LeakOptions {
            by: GroupBy::Function,
            look: look.clone(),
            ..LeakOptions::default()
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of the run"
        )]
        let short = (profile.duration() * 1e6 * SHORT) as u64;
        let temporary_options = TemporaryOptions {
            by: GroupBy::Function,
            within: Within(short),
            rows: 2,
            look: look.clone(),
        };
        Self {
            leak_marks: LeakMarks::new(scope, &leak_options),
            temporary_marks: TemporaryMarks::new(scope, &temporary_options),
            peak: profile.peak(scope.estimator()).moment,
            scope,
            look,
            leak_options,
            temporary_options,
        }
    }

    /// The properties of a block: [`LIVE`], [`PROMOTED`], those of [`LEAKS`], and of [`TEMPORARY`].
    #[inline]
    pub(super) fn marks(&self, stay: Stay) -> [bool; MARKS] {
        let [old, gained, lost] = self.leak_marks.of(stay);
        let [is_temporary, is_promoted_in_vain, is_there] = self.temporary_marks.of(stay);
        [
            stay.is_live_at(self.peak),
            stay.is_promoted(),
            old,
            gained,
            lost,
            is_temporary,
            is_promoted_in_vain,
            is_there,
        ]
    }
}

/// The number of properties that blocks are counted by.
pub(in crate::reports) const MARKS: usize = 8;

/// The place of the blocks that are live at the peak of the whole program.
pub(in crate::reports) const LIVE: usize = 0;

/// The place of the blocks that were promoted.
pub(in crate::reports) const PROMOTED: usize = 1;

/// The places of what leaks are found by.
const LEAKS: [usize; 3] = [2, 3, 4];

/// The places of what temporary memory is found by.
const TEMPORARY: [usize; 3] = [5, 6, ALL];

/// The place of all blocks.
pub(in crate::reports) const ALL: usize = 7;

impl<'a> Facts<'a> {
    /// The reports, given the number of blocks of each class with each of the marks, and of others behind them.
    pub(super) fn new<const N: usize>(
        preparation: &'a Preparation<'a>,
        counts: &[[u32; N]],
    ) -> Self {
        let Preparation {
            scope,
            look,
            leak_options,
            leak_marks,
            temporary_options,
            ..
        } = preparation;
        let profile = scope.profile();
        let tells = profile.tells();
        let peak_options = PeakOptions {
            rows: 1,
            look: look.clone(),
            ..PeakOptions::default()
        };
        let functions = Groups::shared(profile, &look.view(GroupBy::Function));
        let tells_lifetimes = tells.lifetimes.then_some(());
        let find_peak = || {
            let is_chosen = |label: &Label, percent: f64| {
                percent >= 100.0 * LEAST_OF_PEAK && is_function(label)
            };
            peak_with_rows(scope, &peak_options, &functions, is_chosen).ok()
        };
        let find_leaks = |()| {
            let groups = leak_groups(scope, leak_options);
            let sums = groups.add_up_columns(scope, counts, LEAKS);
            leaks_of_sums(scope, leak_options, None, leak_marks, &groups, sums)
        };
        let find_temporary = |()| {
            let sums = functions.add_up_columns(scope, counts, TEMPORARY);
            temporary_of_sums(scope, temporary_options, &functions, &sums)
        };
        let (peak, (leaks, temporary, live)) = rayon::join(find_peak, || {
            (
                tells_lifetimes.map(find_leaks),
                tells_lifetimes.map(find_temporary),
                LiveAtPeak::new(scope, look, &functions, &column(counts, LIVE)),
            )
        });
        // It takes two passes over all blocks, and mostly there is none that is large enough.
        let at_peak = live.total.bytes.value;
        let is_any_large = tells.lifetimes && live.heaviest >= LEAST_OF_BLOCK * at_peak;
        let largest_block = is_any_large.then(|| {
            let options = BlocksOptions {
                rows: 1,
                hide: look.hide.clone(),
                ..BlocksOptions::default()
            };
            blocks(&scope.at_peak(), &options).rows.pop()
        });
        Self {
            scope,
            look: parameters(look),
            at_peak: live.total,
            by_function: live.by_function,
            under_calls: live.under_calls,
            by_size: live.by_size,
            largest_block: largest_block.flatten(),
            peak,
            leaks,
            temporary,
            promoted: scope.total_of(&column(counts, PROMOTED)),
        }
    }
}

/// The blocks that are live at the peak of the whole program.
struct LiveAtPeak {
    total: Amount,
    /// The most that one of them stands for.
    heaviest: f64,
    by_function: Vec<(Label, Amount)>,
    under_calls: Vec<(Label, Amount)>,
    by_size: Vec<(Label, Amount)>,
}

impl LiveAtPeak {
    fn new(scope: &Scope<'_>, look: &Look, functions: &Groups, counts: &[u32]) -> Self {
        let profile = scope.profile();
        let heaviest = profile
            .classes()
            .iter()
            .zip(counts)
            .filter(|(_, n)| **n > 0)
            .map(|(class, _)| scope.weights()[class.kind].bytes.value)
            .fold(0.0, f64::max);
        let inclusive = functions
            .inclusive_sums_of_stacks(scope, || scope.by_stack_of(counts))
            .unwrap_or_default();
        let columns: Vec<[u32; 1]> = counts.iter().map(|&n| [n]).collect();
        let largest_of = |groups: &Groups, n| {
            let sums = groups.add_up(scope, &columns);
            let sums: Vec<Amount> = sums.into_iter().flatten().collect();
            largest_at_peak(scope, groups, &sums, n)
        };
        let by_size = profile.tells().sizes.then(|| {
            let sizes = Groups::shared(profile, &look.view(GroupBy::Size));
            largest_of(&sizes, 1)
        });
        let mut by_function = largest_of(functions, usize::MAX);
        by_function.retain(|(_, amount)| !amount.is_empty());
        Self {
            total: scope.as_peak(scope.total_of(counts)),
            heaviest,
            by_function,
            under_calls: largest_at_peak(scope, functions, &inclusive, usize::MAX),
            by_size: by_size.unwrap_or_default(),
        }
    }
}

/// One of the marks that blocks of each class were counted by.
fn column<const N: usize>(counts: &[[u32; N]], mark: usize) -> Vec<u32> {
    counts.iter().map(|counts| counts[mark]).collect()
}

/// The groups with most memory live at the peak, but that of stacks without own code.
fn largest_at_peak(
    scope: &Scope<'_>,
    groups: &Groups,
    sums: &[Amount],
    n: usize,
) -> Vec<(Label, Amount)> {
    let bytes: Vec<f64> = sums.iter().map(|sum| sum.bytes.value).collect();
    largest(&bytes, usize::MAX)
        .into_iter()
        .map(|group| (groups.labels[group].clone(), scope.as_peak(sums[group])))
        .filter(|(label, _)| is_function(label))
        .take(n)
        .collect()
}

/// Returns false for the names of stacks without own code.
pub(super) fn is_function(label: &Label) -> bool {
    !label.name.starts_with('(')
}

/// The parameters of attribution, in lists of functions.
fn parameters(look: &Look) -> Vec<(&'static str, String)> {
    let mut parameters = Vec::new();
    for pattern in &look.mine {
        parameters.push(("mine", pattern.to_string()));
    }
    for pattern in &look.hide {
        parameters.push(("hide", pattern.to_string()));
    }
    if look.split_anonymous {
        parameters.push(("split-anonymous", "true".to_owned()));
    }
    parameters
}
