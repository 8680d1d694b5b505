//! `heapline top -- PROGRAM`: starts a program, records it and shows it.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heapline_text::Screen;
use heapline_tui::Left;

use super::follow::Follower;
use super::{Args, exit_code};
use crate::commands::record::{self, Started};
use crate::error::note;

/// Records a program and shows it until the user leaves; the program may run on.
pub(super) fn watch(args: &Args, screen: Screen) -> anyhow::Result<ExitCode> {
    let recording = record::Args::of_program(args.command.clone(), args.recording.clone())?;
    let started = Arc::new(Mutex::new(recording.start()?));
    let trace = lock(&started).trace();
    let watched = Arc::clone(&started);
    let is_running = Box::new(move || lock(&watched).is_running());
    let input = args.reading.input(&trace);
    let follower = Follower::of_program(input, args.filter.keep_recursion, is_running);
    let left = args.show(follower, screen, true);

    let mut started = lock(&started);
    if started.is_running() {
        match left {
            Ok(Left::Quit) => {
                let pid = started.pid();
                note(&format!(
                    "process {pid} runs on, and is recorded to {}; to look again: \
                     heapline top {pid}",
                    trace.display()
                ));
                return Ok(ExitCode::SUCCESS);
            }
            Ok(Left::Signal(signal)) => started.end(Some(signal)),
            Ok(Left::Kill) | Err(_) => started.end(None),
        }
    }
    started.finish();
    left.map(exit_code)
}

fn lock(started: &Mutex<Started>) -> MutexGuard<'_, Started> {
    started.lock().unwrap_or_else(PoisonError::into_inner)
}
