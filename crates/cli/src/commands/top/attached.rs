//! `heapline top PID` and `heapline attach --top`: records a running program while it is shown.

use std::process::ExitCode;

use heapline_text::Screen;

use super::follow::Follower;
use super::{Args, check_terminal, exit_code};
use crate::commands::{self, attach};

/// Records a process that is not being recorded, as long as it is shown.
pub(super) fn watch(args: &Args, pid: u32, screen: Screen) -> anyhow::Result<ExitCode> {
    let attach = attach::Args::of_process(pid, args.recording.clone())?;
    show(args, &attach, screen)
}

/// Shows a recording of a process with the default options.
pub(in crate::commands) fn attached(
    attach: &attach::Args,
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    check_terminal()?;
    let args = commands::parse(vec!["PID".into()])?;
    show(&args, attach, screen)
}

fn show(args: &Args, attach: &attach::Args, screen: Screen) -> anyhow::Result<ExitCode> {
    let left = attach.watch(screen, |trace, is_running| {
        let input = args.reading.input(trace);
        let follower = Follower::of_program(input, args.filter.keep_recursion, is_running);
        args.show(follower, screen, false)
    });
    left.map(exit_code)
}
