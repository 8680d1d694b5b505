//! Runs the program, forwarding signals and its exit code.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

use heapline_recorder::inherited;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

use crate::commands::cpu_time::CpuTime;

/// A program that has ended.
pub(super) struct Ended {
    pub(super) pid: u32,
    /// The name of another program that it ran in its place, as the system has it.
    pub(super) became: Option<String>,
    /// The CPU time that it used, without that of its children.
    pub(super) cpu_time: Option<Duration>,
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
    let first_name = name_of(pid);
    started(pid);
    wait_for_end(pid);
    let last_name = name_of(pid);
    let cpu_time = CpuTime::of(pid).map(CpuTime::total);
    let status = child.wait();
    handle.close();
    let _ = forwarder.join();
    Ok(Ended {
        pid,
        became: last_name.filter(|last| first_name.is_some_and(|first| first != *last)),
        cpu_time,
        status: status?,
    })
}

/// Waits until a program has ended, and leaves it to be waited for: until then it has a name and its CPU time.
pub(super) fn wait_for_end(pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
}

/// The name of a process: that of its program, cut to 15 bytes.
fn name_of(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Sends a signal to a program.
pub(super) fn forward(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // It fails if the program has ended.
        let _ = kill_process(pid, signal);
    }
}
