//! `heapline snapshot` in builds without recording.

use std::ffi::OsString;

/// Take a snapshot of the heap of a running OCaml program
///
/// Not available in this build: it needs x86-64 Linux with glibc, and the cargo feature `record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Process to take a snapshot of
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
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Err(super::record::unavailable())
    }
}
