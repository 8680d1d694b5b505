//! Pictures and tables for terminals.

mod chart;
mod page;
mod table;

pub(crate) use chart::{area, points as chart_points};
pub(crate) use page::{BAD, FAINT, GOOD, Page, WARN};
pub(crate) use table::{Align, Table};

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

/// Set once, before anything is drawn.
static ASCII: OnceLock<bool> = OnceLock::new();

/// Decides whether only plain characters are to be used: on request, or if the locale is known to
/// have no others.
pub(crate) fn use_ascii(requested: bool) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    let plain = locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    });
    let _ = ASCII.set(requested || plain);
}

fn is_ascii() -> bool {
    ASCII.get().copied().unwrap_or(false)
}

/// The text in characters that can be shown.
pub(crate) fn shown(text: &str) -> String {
    if !is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '±' => out.push_str("+-"),
            'µ' => out.push('u'),
            '…' => out.push('~'),
            '▁' => out.push('_'),
            '▂' => out.push('.'),
            '▃' | '─' => out.push('-'),
            '▄' => out.push('='),
            '▅' | '└' | '├' => out.push('+'),
            '▆' | '●' => out.push('*'),
            '▇' => out.push('%'),
            '█' | '▉' | '▊' | '▋' | '▌' => out.push('#'),
            '▍' | '▎' | '▏' => out.push(' '),
            '│' | '┤' => out.push('|'),
            '○' => out.push('o'),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}

/// How many columns there are.
pub(crate) fn width() -> usize {
    const WITHOUT_TERMINAL: usize = 100;
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = columns().or_else(|| {
        io::stdout()
            .is_terminal()
            .then(terminal_size::terminal_size)
            .flatten()
            .map(|(width, _)| usize::from(width.0))
    });
    width.unwrap_or(WITHOUT_TERMINAL).clamp(40, 400)
}

/// A bar that is full for 1.
pub(crate) fn bar(share: f64, width: usize) -> String {
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

/// A small curve, as high as its largest value.
pub(crate) fn sparkline(values: &[f64]) -> String {
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

/// Text in at most so many columns; what is too much is taken out of the middle, where it is
/// missed least.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let len = text.chars().count();
    if len <= width {
        return text.to_owned();
    }
    if width < 2 {
        return text.chars().take(width).collect();
    }
    let head = (width - 1) / 2;
    let tail = width - 1 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(len - tail).collect();
    format!("{start}…{end}")
}

/// The columns that text takes, its colours apart.
fn columns(text: &str) -> usize {
    anstream::adapter::strip_str(text)
        .to_string()
        .chars()
        .count()
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
    fn long_texts_lose_their_middle() {
        assert_eq!(fit("Stdlib.List.map", 20), "Stdlib.List.map");
        assert_eq!(fit("Stdlib.List.map", 9), "Stdl….map");
        assert_eq!(fit("Stdlib", 1), "S");
    }
}
