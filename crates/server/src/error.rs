//! What is wrong with a request, for programs and for people.

use heapline_profile::QueryError;
use hyper::StatusCode;
use serde::Serialize;

/// Why a request was not answered. It is sent as `{"error": {...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The status of the response.
    #[serde(skip)]
    pub status: StatusCode,
    /// What is wrong, for programs.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// Where, if it is a parameter.
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
    /// What was expected there.
    pub expected: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            place: None,
        }
    }

    /// A parameter has a value that it cannot have.
    pub(crate) fn parameter(name: &str, value: &str, message: impl Into<String>) -> Self {
        Self {
            place: Some(Box::new(Place {
                parameter: name.to_owned(),
                value: value.to_owned(),
                span: None,
                expected: None,
            })),
            ..Self::new(StatusCode::BAD_REQUEST, "bad_parameter", message)
        }
    }

    /// A query, or a part of one, cannot be understood.
    pub(crate) fn query(name: &str, error: &QueryError) -> Self {
        let units = |end: usize| {
            let text = error.query.get(..end).unwrap_or(&error.query);
            text.encode_utf16().count()
        };
        Self {
            place: Some(Box::new(Place {
                parameter: name.to_owned(),
                value: error.query.clone(),
                span: Some([units(error.start), units(error.end)]),
                expected: Some(error.expected.clone()),
            })),
            ..Self::new(StatusCode::BAD_REQUEST, "bad_query", error.message.clone())
        }
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn stopped() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopped",
            "nobody waits for this answer any more",
        )
    }

    /// The body of the response.
    pub(crate) fn body(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body<'a> {
            error: &'a ApiError,
        }
        // Strings and numbers can always be serialised.
        serde_json::to_vec(&Body { error: self }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use heapline_profile::Query;

    use super::*;

    #[test]
    fn places_are_in_the_units_of_javascript() {
        let error = Query::parse("inside \"𝕏é\" and lifetim > 2s").unwrap_err();
        let error = ApiError::query("where", &error);
        // 𝕏 takes four bytes, and two units of UTF-16.
        assert_eq!(error.place.unwrap().span, Some([17, 24]));
        assert_eq!(error.message, "`lifetim` is not a field");
    }
}
