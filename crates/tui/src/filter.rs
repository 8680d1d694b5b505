//! The filter line: a query that is being typed, its error, and what could follow.

use std::sync::Arc;

use heapline_model::Capabilities;
use heapline_profile::query::{Suggestions, suggest};
use heapline_profile::reports::Name;
use heapline_profile::{GroupBy, Query, QueryError};
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use crate::edit::Line;

/// Names that are suggested at once.
const NAMES: usize = 20;

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
    tells: Capabilities,
    /// All names of a kind, once the worker has sent them.
    names: Option<(GroupBy, Arc<[Name]>)>,
    suggestions: Suggestions,
    /// The suggestion that Tab takes.
    pub(crate) selected: usize,
    /// Shows the error: not while a condition is being typed.
    pub(crate) is_entered: bool,
}

impl FilterLine {
    /// A line about a source that tells this.
    pub(crate) fn new(text: &str, tells: Capabilities) -> Self {
        let mut line = Self {
            line: Line::new(text),
            tells,
            names: None,
            suggestions: Suggestions::default(),
            selected: 0,
            is_entered: false,
        };
        line.suggest();
        line
    }

    /// The error of the query, if it has one.
    pub(crate) fn error(&self) -> Option<QueryError> {
        Query::parse(self.line.text()).err()
    }

    /// The kind of names that is needed and not there yet.
    pub(crate) fn needs_names(&self) -> Option<GroupBy> {
        let held = self.names.as_ref().map(|(kind, _)| *kind);
        self.suggestions.names.filter(|kind| held != Some(*kind))
    }

    /// Takes all names of a kind.
    pub(crate) fn set_names(&mut self, kind: GroupBy, names: Arc<[Name]>) {
        self.names = Some((kind, names));
        self.suggest();
    }

    /// Takes the properties of the source, which are not known before the trace is loaded.
    pub(crate) fn set_source(&mut self, tells: Capabilities) {
        self.tells = tells;
        self.suggest();
    }

    /// Suggestions: the words of the language first.
    pub(crate) fn suggestions(&self) -> Vec<&str> {
        let items = self.suggestions.items.iter();
        items.map(|item| &*item.text).collect()
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.line.insert(text);
        self.changed();
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        let count = self.suggestions.items.len();
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
        self.selected = 0;
        self.is_entered = false;
        self.suggest();
    }

    fn suggest(&mut self) {
        let held = self.names.as_ref();
        let names = |kind| match held {
            Some((held, names)) if *held == kind => &**names,
            _ => &[],
        };
        let cursor = self.line.before().len();
        self.suggestions = suggest(self.line.text(), cursor, self.tells, NAMES, names);
        self.selected = self
            .selected
            .min(self.suggestions.items.len().saturating_sub(1));
    }

    /// Replaces the word at the cursor by the selected suggestion.
    fn accept(&mut self) {
        if let Some(item) = self.suggestions.items.get(self.selected) {
            let mut replace = self.suggestions.replace.clone();
            // One space follows, not two.
            let rest = &self.line.text()[replace.end..];
            replace.end += rest.len() - rest.trim_start().len();
            self.line.replace(replace, &format!("{} ", item.text));
            self.changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OCAML: Capabilities = Capabilities {
        lifetimes: true,
        promotions: true,
        gc_parameters: true,
        lanes: true,
        sizes: true,
    };

    fn typed_about(tells: Capabilities, text: &str) -> FilterLine {
        let mut line = FilterLine::new("", tells);
        for c in text.chars() {
            line.key(KeyEvent::from(KeyCode::Char(c)));
        }
        line
    }

    fn typed(text: &str) -> FilterLine {
        typed_about(OCAML, text)
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
        let mut line = typed("site = mi");
        assert_eq!(line.needs_names(), Some(GroupBy::Function));
        let names = ["List.map", "Mix.( * )"].map(|name| Name {
            name: name.to_owned(),
            bytes: 1.0,
        });
        line.set_names(GroupBy::Function, names.into());
        assert_eq!(line.needs_names(), None);
        tab(&mut line);
        assert_eq!(line.line.text(), "site = \"Mix.( \\* )\" ");
        let outcome = line.key(KeyEvent::from(KeyCode::Enter));
        assert!(matches!(outcome, Outcome::Entered(_)));
        // Those of another kind are not taken for it.
        let mut line = typed("file = ");
        line.set_names(GroupBy::Function, Vec::new().into());
        assert_eq!(line.needs_names(), Some(GroupBy::File));
    }

    #[test]
    fn fields_that_the_source_does_not_tell_are_not_suggested() {
        assert_eq!(typed("pro").suggestions(), ["promoted"]);
        let rust = Capabilities {
            promotions: false,
            ..OCAML
        };
        let mut line = typed_about(rust, "pro");
        assert!(line.suggestions().is_empty());
        line.set_source(OCAML);
        assert_eq!(line.suggestions(), ["promoted"]);
        let snapshots = typed_about(Capabilities::default(), "li");
        assert_eq!(snapshots.suggestions(), ["live at", "line"]);
    }

    #[test]
    fn a_word_in_the_middle_is_replaced_as_a_whole() {
        let mut line = FilterLine::new("lifet > 2s", OCAML);
        line.key(KeyEvent::from(KeyCode::Home));
        for _ in 0..3 {
            line.key(KeyEvent::from(KeyCode::Right));
        }
        tab(&mut line);
        assert_eq!(line.line.text(), "lifetime > 2s");
        assert_eq!(line.line.before(), "lifetime ");
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
