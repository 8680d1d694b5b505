//! Memory over time.

mod live;
mod weights;

use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Subject;
use crate::branches::Division;
use crate::callers::by_caller;
use crate::estimate::Sum;
use crate::groups::{GroupBy, Groups, Label, NONE};
use crate::options::{self, Look, OptionError};
use crate::query::{Pattern, TimeError, TimePoint, Window};
use crate::scope::Scope;
use crate::store::{Moment, NEVER};
use crate::timeline::{self, Timeline};

/// The measure of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Live bytes.
    #[default]
    LiveBytes,
    /// Live blocks.
    LiveBlocks,
    /// Live words, headers included.
    LiveWords,
    /// Words allocated since the start.
    AllocatedWords,
    /// Bytes allocated since the start.
    AllocatedBytes,
    /// Bytes allocated per second.
    AllocationRate,
    /// Bytes promoted since the start.
    PromotedBytes,
    /// Bytes promoted per second.
    PromotionRate,
}

impl Measure {
    fn is_live(self) -> bool {
        matches!(self, Self::LiveBytes | Self::LiveBlocks | Self::LiveWords)
    }

    fn is_rate(self) -> bool {
        matches!(self, Self::AllocationRate | Self::PromotionRate)
    }

    /// Returns true if it measures promotions, which only sources with a minor heap tell.
    #[must_use]
    pub fn is_promotion(self) -> bool {
        matches!(self, Self::PromotedBytes | Self::PromotionRate)
    }
}

/// Points of time of a series unless `points` says otherwise.
const POINTS: usize = 100;

/// Limit of the numbers in a series: points of all groups.
const MAX_CELLS: usize = 2_000_000;

/// Options of [`series`].
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SeriesOptions {
    /// Select the measure
    #[arg(long, value_enum, default_value_t)]
    pub measure: Measure,

    /// Split the series by (see also --branches in --help)
    #[arg(long, value_enum)]
    pub by: Option<GroupBy>,

    /// Split the series by the functions that divide it best
    ///
    /// A block belongs to the innermost of these functions that is in its stack. There are at most 64.
    #[arg(long, conflicts_with_all = ["by", "callers_of"], hide_short_help = true)]
    pub branches: bool,

    /// Show the N largest groups and merge the others
    #[arg(long, short = 'n', alias = "rows", default_value_t = 10, value_name = "N", value_parser = options::number(0, 1000))]
    pub top: usize,

    /// Set the number of time intervals [default: the terminal's width, or 100]
    #[arg(long, value_name = "N", value_parser = options::number(1, 100_000), hide_short_help = true)]
    pub points: Option<usize>,

    /// Start at this time: 10s, 20%, peak
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Select",
        hide_short_help = true
    )]
    pub from: Option<TimePoint>,

    /// End before this time
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Select",
        hide_short_help = true
    )]
    pub to: Option<TimePoint>,

    /// Show allocations of matching functions, split by caller
    ///
    /// Repeat to follow a call chain, from the allocating function up.
    #[arg(long, value_name = "PATTERN", hide_short_help = true)]
    pub callers_of: Vec<Pattern>,

    /// Options for the display of functions
    #[command(flatten)]
    #[serde(flatten)]
    pub look: Look,
}

impl Default for SeriesOptions {
    fn default() -> Self {
        options::defaults()
    }
}

impl SeriesOptions {
    fn points(&self) -> usize {
        self.points.unwrap_or(POINTS)
    }

    /// The grouping by which the series is split, if any.
    fn split(&self) -> Option<GroupBy> {
        let has_functions = self.branches || !self.callers_of.is_empty();
        self.by.or(has_functions.then_some(GroupBy::Function))
    }

    /// The display of functions. Callers of a function are asked for by its name, which may be that of a library's.
    fn look(&self) -> Look {
        match self.split() {
            Some(by) if self.callers_of.is_empty() => self.look.of_list(by),
            _ => self.look.clone(),
        }
    }

    /// The functions whose branches are the groups, if these are branches.
    fn division(&self, scope: &Scope<'_>) -> Option<Division> {
        self.branches.then(|| {
            let view = self.look().view(GroupBy::Function);
            let weights = weights::of_stacks(scope, self.measure);
            Division::new(scope.profile(), &view, &weights, self.top)
        })
    }

    /// The part of the run that is shown, if it is not the whole.
    fn window(&self) -> Option<Window> {
        (self.from.is_some() || self.to.is_some()).then(|| {
            Window::new(
                self.from.clone().unwrap_or(TimePoint::Start),
                self.to.clone().unwrap_or(TimePoint::End),
            )
        })
    }

    /// Checks options that do not go together.
    pub fn validate(&self) -> Result<(), OptionError> {
        let points = self.points();
        if self.split().is_some() && self.top.saturating_mul(points) > MAX_CELLS {
            return Err(OptionError::new(
                "points",
                points.to_string(),
                "x top must not exceed 2,000,000",
            ));
        }
        match self.by {
            Some(by) if !self.callers_of.is_empty() && !by.is_of_frames() => Err(OptionError::new(
                "by",
                by.name(),
                "must be function, site, address, file or module with callers-of",
            )),
            _ => Ok(()),
        }
    }
}

