//! Answers to requests.

use std::sync::{Arc, OnceLock};

use heapline_profile::reports::Overview;
use serde::Serialize;

use crate::error::{EngineError, ErrorKind};
use crate::reports::Report;

/// A report, which state of which trace it is about, and the command that prints it.
#[derive(Debug)]
pub struct Answer {
    /// The identity of the trace: see [`Session::identity`](crate::Session::identity).
    pub identity: Arc<str>,
    /// The epoch of the profile: see [`Session::epoch`](crate::Session::epoch).
    pub epoch: u64,
    /// The command that prints the report, if there is one: see
    /// [`Session::command_line`](crate::Session::command_line).
    pub command: Option<String>,
    /// The report.
    pub report: Report,
    json: OnceLock<Arc<[u8]>>,
}

impl Answer {
    pub(crate) fn new(
        identity: Arc<str>,
        epoch: u64,
        command: Option<String>,
        report: Report,
    ) -> Self {
        Self {
            identity,
            epoch,
            command,
            report,
            json: OnceLock::new(),
        }
    }

    /// The report as JSON on one line: what its command prints with `--json`.
    pub fn json(&self) -> Result<Arc<[u8]>, EngineError> {
        if let Some(json) = self.json.get() {
            return Ok(Arc::clone(json));
        }
        let json = serde_json::to_vec(&self.report).map_err(|error| {
            EngineError::new(
                ErrorKind::Internal,
                format!("cannot serialise the answer: {error}"),
            )
        })?;
        Ok(Arc::clone(self.json.get_or_init(|| json.into())))
    }
}

/// The properties of a trace: `heapline info --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Info {
    /// The file as the user named it.
    pub file: String,
    /// Its size; null for pipes.
    pub file_size: Option<u64>,
    /// Its contents.
    #[serde(flatten)]
    pub overview: Overview,
}
