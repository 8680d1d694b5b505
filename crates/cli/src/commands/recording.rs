//! Options of all commands that record programs.

use std::path::PathBuf;

#[cfg(recording)]
use {
    clap::Arg,
    heapline_profile::query::Size,
    heapline_recorder::settings::{Output, RecordingSettings},
};

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

/// Description, limits and seed of a trace, for commands that have a program write one.
#[cfg(recording)]
#[derive(Clone, Debug, clap::Args)]
pub(super) struct TraceOptions {
    /// Store a description in the trace
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(super) context: Option<String>,

    /// Stop recording new blocks before the trace exceeds this size
    ///
    /// Promotions and collections of recorded blocks are still recorded, so their lifetimes are right.
    #[arg(long, value_name = "SIZE", value_parser = max_size, hide_short_help = true)]
    max_size: Option<u64>,

    /// Keep at most this many frames of a stack, the innermost ones [default: all]
    ///
    /// A frame `<deeper calls>` stands for the others. Limits the cost of stacks with tens of thousands
    /// of frames.
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    stack_depth: Option<u32>,

    /// Sample the same blocks as another recording with this seed [default: a random one]
    ///
    /// That is so for programs that allocate the same again, in one thread. `heapline info` shows the seed of a trace.
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    seed: Option<u32>,
}

#[cfg(recording)]
impl TraceOptions {
    /// The settings of the recording.
    pub(super) fn settings(&self, output: Output, rate: Rate) -> RecordingSettings {
        RecordingSettings {
            seed: self.seed.map(u64::from),
            context: self.context.clone(),
            max_size: self.max_size,
            stack_depth: self.stack_depth.map(|depth| depth as usize),
            ..RecordingSettings::new(output, rate.0)
        }
    }
}

/// The bytes of `--max-size`: a few packets must fit.
#[cfg(recording)]
fn max_size(text: &str) -> Result<u64, &'static str> {
    let size: Size = text.parse()?;
    match size.whole_bytes() {
        ..524_288 => Err("it must be at least 512KiB"),
        bytes => Ok(bytes),
    }
}
