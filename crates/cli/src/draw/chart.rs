//! A curve over time, filled below.

use std::fmt::Write;

use super::{FAINT, shown, width};
use crate::units;

/// Draws values at equal distances as an area, with the height of the largest. `times` are the ends
/// of the axis, in seconds; `format` is for the numbers at the left.
pub(crate) fn area(
    values: &[f64],
    times: (f64, f64),
    height: usize,
    format: impl Fn(f64) -> String,
) -> String {
    let highest = values.iter().copied().fold(0.0, f64::max);
    let labels: Vec<String> = (0..height)
        .map(|row| match row {
            0 => shown(&format(highest)),
            _ if row == height / 2 => {
                shown(&format(highest * (height - row) as f64 / height as f64))
            }
            _ => String::new(),
        })
        .collect();
    let label_width = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (row, label) in labels.iter().enumerate() {
        let base = (height - row - 1) as f64;
        let line: String = values
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
        let line = shown(line.trim_end());
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "  {FAINT}{label:>label_width$} {}{FAINT:#}{line}",
            shown("┤")
        );
    }
    let axis = shown(&"─".repeat(values.len()));
    let _ = writeln!(
        out,
        "  {FAINT}{:>label_width$} {}{axis}{FAINT:#}",
        "",
        shown("└")
    );
    let time = |seconds: f64| match seconds {
        0.0 => "0".to_owned(),
        _ => shown(&units::seconds(seconds)),
    };
    let start = time(times.0);
    let end = time(times.1);
    let middle = time(f64::midpoint(times.0, times.1));
    let half = values.len() / 2;
    let rest = values.len().saturating_sub(half + middle.chars().count());
    let _ = writeln!(
        out,
        "  {FAINT}{:>label_width$} {start}{:>half$}{end:>rest$}{FAINT:#}",
        "",
        middle,
        half = (half + middle.chars().count() / 2 + 1).saturating_sub(start.chars().count()),
        rest = rest + middle.chars().count().div_ceil(2),
    );
    out
}

/// How many points fit beside the numbers.
pub(crate) fn points() -> usize {
    width().saturating_sub(16).clamp(20, 160)
}

/// A column of one line: empty, full, or up to a level.
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
