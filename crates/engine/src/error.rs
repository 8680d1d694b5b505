//! Errors of requests, for programs and for people.

use heapline_profile::{OptionError, QueryError};
use serde::Serialize;

use crate::utf16::utf16_offset;

/// The kind of error. Its name is the `code` of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A parameter is unknown, or has a value that it cannot have.
    BadParameter,
    /// A query, a time or a window cannot be parsed.
    BadQuery,
    /// There is no such report.
    NotFound,
    /// There is no second trace to compare with.
    NoOtherTrace,
    /// The source does not tell what the report is about.
    NotTold,
    /// The request was cancelled.
    Cancelled,
    /// The trace cannot be read.
    Failed,
    /// A defect of this program.
    Internal,
}

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// The kind of error.
    #[serde(rename = "code")]
    pub kind: ErrorKind,
    /// The message for people.
    pub message: String,
    /// The parameter with the error, if it is one.
    #[serde(flatten)]
    pub place: Option<Box<Place>>,
}

/// The parameter that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its name.
    pub parameter: String,
    /// Its value.
    pub value: String,
    /// The part of the value that is wrong, in UTF-16 code units.
    pub span: Option<[usize; 2]>,
    /// A description of what was expected there.
    pub expected: Option<String>,
}

impl EngineError {
    /// An error that is not about a parameter.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            place: None,
        }
    }

    /// A parameter is unknown, or has a value that it cannot have.
    #[must_use]
    pub fn parameter(name: &str, value: &str, message: impl Into<String>) -> Self {
        Self {
            place: Some(Box::new(Place {
                parameter: name.to_owned(),
                value: value.to_owned(),
                span: None,
                expected: None,
            })),
            ..Self::new(ErrorKind::BadParameter, message)
        }
    }

    /// A query, or a part of one, cannot be parsed.
    pub(crate) fn query(name: &str, error: &QueryError) -> Self {
        let span = [error.start, error.end].map(|at| utf16_offset(&error.query, at));
        Self {
            place: Some(Box::new(Place {
                parameter: name.to_owned(),
                value: error.query.clone(),
                span: Some(span),
                expected: Some(error.expected.clone()),
            })),
            ..Self::new(ErrorKind::BadQuery, error.message.clone())
        }
    }
}

impl From<OptionError> for EngineError {
    fn from(error: OptionError) -> Self {
        let message = format!("`{}` {}", error.option, error.message);
        Self::parameter(error.option, &error.value, message)
    }
}

#[cfg(test)]
mod tests {
    use heapline_profile::Query;

    use super::*;

    #[test]
    fn places_are_in_the_units_of_javascript() {
        let error = Query::parse("inside \"𝕏é\" and lifetim > 2s").unwrap_err();
        let error = EngineError::query("where", &error);
        // 𝕏 takes four bytes, and two units of UTF-16.
        assert_eq!(error.place.unwrap().span, Some([17, 24]));
        assert_eq!(error.message, "unknown field `lifetim`");
    }
}
