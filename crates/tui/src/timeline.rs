//! Memory over time, with the moment that is shown and the mark.

use heapline_profile::reports::{Measure, Series};
use heapline_text::units::{bytes, count_short};
use heapline_text::{Context, Line, Screen, Style, area, columns, series_of_height};

use crate::app::App;
use crate::choices::Slot;

/// The chart above the table: so many lines of a curve, and two of the axis.
pub(crate) fn lines(app: &App, screen: Screen, height: usize) -> Vec<Line> {
    let Some(series) = app.series(Slot::Series) else {
        return Vec::new();
    };
    let format = |value: f64| match series.measure {
        Measure::LiveBlocks => count_short(value),
        _ => bytes(value),
    };
    let end = series.times.last().copied().unwrap_or(0.0);
    let lines = area(screen, &series.total.high, (0.0, end), height, format);
    with_moments(app, series, lines, height)
}

/// The chart and the largest groups.
pub(crate) fn full(app: &App, screen: Screen, height: usize) -> Vec<Line> {
    /// The title, the axis, the extremes, a gap and the titles of the groups.
    const REST: usize = 6;
    let Some(series) = app.series(Slot::Groups) else {
        return Vec::new();
    };
    let chart = height.saturating_sub(REST + series.groups.len()).max(4);
    let text = series_of_height(series, &Context::new(screen), chart);
    with_moments(app, series, text.lines().to_vec(), chart + 1)
}

/// Marks the moments on the axis, which is the line at a place.
fn with_moments(app: &App, series: &Series, mut lines: Vec<Line>, axis: usize) -> Vec<Line> {
    let Some((situation, line)) = app.situation.as_ref().zip(lines.get_mut(axis)) else {
        return lines;
    };
    let points = series.times.len();
    let end = series.times.last().copied().unwrap_or(0.0);
    let text: Vec<char> = line.to_string().chars().collect();
    let Some(start) = columns(&line.to_string()).checked_sub(points) else {
        return lines;
    };
    let place = |micros: u64| {
        let share = if end > 0.0 {
            micros as f64 / 1e6 / end
        } else {
            1.0
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "one of the points"
        )]
        let point = (share * points as f64).ceil() as usize;
        start + point.clamp(1, points) - 1
    };
    let moment = place(app.choices.moment.micros(situation));
    let mark = app.choices.mark.map(place);
    let mut marked = Line::default();
    for (i, c) in text.into_iter().enumerate() {
        if i == moment {
            marked.push("▲", Style::Title);
        } else if Some(i) == mark {
            marked.push("◆", Style::Warning);
        } else {
            marked.push(c.encode_utf8(&mut [0; 4]), Style::Faint);
        }
    }
    *line = marked;
    lines
}
