//! The screen that reports are drawn for.

use std::env;
use std::io::{self, IsTerminal};

use heapline_text::Screen;

/// Detects the width and character set of standard output. Uses ASCII on request, or if the locale
/// does not use UTF-8. Names are only cut for a terminal, or to a width that is asked for.
pub(crate) fn detect(ascii: bool) -> Screen {
    let ascii = ascii || !has_unicode();
    match given_width() {
        Some(width) => Screen::new(width, ascii),
        None => Screen::new(Screen::DEFAULT_WIDTH, ascii).unlimited(),
    }
}

fn has_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The width of standard output.
pub(crate) fn width() -> usize {
    given_width().unwrap_or(Screen::DEFAULT_WIDTH)
}

/// The width that is asked for, or that of the terminal; `None` if standard output is neither.
fn given_width() -> Option<usize> {
    let variable = || env::var("COLUMNS").ok()?.parse().ok();
    let terminal = || {
        let (width, _) = terminal_size::terminal_size()?;
        io::stdout().is_terminal().then_some(usize::from(width.0))
    };
    variable().or_else(terminal)
}
