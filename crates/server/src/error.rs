//! Errors as HTTP responses.

use heapline_engine::{EngineError, ErrorKind};
use hyper::StatusCode;
use serde::Serialize;

/// The error of a request, sent as `{"error": {...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(untagged)]
pub enum ApiError {
    /// The engine has no answer.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The request did not get that far.
    #[error("{message}")]
    Http {
        /// The status of the response.
        #[serde(skip)]
        status: StatusCode,
        /// The code for programs.
        code: &'static str,
        /// The message for people.
        message: String,
    },
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self::Http {
            status,
            code,
            message: message.into(),
        }
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Http { status, .. } => *status,
            Self::Engine(error) => match error.kind {
                ErrorKind::BadParameter
                | ErrorKind::BadQuery
                | ErrorKind::NoOtherTrace
                | ErrorKind::NotTold => StatusCode::BAD_REQUEST,
                ErrorKind::NotFound => StatusCode::NOT_FOUND,
                ErrorKind::Cancelled | ErrorKind::Failed => StatusCode::SERVICE_UNAVAILABLE,
                ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            },
        }
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
