//! A program that waits for `heapline attach`: see [`heapline_recorder::listener`].

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heapline_recorder::control::{FileView, Outcome, Reply, Request};
use heapline_recorder::listener::listen;

use crate::attach;
use crate::explain;
use crate::preload;
use crate::snapshot;

/// True if forked processes listen too.
static FOLLOW_FORK: OnceLock<bool> = OnceLock::new();

/// True while the listener answers a request, or while this process forks another, which must not happen
/// at once: the new process would have the locks of the listener, and nobody who releases them.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// The time for which forking waits for a request to be answered.
const PATIENCE: Duration = Duration::from_millis(500);

/// Starts to wait.
pub(crate) fn start(follow_fork: bool) {
    let _ = FOLLOW_FORK.set(follow_fork);
    // If that fails, `heapline attach` does without.
    if listen(answer).is_ok() {
        preload::watch_forks();
    }
}

fn answer(request: &Request) -> Reply {
    let end = Instant::now() + PATIENCE;
    while AT_WORK.swap(true, Ordering::Acquire) {
        if Instant::now() > end {
            return reply(Outcome::Busy, &attach::CONTROL);
        }
        thread::sleep(Duration::from_micros(100));
    }
    let outcome = match request {
        Request::State => {
            attach::ask_again();
            Outcome::Done
        }
        Request::Attach(settings) => attach::attach(settings),
        Request::Detach => attach::detach(),
        Request::Snapshot(settings) => snapshot::take(settings),
        Request::Explain => explain::explain(),
        Request::SnapshotState => {
            snapshot::reap();
            attach::ask_again();
            Outcome::Done
        }
    };
    let control = match request {
        Request::Snapshot(_) | Request::SnapshotState => &snapshot::CONTROL,
        Request::Explain => &explain::CONTROL,
        _ => &attach::CONTROL,
    };
    let reply = reply(outcome, control);
    AT_WORK.store(false, Ordering::Release);
    reply
}

fn reply(outcome: Outcome, control: &attach::Control) -> Reply {
    let (state, message) = control.read();
    Reply {
        outcome,
        state,
        files: FileView::default(),
        message,
    }
}

/// Waits until the listener does nothing, before this process forks another.
pub(crate) fn pause() {
    if FOLLOW_FORK.get().is_none() {
        return;
    }
    let end = Instant::now() + PATIENCE;
    while AT_WORK.swap(true, Ordering::Acquire) && Instant::now() < end {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Goes on, in both processes.
pub(crate) fn resume() {
    AT_WORK.store(false, Ordering::Release);
}

/// In a process that was just forked: nobody listens there.
pub(crate) fn forked() {
    if FOLLOW_FORK.get() == Some(&true) {
        let _ = listen(answer);
    }
}
