//! Bars, sparklines and a filled curve over time.

use crate::screen::Screen;
use crate::styled::{Line, Style};
use crate::units;
use crate::width::{columns, padding};

/// A bar; `share` 1 fills all columns.
#[must_use]
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a width"
    )]
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

/// A curve of one line, scaled to its largest value. Positive values are never blank.
#[must_use]
pub fn sparkline(values: &[f64]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().copied().fold(0.0, f64::max);
    values
        .iter()
        .map(|&value| {
            if value <= 0.0 || highest <= 0.0 {
                return ' ';
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "one of eight"
            )]
            let level = (value / highest * 8.0).ceil() as usize;
            LEVELS[level.clamp(1, 8) - 1]
        })
        .collect()
}

/// The number of points that fit into a chart, one per column.
#[must_use]
pub fn points(screen: Screen) -> usize {
    screen.width().saturating_sub(16).clamp(20, 160)
}

/// A filled curve of values at equal distances, scaled to the largest. `times` are the ends of the
/// axis in seconds; `format` writes the values at the left.
#[must_use]
pub fn area(
    screen: Screen,
    values: &[f64],
    times: (f64, f64),
    height: usize,
    format: impl Fn(f64) -> String,
) -> Vec<Line> {
    let highest = values.iter().copied().fold(0.0, f64::max);
    let labels: Vec<String> = (0..height)
        .map(|row| match row {
            0 => screen.displayable(&format(highest)).into_owned(),
            _ if row == height / 2 => screen
                .displayable(&format(highest * (height - row) as f64 / height as f64))
                .into_owned(),
            _ => String::new(),
        })
        .collect();
    let label_width = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
    let mut lines = Vec::with_capacity(height + 2);
    for (row, label) in labels.iter().enumerate() {
        let base = (height - row - 1) as f64;
        let curve: String = values
            .iter()
            .map(|&value| {
                let level = if highest > 0.0 {
                    value / highest * height as f64
                } else {
                    0.0
                };
                cell(level - base, base == 0.0 && value > 0.0)
            })
            .collect();
        let axis = format!("  {}{label} ┤", padding(label, label_width));
        lines.push(Line::new(&axis, Style::Faint).with(curve.trim_end(), Style::Plain));
    }
    let margin = " ".repeat(label_width);
    let axis = format!("  {margin} └{}", "─".repeat(values.len()));
    lines.push(Line::new(&axis, Style::Faint));
    let ticks = format!("  {margin}  {}", ticks(screen, values.len(), times));
    lines.push(Line::new(&ticks, Style::Faint));
    lines
}

/// The times at the start, the middle and the end of an axis.
fn ticks(screen: Screen, width: usize, (start, end): (f64, f64)) -> String {
    let time = |seconds: f64| match seconds {
        0.0 => "0".to_owned(),
        _ => screen.displayable(&units::seconds(seconds)).into_owned(),
    };
    let mut out = time(start);
    let middle = time(f64::midpoint(start, end));
    let end = time(end);
    let place = (width / 2).saturating_sub(columns(&middle) / 2);
    let last = width.saturating_sub(columns(&end));
    // A tick that would touch its neighbours is left out.
    if place > columns(&out) && place + columns(&middle) < last {
        out.push_str(&padding(&out, place));
        out.push_str(&middle);
    }
    if last > columns(&out) {
        out.push_str(&padding(&out, last));
        out.push_str(&end);
    }
    out
}

/// One column of one row: empty, full, or filled up to a level.
fn cell(level: f64, not_empty: bool) -> char {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "one of nine"
    )]
    let eighths = (level.clamp(0.0, 1.0) * 8.0).round() as usize;
    LEVELS[eighths.max(usize::from(not_empty))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53, 4), "██▏");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(bar(f64::NAN, 4), "");
    }

    #[test]
    fn sparklines_show_that_there_is_something() {
        assert_eq!(sparkline(&[0.0, 0.001, 4.0, 8.0]), " ▁▄█");
        assert_eq!(sparkline(&[0.0, 0.0]), "  ");
    }

    #[test]
    fn charts_have_an_axis_with_three_times() {
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        let lines = area(Screen::default(), &values, (0.0, 3.0), 2, units::bytes);
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "    29 B ┤                ▁▁▂▂▃▄▄▅▅▆▆▇▇█",
                "  14.5 B ┤ ▁▁▂▂▃▃▄▄▅▆▆▇▇████████████████",
                "         └──────────────────────────────",
                "          0           1.50 s         3 s",
            ]
        );
    }

    #[test]
    fn ticks_that_do_not_fit_are_left_out() {
        let screen = Screen::default();
        assert_eq!(ticks(screen, 12, (1.25, 3.25)), "1.25 s");
        assert_eq!(ticks(screen, 14, (1.25, 3.25)), "1.25 s  3.25 s");
    }
}
