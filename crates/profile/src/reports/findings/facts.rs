//! The reports that rules look at.

use crate::estimate::Amount;
use crate::groups::{GroupBy, Groups, Label};
use crate::options::Look;
use crate::reports::blocks::{BlockRow, BlocksOptions, blocks};
use crate::reports::leaks::{LeakOptions, Leaks, leaks};
use crate::reports::peak::{PeakOptions, PeakReport, peak_with_rows};
use crate::reports::temporary::{Temporary, TemporaryOptions, Within, temporary_of_groups};
use crate::reports::{SHORT, largest};
use crate::scope::Scope;
use crate::store::Peak;

use super::rules::{LEAST_OF_BLOCK, LEAST_OF_PEAK};

/// The reports that rules look at, each attributed to own functions.
pub(super) struct Facts<'a> {
    pub(super) scope: &'a Scope<'a>,
    /// The parameters of attribution, for the reports that show findings.
    pub(super) look: Vec<(&'static str, String)>,
    /// Live at the peak of the whole program.
    pub(super) at_peak: Amount,
    /// The same by function, with callees.
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

impl<'a> Facts<'a> {
    pub(super) fn new(scope: &'a Scope<'a>, look: &Look) -> Self {
        let profile = scope.profile();
        let tells = profile.tells();
        let look = Look {
            own_code: true,
            all_code: false,
            ..look.clone()
        };
        let peak_options = PeakOptions {
            rows: 1,
            look: look.clone(),
            ..PeakOptions::default()
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
        let functions = Groups::shared(profile, &look.view(GroupBy::Function));
        let when_told = tells.lifetimes.then_some(());
        let (peak, (leaks, temporary)) = rayon::join(
            || {
                let is_chosen = |label: &Label, percent: f64| {
                    percent >= 100.0 * LEAST_OF_PEAK && is_function(label)
                };
                peak_with_rows(scope, &peak_options, &functions, is_chosen).ok()
            },
            || {
                (
                    when_told.map(|()| leaks(scope, &leak_options, None)),
                    when_told.map(|()| temporary_of_groups(scope, &temporary_options, &functions)),
                )
            },
        );
        // One pass over all blocks for all that only needs to count them.
        let Peak { moment, .. } = profile.peak(scope.estimator());
        let counts = scope.counts_of(|stay| [stay.is_live_at(moment), stay.is_promoted()]);
        let column = |i: usize| -> Vec<u32> { counts.iter().map(|counts| counts[i]).collect() };
        let [live_counts, promoted_counts] = [column(0), column(1)];
        let at_peak = scope.total_of(&live_counts);
        let heaviest = profile
            .classes()
            .iter()
            .zip(&live_counts)
            .filter(|(_, n)| **n > 0)
            .map(|(class, _)| scope.weights()[class.kind].bytes.value)
            .fold(0.0, f64::max);
        // It takes two passes over all blocks, and mostly there is none that is large enough.
        let is_any_large = tells.lifetimes && heaviest >= LEAST_OF_BLOCK * at_peak.bytes.value;
        let largest_block = is_any_large.then(|| {
            let options = BlocksOptions {
                rows: 1,
                hide: look.hide.clone(),
                ..BlocksOptions::default()
            };
            blocks(&scope.at_peak(), &options).rows.pop()
        });
        let inclusive = functions
            .inclusive_sums_of_stacks(scope, || scope.by_stack_of(&live_counts))
            .unwrap_or_default();
        let by_size = tells.sizes.then(|| {
            let sizes = Groups::shared(profile, &look.view(GroupBy::Size));
            let sums = sizes.add_up(scope, &counts);
            let sums: Vec<Amount> = sums.into_iter().map(|[live, _]| live).collect();
            largest_groups(&sizes, &sums, 1)
        });
        Self {
            scope,
            look: parameters(&look),
            at_peak,
            under_calls: largest_groups(&functions, &inclusive, usize::MAX),
            by_size: by_size.unwrap_or_default(),
            largest_block: largest_block.flatten(),
            peak,
            leaks,
            temporary,
            promoted: scope.total_of(&promoted_counts),
        }
    }
}

/// The groups with most memory, but that of stacks without own code.
fn largest_groups(groups: &Groups, sums: &[Amount], n: usize) -> Vec<(Label, Amount)> {
    let bytes: Vec<f64> = sums.iter().map(|sum| sum.bytes.value).collect();
    largest(&bytes, usize::MAX)
        .into_iter()
        .map(|group| (groups.labels[group].clone(), sums[group]))
        .filter(|(label, _)| is_function(label))
        .take(n)
        .collect()
}

/// Returns false for the names of stacks without own code.
pub(super) fn is_function(label: &Label) -> bool {
    !label.name.starts_with('(')
}

/// The parameters of attribution to own code.
fn parameters(look: &Look) -> Vec<(&'static str, String)> {
    let mut parameters = vec![("own-code", "true".to_owned())];
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
