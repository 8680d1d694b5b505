//! `heapline record` in builds without recording.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::anyhow;
use heapline_text::Screen;

/// Record an OCaml program, or a Rust program that uses Heapline's allocator
///
/// Not available in this build: recording needs x86-64 Linux with glibc, and the cargo feature
/// `record`. Record on another machine, and open the trace here.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Program to record, and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    _command: Vec<OsString>,
}

impl Args {
    #[expect(
        clippy::unused_self,
        reason = "same signature as in builds with recording"
    )]
    pub(crate) fn run(self, _screen: Screen) -> anyhow::Result<ExitCode> {
        Err(unavailable())
    }
}

/// The reason why nothing can be recorded.
pub(super) fn unavailable() -> anyhow::Error {
    if cfg!(all(
        target_os = "linux",
        target_env = "gnu",
        target_arch = "x86_64"
    )) {
        return anyhow!(
            "this heapline was built without recording; build it with the cargo feature `record`, \
             which is on by default"
        );
    }
    anyhow!(
        "recording needs x86-64 Linux with glibc; run `heapline record` on such a machine, or link \
         memtrace into the OCaml program, and open the trace here"
    )
}
