//! Runs the program, forwarding signals and its exit code.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;

use heapline_recorder::inherited;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

/// A program that has ended.
pub(super) struct Ended {
    pub(super) pid: u32,
    status: ExitStatus,
}

impl Ended {
    /// The exit code as in a shell: 128 plus the number of a signal.
    pub(super) fn exit_code(&self) -> ExitCode {
        let code = match self.status.signal() {
            Some(signal) => 128 + signal,
            None => self.status.code().unwrap_or(2),
        };
        ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
    }
}

/// The signals that are forwarded to the program.
const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Runs a program to its end, and forwards signals to it. `started` gets its pid.
pub(super) fn run(command: &mut Command, started: impl FnOnce(u32)) -> io::Result<Ended> {
    // A signal that is ignored, as under `nohup`, stays so: the program inherits that.
    let handled = FORWARDED.into_iter().filter(|&s| !inherited::is_ignored(s));
    let mut signals = SignalsInfo::<WithOrigin>::new(handled)?;
    inherited::hand_on(command);
    let mut child = command.spawn()?;
    let pid = child.id();
    let handle = signals.handle();
    let forwarder = thread::spawn(move || {
        for origin in &mut signals {
            // The terminal has sent its signals to the program too.
            if origin.process.is_some() {
                forward(pid, origin.signal);
            }
        }
    });
    started(pid);
    let status = child.wait();
    handle.close();
    let _ = forwarder.join();
    Ok(Ended {
        pid,
        status: status?,
    })
}

/// Sends a signal to a program.
pub(super) fn forward(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // It fails if the program has ended.
        let _ = kill_process(pid, signal);
    }
}
