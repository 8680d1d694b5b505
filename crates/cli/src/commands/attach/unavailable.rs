//! `heapline attach` in builds without recording.

use std::ffi::OsString;
use std::process::ExitCode;

use heapline_text::Screen;

/// Record an OCaml program that is already running
///
/// Not available in this build: recording needs x86-64 Linux with glibc, and the cargo feature `record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Process to record
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PID"
    )]
    _arguments: Vec<OsString>,
}

impl Args {
    #[expect(
        clippy::unused_self,
        reason = "same signature as in builds with recording"
    )]
    pub(crate) fn run(self, _screen: Screen) -> anyhow::Result<ExitCode> {
        Err(super::record::unavailable())
    }
}
