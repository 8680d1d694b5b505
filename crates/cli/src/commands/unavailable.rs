//! Commands that need recording, in builds without it.

use std::ffi::OsString;

use anyhow::anyhow;

// No doc comment: it would be the help text of all these commands, which is with their names.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Ignored
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    _arguments: Vec<OsString>,
}

/// The reason why nothing can be recorded.
pub(super) fn error() -> anyhow::Error {
    if cfg!(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "aarch64", target_arch = "x86_64")
    )) {
        return anyhow!(
            "this heapline was built without recording; build it with the cargo feature `record`, \
             which is on by default"
        );
    }
    anyhow!(
        "recording needs x86-64 or arm64 Linux with glibc; run `heapline record` on such a machine, or link \
         memtrace into the OCaml program, and open the trace here"
    )
}
