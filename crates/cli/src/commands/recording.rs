//! Options of all commands that record programs.

use std::path::PathBuf;

#[cfg(recording)]
use clap::Arg;

use super::rate::Rate;
use crate::output::Force;

/// Keeps options for how a recording is shown and sent out of the short help.
#[cfg(recording)]
pub(super) fn in_long_help(option: Arg) -> Arg {
    let is_of_others = matches!(
        option.get_id().as_str(),
        "port" | "listen" | "no_browser" | "push_interval" | "header" | "label" | "service"
    );
    let is_hidden = is_of_others || option.is_hide_short_help_set();
    option.hide_short_help(is_hidden)
}

/// The trace to write, and the rate of samples.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecordingOptions {
    /// Write the trace to this file [default: PROGRAM.PID.ctf]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Set the samples per word (1e-4, 1/10000) or the memory per sample (512KiB)
    ///
    /// 1e-4 is one sample per 78 KiB, and costs about one percent in programs that do little but
    /// allocate. 1e-3 costs ten times as much, and makes error bars three times smaller. 1 records
    /// every block.
    #[arg(long, default_value_t = Rate::DEFAULT, value_name = "RATE")]
    pub(super) rate: Rate,

    #[command(flatten)]
    pub(super) force: Force,
}
