//! Computes a report from its options.

use clap::Args;
use heapline_profile::OptionError;
use serde::Serialize;

use crate::cancel::Cancel;
use crate::error::EngineError;
use crate::filter::Filter;
use crate::session::Session;

/// Options that a [`Session`] can answer with a report.
pub trait Ask: Args + Serialize {
    /// The report.
    type Report: Serialize;

    /// Checks options that do not go together. Each value by itself was checked when it was parsed.
    fn validate(&self) -> Result<(), OptionError> {
        Ok(())
    }

    /// Computes the report. The options are valid.
    fn ask(
        &self,
        session: &Session,
        filter: &Filter,
        cancel: &Cancel,
    ) -> Result<Self::Report, EngineError>;
}
