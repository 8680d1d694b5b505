//! Prints reports as text or JSON.

use std::io::{self, IsTerminal, Write};

use heapline_text::{Screen, Text};
use serde::Serialize;

/// Prints a report as JSON, or as text with `render`.
pub(crate) fn print<T: Serialize>(
    report: &T,
    json: bool,
    render: impl FnOnce(&T, Screen) -> Text,
) -> anyhow::Result<()> {
    let mut out = anstream::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        writeln!(out)?;
    } else {
        let is_terminal = io::stdout().is_terminal();
        let size = is_terminal.then(terminal_size::terminal_size).flatten();
        let width = size.map_or(Screen::DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
        let text = render(report, Screen::new(width, false));
        write!(out, "{}", text.to_ansi())?;
    }
    Ok(out.flush()?)
}
