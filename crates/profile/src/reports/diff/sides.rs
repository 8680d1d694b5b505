//! The two sides of a comparison: traces or time windows, and their normalisation.

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::change::{Change, Sides};
use crate::options::{self, OptionError};
use crate::query::{TimeError, TimePoint, Window};
use crate::scope::Scope;
use crate::store::Moment;

/// The normalisation of the second trace or window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Normalise {
    /// Compare amounts as they are.
    None,
    /// Scale the second trace or window to the duration of the first.
    Time,
    /// Scale the second trace or window to the total allocation of the first.
    Allocated,
}

/// The measure that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Compared {
    /// Allocated memory.
    #[default]
    Allocated,
    /// Memory live at the peak of each trace.
    Peak,
    /// Memory live at the end of each trace or window.
    End,
}

impl Compared {
    /// The part of a whole trace that is compared.
    #[must_use]
    pub fn of_trace(self, scope: Scope<'_>) -> Scope<'_> {
        match self {
            Self::Allocated => scope,
            Self::Peak => scope.at_peak(),
            Self::End => scope.at_end(),
        }
    }

    /// The part of a window that is compared.
    fn of_window<'a>(
        self,
        scope: &Scope<'a>,
        (from, to): (Moment, Moment),
    ) -> Result<Scope<'a>, WindowError> {
        match self {
            Self::Allocated => Ok(scope.allocated_in((from, to))),
            Self::Peak => Err(WindowError::NoPeak),
            Self::End => Ok(scope.live_at(to)),
        }
    }
}

/// The error of a window that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WindowError {
    /// It is not in the run.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// It was asked for its peak.
    #[error("a window has no peak; choose end to compare what is live at its end")]
    NoPeak,
}

/// Options for the sides of a comparison.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DiffSides {
    /// Compare two time windows of one trace: 0s..10s, ..peak, 50%.. (give it twice)
    #[arg(long, value_name = "FROM..TO", help_heading = "Select")]
    pub window: Vec<Window>,

    /// Select the measure to compare
    #[arg(long, value_enum, default_value_t)]
    pub of: Compared,

    /// Normalise the second trace or window to the same duration or total allocation [default: time for
    /// allocations in windows of different lengths, otherwise none]
    #[arg(long, value_enum, hide_short_help = true)]
    pub per: Option<Normalise>,
}

impl Default for DiffSides {
    fn default() -> Self {
        options::defaults()
    }
}

impl DiffSides {
    /// Checks options that do not go together.
    pub fn validate(&self) -> Result<(), OptionError> {
        match &self.window[..] {
            [] | [_, _] => Ok(()),
            [first, ..] => Err(OptionError::new(
                "window",
                first.text(),
                "must be given exactly twice",
            )),
        }
    }

    /// The comparison of two traces.
    #[must_use]
    pub fn of_traces<'a>(&self, before: Scope<'a>, after: Scope<'a>) -> Comparison<'a> {
        let per = self.per.unwrap_or(Normalise::None);
        let sizes = [&before, &after].map(|scope| match per {
            Normalise::None => 1.0,
            Normalise::Time => scope.profile().duration(),
            Normalise::Allocated => everything(scope).total().bytes.value,
        });
        let elsewhere = (self.of == Compared::Peak).then(|| {
            [
                live_at_peak_of(&after, &before),
                live_at_peak_of(&before, &after),
            ]
        });
        Comparison {
            before: self.of.of_trace(before),
            after: self.of.of_trace(after),
            elsewhere,
            per,
            scale: ratio(sizes),
        }
    }

