//! Titles, labelled values, notes, tables.

use crate::screen::{Context, Screen};
use crate::styled::{Line, Style, Text};
use crate::table::Table;
use crate::units::plural;
use crate::width::{columns, padding};
use crate::wrap::wrap;

/// Builds a [`Text`] for a screen. Prose that is too long is wrapped.
#[derive(Clone, Debug)]
pub struct Page {
    screen: Screen,
    text: Text,
}

/// Puts the query that selects the blocks of a report above it: its figures are of these.
#[must_use]
pub fn of_selection(report: &Text, query: &str, screen: Screen) -> Text {
    let mut page = Page::new(screen);
    page.wrapped(&Line::new(&format!("Selected: {query}"), Style::Faint), 2);
    for line in report.lines() {
        page.push(line);
    }
    page.finish()
}

impl Page {
    const INDENT: usize = 2;
    const LABEL_WIDTH: usize = 16;

    /// An empty page.
    #[must_use]
    pub fn new(screen: Screen) -> Self {
        Self {
            screen,
            text: Text::default(),
        }
    }

    /// Adds a title, after an empty line if it is not the first.
    pub fn title(&mut self, title: &str) {
        self.gap();
        self.wrapped(&Line::new(title, Style::Title), 0);
    }

    /// Adds an empty line, but not at the top.
    pub fn gap(&mut self) {
        if !self.text.lines().is_empty() {
            self.text.push(Line::default());
        }
    }

    /// Adds a label and its value.
    pub fn row(&mut self, label: &str, value: &Line) {
        let mut line = Line::plain(&" ".repeat(Self::INDENT)).with(label, Style::Label);
        line.push(&padding(label, Self::LABEL_WIDTH), Style::Plain);
        line.push(" ", Style::Plain);
        extend(&mut line, value);
        self.wrapped(&line, Self::INDENT + Self::LABEL_WIDTH + 1);
    }

    /// Adds an indented line.
    pub fn line(&mut self, value: &Line) {
        let mut line = Line::plain(&" ".repeat(Self::INDENT));
        extend(&mut line, value);
        self.wrapped(&line, Self::INDENT);
    }

    /// Adds an explanation.
    pub fn note(&mut self, note: &str) {
        self.line(&Line::new(note, Style::Faint));
    }

    /// Adds a note on rows that a limit hides, if there are any.
    pub(crate) fn hidden_rows(&mut self, hidden: usize) {
        if hidden > 0 {
            let rows = plural(hidden as u64, "more row");
            self.note(&format!("{rows} (see --rows)."));
        }
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        self.lines(table.lines());
    }

    /// Adds lines that have their final layout.
    pub fn lines(&mut self, lines: Vec<Line>) {
        for line in lines {
            self.push(&line);
        }
    }

    /// Adds the section of commands to run next, if there is a way to write them: the report, more
    /// arguments, and what it shows.
    pub fn next(&mut self, context: &Context<'_>, commands: &[(&str, &[&str], &str)]) {
        const GAP: usize = 3;
        let Some(suggest) = context.suggest else {
            return;
        };
        self.title("Next");
        let commands: Vec<(Line, &str)> = commands
            .iter()
            .map(|&(report, arguments, reason)| {
                (
                    self.displayable(&Line::plain(&suggest(report, arguments))),
                    reason,
                )
            })
            .collect();
        let command_width = commands
            .iter()
            .map(|(line, _)| line.columns())
            .max()
            .unwrap_or(0);
        let reason_width = commands
            .iter()
            .map(|(_, reason)| columns(reason))
            .max()
            .unwrap_or(0);
        let fits = Self::INDENT + command_width + GAP + reason_width <= self.screen.width();
        for (command, reason) in commands {
            // Commands are copied: they stay on one line.
            let mut line = Line::plain(&" ".repeat(Self::INDENT));
            extend(&mut line, &command);
            if fits {
                let space = command_width - command.columns() + GAP;
                line.push(&" ".repeat(space), Style::Plain);
                line.push(reason, Style::Faint);
            } else {
                self.push(&line);
                line = Line::plain(&" ".repeat(2 * Self::INDENT)).with(reason, Style::Faint);
            }
            self.push(&line);
        }
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> Text {
        self.text
    }

    /// Adds a line; what does not fit is indented.
    pub(crate) fn wrapped(&mut self, line: &Line, indent: usize) {
        for line in wrap(&self.displayable(line), self.screen.width(), indent) {
            self.push(&line);
        }
    }

    fn push(&mut self, line: &Line) {
        let mut line = self.displayable(line);
        line.trim_end();
        self.text.push(line);
    }

    fn displayable(&self, line: &Line) -> Line {
        let mut out = Line::default();
        for span in line.spans() {
            out.push(&self.screen.displayable(span.text()), span.style());
        }
        out
    }
}

fn extend(line: &mut Line, more: &Line) {
    for span in more.spans() {
        line.push(span.text(), span.style());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(width: usize) -> String {
        let suggest = |report: &str, arguments: &[&str]| {
            format!("heapline {report} trace.ctf {}", arguments.join(" "))
        };
        let context = Context {
            screen: Screen::new(width, false),
            suggest: Some(&suggest),
        };
        let mut page = Page::new(context.screen);
        page.next(
            &context,
            &[
                ("leaks", &["--rows", "3"], "memory that grows"),
                ("tree", &["--bottom-up"], "callers"),
            ],
        );
        page.finish().to_string()
    }

    #[test]
    fn suggestions_are_aligned_if_there_is_room() {
        assert_eq!(
            next(80),
            "Next\n  heapline leaks trace.ctf --rows 3     memory that grows\n  \
             heapline tree trace.ctf --bottom-up   callers\n"
        );
        assert_eq!(
            next(50),
            "Next\n  heapline leaks trace.ctf --rows 3\n    memory that grows\n  \
             heapline tree trace.ctf --bottom-up\n    callers\n"
        );
    }

    #[test]
    fn without_suggestions_there_is_no_section() {
        let context = Context::new(Screen::default());
        let mut page = Page::new(context.screen);
        page.next(&context, &[("leaks", &[], "memory that grows")]);
        assert_eq!(page.finish(), Text::default());
    }

    #[test]
    fn values_are_wrapped_below_each_other() {
        let mut page = Page::new(Screen::new(40, false));
        page.row("Program", &Line::plain("an explanation of some length"));
        assert_eq!(
            page.finish().to_string(),
            "  Program          an explanation of\n                   some length\n"
        );
    }
}
