//! Errors in a query, with position and expected input.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// A query that cannot be understood.
///
/// It prints as the query with the place marked:
///
/// ```text
/// unknown field `lifetim`
///   live at peak and lifetim > 2s
///                    ^^^^^^^ expected a field; did you mean `lifetime`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueryError {
    /// The whole text.
    pub query: String,
    /// The first byte of the place.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// A description of the error.
    pub message: String,
    /// A description of what was expected there.
    pub expected: String,
}

impl QueryError {
    pub(crate) fn new(span: Range<usize>, message: &str, expected: &str) -> Self {
        Self {
            query: String::new(),
            start: span.start,
            end: span.end,
            message: message.to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// The error, with the text it is about.
    pub(crate) fn of(mut self, query: &str) -> Self {
        query.clone_into(&mut self.query);
        self
    }

    /// The error, for a text of which the query is only a part that starts at `offset`.
    pub(crate) fn within(mut self, whole: &str, offset: usize) -> Self {
        self.start += offset;
        self.end += offset;
        self.of(whole)
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one_line: String = self
            .query
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let before: String = one_line
            .get(..self.start)
            .unwrap_or("")
            .chars()
            .map(|_| ' ')
            .collect();
        let marked = one_line.get(self.start..self.end).unwrap_or("");
        let marks = "^".repeat(marked.chars().count().max(1));
        writeln!(f, "{}", self.message)?;
        writeln!(f, "  {one_line}")?;
        write!(f, "  {before}{marks} expected {}", self.expected)
    }
}

impl std::error::Error for QueryError {}

/// The word of a list that was most likely meant; the first of those that are equally near.
pub(super) fn suggestion<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .iter()
        .map(|candidate| (strsim::osa_distance(&word, candidate), *candidate))
        .filter(|&(distance, candidate)| distance <= 2 && distance < candidate.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