    /// The comparison of two windows of a trace.
    pub fn of_windows<'a>(
        &self,
        scope: &Scope<'a>,
        before: &Window,
        after: &Window,
    ) -> Result<Comparison<'a>, WindowError> {
        /// Windows whose lengths differ by less are of the same length.
        const SAME_LENGTH: f64 = 0.01;
        let moments = [
            before.moments(scope.profile(), scope.estimator())?,
            after.moments(scope.profile(), scope.estimator())?,
        ];
        let lengths = [before, after].map(|window| {
            let (from, to) = window.seconds(scope.profile(), scope.estimator());
            to - from
        });
        let differ = (lengths[0] - lengths[1]).abs() > SAME_LENGTH * lengths[0].max(lengths[1]);
        let per = self.per.unwrap_or(match self.of {
            // A longer window has more allocations. What is live at its end does not depend on its length.
            Compared::Allocated if differ => Normalise::Time,
            _ => Normalise::None,
        });
        let sizes = match per {
            Normalise::None => [1.0; 2],
            Normalise::Time => lengths,
            Normalise::Allocated => {
                let everything = everything(scope);
                moments.map(|window| everything.allocated_in(window).total().bytes.value)
            }
        };
        Ok(Comparison {
            before: self.of.of_window(scope, moments[0])?,
            after: self.of.of_window(scope, moments[1])?,
            elsewhere: None,
            per,
            scale: ratio(sizes),
        })
    }
}

/// Two scopes that are compared.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// The first trace or window.
    pub before: Scope<'a>,
    /// The second trace or window.
    pub after: Scope<'a>,
    /// For peaks: what is live before and after at the moment of the other's peak, relative to the lengths of the runs.
    pub elsewhere: Option<[Scope<'a>; 2]>,
    /// The normalisation of amounts after.
    pub per: Normalise,
    /// The factor for all amounts after.
    pub scale: f64,
}

impl<'a> Comparison<'a> {
    /// Compares amounts as they are.
    #[must_use]
    pub fn unscaled(before: Scope<'a>, after: Scope<'a>) -> Self {
        Self {
            before,
            after,
            elsewhere: None,
            per: Normalise::None,
            scale: 1.0,
        }
    }

    /// The scopes of the comparison: before, after, the blocks on both sides, and [elsewhere](Self::elsewhere).
    pub(super) fn scopes(&self) -> [Option<Scope<'a>>; SCOPES] {
        let [before, after] = match &self.elsewhere {
            Some([before, after]) => [Some(before.clone()), Some(after.clone())],
            None => [None, None],
        };
        let own = [&self.before, &self.after].map(|scope| Some(scope.clone()));
        let [own_before, own_after] = own;
        [own_before, own_after, self.both(), before, after]
    }

    /// A change, with its significance.
    pub(super) fn change(&self, sides: &Sides) -> Change {
        if self.elsewhere.is_some() {
            Change::of_peaks(sides, self.scale)
        } else {
            Change::new(sides, self.scale)
        }
    }

    /// The blocks on both sides, if they are of the same profile: these cancel out, and do not add to the error.
    fn both(&self) -> Option<Scope<'a>> {
        let (before, after) = (&self.before, &self.after);
        std::ptr::eq(before.profile(), after.profile()).then(|| {
            let both = before.selection().blocks_in_both(after.selection());
            before.with(both)
        })
    }
}

/// The scopes of a comparison.
pub(super) const SCOPES: usize = 5;

/// Selects the blocks that are live when as much of the run has passed as at the peak of another one.
fn live_at_peak_of<'a>(other: &Scope<'_>, scope: &Scope<'a>) -> Scope<'a> {
    let run = other.profile();
    let share = run.peak(other.estimator()).time / run.duration();
    let share = if share.is_finite() { share } else { 1.0 };
    let time = TimePoint::Fraction(share);
    scope.live_at(time.moment(scope.profile(), scope.estimator()))
}

fn everything<'a>(scope: &Scope<'a>) -> Scope<'a> {
    scope.with(crate::Selection::all(scope.profile()))
}

/// The factor that makes amounts after comparable to those before.
fn ratio([before, after]: [f64; 2]) -> f64 {
    if before > 0.0 && after > 0.0 {
        before / after
    } else {
        1.0
    }
}
