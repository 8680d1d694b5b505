//! `heapline top -- PROGRAM`: starts a program, records it and shows it.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use heapline_text::Screen;
use heapline_tui::Left;

use super::follow::Follower;
use super::{Args, end_by};
use crate::commands::record;
use crate::error::note;

/// Records a program and shows it until the user leaves; the program may run on.
pub(super) fn watch(args: &Args, screen: Screen) -> anyhow::Result<ExitCode> {
    let recording = record::Args::of_program(
        args.command.clone(),
        args.output.clone(),
        args.rate.as_deref(),
        args.force.clone(),
    )?;
    let started = Arc::new(Mutex::new(recording.start()?));
    let lock = |started: &Mutex<record::Started>, f: &mut dyn FnMut(&mut record::Started)| {
        f(&mut started.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let mut trace = std::path::PathBuf::new();
    lock(&started, &mut |started| trace = started.trace());
    let watched = Arc::clone(&started);
    let is_running = Box::new(move || {
        let mut is_running = false;
        lock(&watched, &mut |started| is_running = started.is_running());
        is_running
    });
    let follower = Follower::of_program(args.input(&trace), args.filter.keep_recursion, is_running);
    let left = args.show(follower, screen, true);
    let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
    if !started.is_running() {
        started.finish();
        let left = left?;
        return Ok(match left {
            Left::Signal(signal) => end_by(signal),
            Left::Quit | Left::Kill => ExitCode::SUCCESS,
        });
    }
    match left {
        Ok(Left::Quit) => {
            note(&format!(
                "process {} runs on, and is recorded to {}; to look again: heapline top {}",
                started.pid(),
                trace.display(),
                started.pid()
            ));
            Ok(ExitCode::SUCCESS)
        }
        Ok(Left::Kill) => {
            started.end(None);
            started.finish();
            Ok(ExitCode::SUCCESS)
        }
        Ok(Left::Signal(signal)) => {
            started.end(Some(signal));
            started.finish();
            Ok(end_by(signal))
        }
        Err(error) => {
            started.end(None);
            started.finish();
            Err(error)
        }
    }
}