/// Memory over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Series {
    /// The trace and estimator of the report.
    pub subject: Subject,
    /// The measure.
    pub measure: Measure,
    /// Seconds from the start of the run to the first interval; 0 without a window.
    pub from: f64,
    /// Seconds since the start, of each point.
    pub times: Vec<f64>,
    /// All blocks in scope.
    pub total: Line,
    /// 1.96 standard errors of the total at each point.
    pub error: Vec<f64>,
    /// The largest groups, and the rest as the last one, if there is a rest.
    pub groups: Vec<GroupLine>,
    /// The functions whose callers the groups are, as they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<String>>"))]
    pub callers_of: Vec<String>,
}

/// One line. Between a point and the one before it the value was never below `low` nor above
/// `high`, and was both: no peak is lost, however few points there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Line {
    /// The value at each point.
    pub values: Vec<f64>,
    /// The least value since the point before.
    pub low: Vec<f64>,
    /// The largest value since the point before.
    pub high: Vec<f64>,
}

/// A line of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GroupLine {
    /// Its name.
    pub label: Label,
    /// True for the group that contains all groups not shown.
    pub is_other: bool,
    /// The query that selects the blocks of a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub query: Option<String>,
    /// The line.
    #[serde(flatten)]
    pub line: Line,
}

/// The series of the blocks in scope. Fails if the window is not in the run.
pub fn series(scope: &Scope<'_>, options: &SeriesOptions) -> Result<Series, TimeError> {
    let look = options.look();
    let division = options.division(scope);
    // Where no function stands out, there is nothing to split by.
    let is_undivided = division.as_ref().is_some_and(Division::is_empty);
    let groups = options.split().filter(|_| !is_undivided).map(|by| {
        let view = match &division {
            Some(division) => division.look(&look).view(by),
            None => look.view(by),
        };
        match &options.callers_of[..] {
            [] => Groups::shared(scope.profile(), &view),
            functions => Arc::new(by_caller(scope.profile(), &view, functions)),
        }
    });
    let inside = match &groups {
        Some(groups) if !options.callers_of.is_empty() => {
            let profile = scope.profile();
            Some(scope.filter(|stay| groups.of(profile, stay) != NONE))
        }
        _ => None,
    };
    let scope = inside.as_ref().unwrap_or(scope);
    let profile = scope.profile();
    let points = Points::new(scope, options)?;
    let rows = match groups {
        Some(groups) => Rows::new(scope, options, groups),
        None => Rows::default(),
    };
    let parts = Timeline::of_moments(points.moments.clone(), profile);
    let (mut lines, mut error) = if options.measure.is_live() {
        live::live(scope, options.measure, &rows, &parts, points.ends.len())
    } else {
        cumulative(scope, options.measure, &rows, &parts, &points.seconds())
    };
    for line in &mut lines {
        for values in [&mut line.values, &mut line.low, &mut line.high] {
            points.keep_shown(values);
        }
    }
    points.keep_shown(&mut error);
    let mut times = points.seconds();
    points.keep_shown(&mut times);
    let mut lines = lines.into_iter();
    let total = lines.next().unwrap_or_default();
    Ok(Series {
        subject: Subject::with_look(scope, &look),
        measure: options.measure,
        from: points.start(),
        times,
        total,
        error,
        groups: rows
            .labels
            .into_iter()
            .zip(lines)
            .enumerate()
            .map(|(row, (label, line))| {
                let is_other = Some(row) == rows.other;
                let division = division.as_ref().filter(|_| !is_other);
                GroupLine {
                    query: division.and_then(|division| division.query(&label, &look)),
                    label,
                    is_other,
                    line,
                }
            })
            .collect(),
        callers_of: options
            .callers_of
            .iter()
            .map(|pattern| pattern.text().to_owned())
            .collect(),
    })
}

/// The points of time.
struct Points {
    /// The ends of the time intervals, in microseconds. With a window, the first and the last
    /// interval are before and after it.
    ends: Vec<u64>,
    /// The moments at which the intervals end: after everything that happened at a point, but before what happened at the end of a
    /// window, which is not part of it.
    moments: Vec<u64>,
    is_window: bool,
}

impl Points {
    fn new(scope: &Scope<'_>, options: &SeriesOptions) -> Result<Self, TimeError> {
        let profile = scope.profile();
        let points = options.points().clamp(1, 100_000);
        let last = profile.micros(profile.end());
        let equal = |whole: u64| (1..=points).map(move |i| timeline::time(whole, i, points));
        let after = |&end: &u64| profile.after(end).0;
        let Some(window) = options.window() else {
            let ends: Vec<u64> = equal(last).collect();
            return Ok(Self {
                moments: ends.iter().map(after).collect(),
                ends,
                is_window: false,
            });
        };
        let (Moment(first), Moment(end)) = window.moments(profile, scope.estimator())?;
        let micros = |time: &TimePoint| time.micros(profile, scope.estimator()).min(last);
        let (from, to) = window.bounds();
        let (from, to) = (micros(from), micros(to));
        let mut ends = vec![from];
        ends.extend(equal(to.saturating_sub(from)).map(|time| from + time));
        let mut moments: Vec<u64> = ends.iter().map(after).collect();
        for moment in &mut moments {
            *moment = (*moment).clamp(first, end.max(first));
        }
        moments[0] = first;
        moments[points] = end.max(first);
        ends.push(last);
        moments.push(after(&last));
        Ok(Self {
            ends,
            moments,
            is_window: true,
        })
    }

