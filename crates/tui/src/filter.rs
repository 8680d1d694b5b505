//! The filter line: a query that is being typed, its error, and what could follow.

use heapline_engine::{CompleteOptions, Completion};
use heapline_profile::query::Pattern;
use heapline_profile::{Query, QueryError};
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use crate::edit::Line;
use crate::suggest::{Suggestions, suggest};

/// Names that are asked for at once.
const NAMES: u16 = 20;

/// The consequence of a key in the filter line.
#[derive(Debug)]
pub(crate) enum Outcome {
    Editing,
    Cancelled,
    Entered(Query),
}

/// A query that is being typed.
#[derive(Debug)]
pub(crate) struct FilterLine {
    pub(crate) line: Line,
    suggestions: Suggestions,
    /// Names of the trace that fit.
    names: Vec<String>,
    /// The suggestion that Tab takes.
    pub(crate) selected: usize,
    /// Shows the error: not while a condition is being typed.
    pub(crate) is_entered: bool,
}

impl FilterLine {
    pub(crate) fn new(text: &str) -> Self {
        let line = Line::new(text);
        Self {
            suggestions: suggest(line.before()),
            line,
            names: Vec::new(),
            selected: 0,
            is_entered: false,
        }
    }

    /// The error of the query, if it has one.
    pub(crate) fn error(&self) -> Option<QueryError> {
        Query::parse(self.line.text()).err()
    }

    /// The names to ask for.
    pub(crate) fn needs_names(&self) -> Option<CompleteOptions> {
        let (kind, part) = self.suggestions.names.clone()?;
        Some(CompleteOptions {
            kind,
            q: part,
            rows: NAMES,
        })
    }

    /// Takes names of the trace.
    pub(crate) fn complete(&mut self, completion: &Completion) {
        let kind = self.suggestions.names.as_ref().map(|names| names.0);
        if kind == Some(completion.kind) {
            let names = completion.names.iter();
            self.names = names
                .map(|name| Pattern::literal(&name.name).text().to_owned())
                .collect();
        }
    }

    /// Suggestions: the words of the language first.
    pub(crate) fn suggestions(&self) -> Vec<&str> {
        let words = self.suggestions.words.iter().copied();
        let names = self.names.iter().map(|name| &**name);
        words.chain(names).collect()
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.line.insert(text);
        self.changed();
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        let count = self.suggestions().len();
        match key.code {
            KeyCode::Esc => return Outcome::Cancelled,
            KeyCode::Enter => {
                if let Ok(query) = Query::parse(self.line.text()) {
                    return Outcome::Entered(query);
                }
                self.is_entered = true;
            }
            KeyCode::Tab => self.accept(),
            KeyCode::Down => self.selected = (self.selected + 1).min(count.saturating_sub(1)),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            _ => {
                if self.line.key(key) {
                    self.changed();
                }
            }
        }
        Outcome::Editing
    }

    fn changed(&mut self) {
        let suggestions = suggest(self.line.before());
        if suggestions.names.as_ref().map(|names| names.0)
            != self.suggestions.names.as_ref().map(|names| names.0)
        {
            self.names.clear();
        }
        self.suggestions = suggestions;
        self.selected = 0;
        self.is_entered = false;
    }

    /// Replaces the word at the cursor by the selected suggestion.
    fn accept(&mut self) {
        let suggestion = self.suggestions().get(self.selected).copied();
        if let Some(suggestion) = suggestion.map(str::to_owned) {
            let start = self.suggestions.start;
            self.line.replace_from(start, &format!("{suggestion} "));
            self.changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use heapline_profile::GroupBy;
    use heapline_profile::reports::Name;

    use super::*;

    fn typed(text: &str) -> FilterLine {
        let mut line = FilterLine::new("");
        for c in text.chars() {
            line.key(KeyEvent::from(KeyCode::Char(c)));
        }
        line
    }

    fn tab(line: &mut FilterLine) {
        line.key(KeyEvent::from(KeyCode::Tab));
    }

    #[test]
    fn tab_takes_the_selected_suggestion() {
        let mut line = typed("li");
        tab(&mut line);
        assert_eq!(line.line.text(), "live at ");
        tab(&mut line);
        assert_eq!(line.line.text(), "live at peak ");
        line.key(KeyEvent::from(KeyCode::Down));
        tab(&mut line);
        assert_eq!(line.line.text(), "live at peak or ");
    }

    #[test]
    fn names_are_quoted_so_that_they_match_themselves_only() {
        let mut line = typed("site = ma");
        assert_eq!(line.needs_names().unwrap().q, "ma");
        let names = vec![Name {
            name: "Mix.( * )".to_owned(),
            bytes: 1.0,
        }];
        line.complete(&Completion {
            kind: GroupBy::Function,
            names,
        });
        tab(&mut line);
        assert_eq!(line.line.text(), "site = \"Mix.( \\* )\" ");
        let outcome = line.key(KeyEvent::from(KeyCode::Enter));
        assert!(matches!(outcome, Outcome::Entered(_)));
    }

    #[test]
    fn a_query_with_an_error_stays() {
        let mut line = typed("siz > 1k");
        let outcome = line.key(KeyEvent::from(KeyCode::Enter));
        assert!(matches!(outcome, Outcome::Editing) && line.is_entered);
        let error = line.error().unwrap();
        assert_eq!((error.start, error.end), (0, 3));
        let outcome = line.key(KeyEvent::from(KeyCode::Esc));
        assert!(matches!(outcome, Outcome::Cancelled));
    }
}
