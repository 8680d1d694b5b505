//! Text with titles, labelled rows and notes.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};

const TITLE: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
const LABEL: Style = AnsiColor::Cyan.on_default();

/// A page in the making.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    const LABEL_WIDTH: usize = 16;

    /// A title, with a line left free before it.
    pub(crate) fn title(&mut self, title: &str) {
        self.gap();
        self.put(format_args!("{TITLE}{title}{TITLE:#}\n"));
    }

    /// An empty line, but not at the top.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// A label and what belongs to it.
    pub(crate) fn row(&mut self, label: &str, value: fmt::Arguments<'_>) {
        let width = Self::LABEL_WIDTH;
        self.put(format_args!("  {LABEL}{label:<width$}{LABEL:#} "));
        self.put_trimmed(value);
    }

    /// A line, indented.
    pub(crate) fn line(&mut self, value: fmt::Arguments<'_>) {
        self.put(format_args!("  "));
        self.put_trimmed(value);
    }

    /// Something of less importance.
    pub(crate) fn note(&mut self, note: &str) {
        self.put(format_args!("  {FAINT}{note}{FAINT:#}\n"));
    }

    /// Lines that were drawn already.
    pub(crate) fn block(&mut self, lines: &str) {
        self.text.push_str(lines);
    }

    /// What to type next.
    pub(crate) fn next(&mut self, commands: &[(String, &str)]) {
        self.title("Next");
        let longest = commands
            .iter()
            .map(|(command, _)| command.chars().count())
            .max()
            .unwrap_or(0);
        for (command, reason) in commands {
            self.line(format_args!(
                "{command:<longest$}   {FAINT}{reason}{FAINT:#}"
            ));
        }
    }

    /// The page.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn put_trimmed(&mut self, value: fmt::Arguments<'_>) {
        self.put(value);
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }

    fn put(&mut self, value: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(value);
    }
}