    /// Seconds before the first interval that is shown.
    fn start(&self) -> f64 {
        match self.ends.first() {
            Some(&first) if self.is_window => first as f64 / 1e6,
            _ => 0.0,
        }
    }

    fn seconds(&self) -> Vec<f64> {
        self.ends.iter().map(|&end| end as f64 / 1e6).collect()
    }

    /// Drops what is before and after the window.
    fn keep_shown(&self, values: &mut Vec<f64>) {
        if self.is_window && !values.is_empty() {
            values.pop();
            values.remove(0);
        }
    }
}

/// The groups that get a line of their own.
#[derive(Default)]
struct Rows {
    groups: Option<Arc<Groups>>,
    row_of_group: Vec<u32>,
    labels: Vec<Label>,
    /// The index of the group "other".
    other: Option<usize>,
}

impl Rows {
    fn new(scope: &Scope<'_>, options: &SeriesOptions, groups: Arc<Groups>) -> Self {
        let top = options.top.min(65_000);
        let sizes = weights::of_groups(scope, options.measure, &groups);
        let mut order: Vec<usize> = (0..groups.len()).filter(|&i| sizes[i].is_some()).collect();
        order.sort_by(|&a, &b| {
            let size = |group: usize| sizes[group].unwrap_or(0.0);
            size(b).total_cmp(&size(a))
        });
        // What is in no branch is no group of its own, however much that is.
        let no_branch = options.branches.then_some(groups.unknown as usize);
        let has_rest = no_branch.is_some_and(|group| sizes[group].is_some());
        order.retain(|&group| Some(group) != no_branch);
        let mut row_of_group = vec![NONE; groups.len()];
        let mut labels = Vec::new();
        for (row, &group) in (0..).zip(order.iter().take(top)) {
            row_of_group[group] = row;
            labels.push(groups.labels[group].clone());
        }
        let merged = order.len().saturating_sub(top);
        let other = (merged > 0 || has_rest).then(|| {
            labels.push(Label::named(match merged {
                0 => "other".to_owned(),
                merged => format!("other ({merged})"),
            }));
            labels.len() - 1
        });
        if let Some(other) = other {
            for row in &mut row_of_group {
                *row = (*row).min(u32::try_from(other).unwrap_or(NONE));
            }
        }
        Self {
            groups: Some(groups),
            row_of_group,
            labels,
            other,
        }
    }
}

/// Lines of what was allocated or promoted so far, or per second: the total, then the rows. Also the errors of the total.
fn cumulative(
    scope: &Scope<'_>,
    measure: Measure,
    rows: &Rows,
    parts: &Timeline,
    times: &[f64],
) -> (Vec<Line>, Vec<f64>) {
    let profile = scope.profile();
    let mut variances = vec![0.0_f64; times.len()];
    let mut sums = vec![vec![0.0; times.len()]; rows.labels.len() + 1];
    scope.for_each(|stay| {
        let event = if measure.is_promotion() {
            stay.promotion
        } else {
            stay.start
        };
        if event == NEVER {
            return;
        }
        let part = parts.slot(event);
        let Sum {
            value: weight,
            variance,
            ..
        } = scope.weight(&stay).bytes;
        variances[part] += variance;
        sums[0][part] += weight;
        if let Some(groups) = &rows.groups {
            let row = rows.row_of_group[groups.of(profile, stay) as usize];
            if row != NONE {
                sums[row as usize + 1][part] += weight;
            }
        }
    });
    let scale = if measure == Measure::AllocatedWords {
        1.0 / profile.sampling().word_bytes()
    } else {
        1.0
    };
    let starts = std::iter::once(&0.0).chain(times);
    let seconds: Vec<f64> = times
        .iter()
        .zip(starts)
        .map(|(end, start)| end - start)
        .collect();
    let per_second = |sum: f64, seconds: f64| if seconds > 0.0 { sum / seconds } else { 0.0 };
    let lines = sums
        .into_iter()
        .map(|sums| {
            let mut total = 0.0;
            let mut line = Line::default();
            for (sum, &seconds) in sums.iter().zip(&seconds) {
                let before = total;
                total += sum * scale;
                let (value, low) = if measure.is_rate() {
                    let rate = per_second(*sum, seconds);
                    (rate, rate)
                } else {
                    (total, before)
                };
                line.values.push(value);
                line.low.push(low);
                line.high.push(value);
            }
            line
        })
        .collect();
    let mut total = 0.0_f64;
    let errors = variances.iter().zip(&seconds).map(|(variance, &seconds)| {
        total += variance;
        1.96 * if measure.is_rate() {
            per_second(variance.sqrt(), seconds)
        } else {
            total.sqrt() * scale
        }
    });
    (lines, errors.collect())
}
