//! Options of all commands that record programs.

use std::path::PathBuf;

use super::rate::Rate;
use crate::output::Force;

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
