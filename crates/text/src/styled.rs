//! Text with semantic styles.

use std::fmt::{self, Write};

use anstyle::AnsiColor;

use crate::sanitize::sanitize;
use crate::width::columns;

/// The meaning of a piece of text, from which the display chooses colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// Ordinary text.
    #[default]
    Plain,
    /// A title.
    Title,
    /// The label of a value.
    Label,
    /// Less important: notes, axes, rows within the sampling error.
    Faint,
    /// Better than before, or within a limit.
    Good,
    /// Needs attention.
    Warning,
    /// Worse than before, or beyond a limit.
    Bad,
}

impl Style {
    /// Its look on ANSI terminals.
    #[must_use]
    pub fn ansi(self) -> anstyle::Style {
        match self {
            Self::Plain => anstyle::Style::new(),
            Self::Title => anstyle::Style::new().bold(),
            Self::Label => AnsiColor::Cyan.on_default(),
            Self::Faint => anstyle::Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// Text of one style, without control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
}

impl Span {
    /// Sanitizes the text.
    #[must_use]
    pub fn new(text: &str, style: Style) -> Self {
        Self {
            text: sanitize(text).into_owned(),
            style,
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its style.
    #[must_use]
    pub fn style(&self) -> Style {
        self.style
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

impl Line {
    /// A line of one style.
    #[must_use]
    pub fn new(text: &str, style: Style) -> Self {
        Self::default().with(text, style)
    }

    /// Plain text.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self::new(text, Style::Plain)
    }

    /// The line with more text at its end.
    #[must_use]
    pub fn with(mut self, text: &str, style: Style) -> Self {
        self.push(text, style);
        self
    }

    /// Adds text at the end.
    pub fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&sanitize(text)),
            _ => self.spans.push(Span::new(text, style)),
        }
    }

    /// Its pieces, from left to right.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The columns that it takes.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.spans.iter().map(|span| columns(&span.text)).sum()
    }

    /// Removes spaces at the end.
    pub(crate) fn trim_end(&mut self) {
        while let Some(last) = self.spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
            if !last.text.is_empty() {
                break;
            }
            self.spans.pop();
        }
    }
}

impl fmt::Display for Line {
    /// Without styles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spans
            .iter()
            .try_for_each(|span| f.write_str(&span.text))
    }
}

/// Lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    lines: Vec<Line>,
}

impl Text {
    /// Its lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Adds a line.
    pub fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// The text with ANSI escape codes for its styles, each line ended by a line feed.
    #[must_use]
    pub fn to_ansi(&self) -> String {
        let mut out = String::new();
        for line in &self.lines {
            for span in &line.spans {
                let style = span.style.ansi();
                // Writing to a string does not fail.
                let _ = write!(out, "{style}{}{style:#}", span.text);
            }
            out.push('\n');
        }
        out
    }
}

impl fmt::Display for Text {
    /// Without styles, each line ended by a line feed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_codes_but_our_own() {
        let mut text = Text::default();
        text.push(Line::plain("\u{1b}[31m").with("a\nb", Style::Faint));
        assert_eq!(text.to_string(), "\u{fffd}[31ma\u{fffd}b\n");
        assert_eq!(text.to_ansi(), "\u{fffd}[31m\u{1b}[2ma\u{fffd}b\u{1b}[0m\n");
    }

    #[test]
    fn spans_of_one_style_are_joined() {
        let line = Line::plain("a")
            .with("b", Style::Plain)
            .with("", Style::Bad);
        assert_eq!(line.spans().len(), 1);
        assert_eq!(line.to_string(), "ab");
    }

    #[test]
    fn spaces_at_the_end_are_removed() {
        let mut line = Line::plain("a ").with("  ", Style::Faint);
        line.trim_end();
        assert_eq!(line, Line::plain("a"));
    }
}
