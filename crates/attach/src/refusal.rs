//! The reasons why a process cannot be attached to, found before it is touched.

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::arch::{MACHINE, PROGRAM};
use crate::process::{Identity, Module, Process};

/// `CAP_SYS_PTRACE`
const MAY_TRACE: u64 = 1 << 19;

/// The time for which a program that is being loaded is waited for.
const LOADING: Duration = Duration::from_secs(2);

/// The time for which another tracer is waited for: attaching takes milliseconds, a debugger stays.
const TRACED: Duration = Duration::from_secs(2);

/// A reason why a process cannot be attached to, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such process.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// It is us.
    #[error("process {0} is this program")]
    Oneself(i32),
    /// A zombie.
    #[error("process {0} has ended")]
    Ended(i32),
    /// Stopped by a signal.
    #[error("process {0} is stopped; continue it first: kill -CONT {0}")]
    Stopped(i32),
    /// Another debugger.
    #[error(
        "process {pid} is traced by process {tracer} already, such as a debugger; end that first"
    )]
    Traced {
        /// The process.
        pid: i32,
        /// The one that traces it.
        tracer: i32,
    },
    /// Another user's.
    #[error("process {pid} belongs to user {user}; run heapline as that user, or as root")]
    OtherUser {
        /// The process.
        pid: i32,
        /// Its user.
        user: u32,
    },
    /// Not dumpable.
    #[error(
        "process {0} runs a setuid program, or one that protects itself (prctl PR_SET_DUMPABLE); run \
         heapline as root"
    )]
    Protected(i32),
    /// Yama.
    #[error(
        "the system does not allow to trace process {pid} (kernel.yama.ptrace_scope is {scope}); {advice}"
    )]
    Scope {
        /// The process.
        pid: i32,
        /// The setting.
        scope: u32,
        /// The advice.
        advice: &'static str,
    },
    /// A container without the capability, or a sandbox.
    #[error(
        "not allowed to trace process {0}; in a container, run it with --cap-add SYS_PTRACE, or start \
         the program with `heapline record`"
    )]
    Forbidden(i32),
    /// A filter of system calls.
    #[error(
        "process {0} runs under a seccomp filter, which might kill it; use --allow-seccomp if its filter \
         allows memfd_create, mmap and openat (as container runtimes do), or start it with \
         `heapline record`"
    )]
    Seccomp(i32),
    /// Strict seccomp.
    #[error(
        "process {0} runs under strict seccomp, which allows no system calls but read and write: nothing \
         can be loaded into it"
    )]
    StrictSeccomp(i32),
    /// 32 bits or another processor.
    #[error("process {0} is not a {PROGRAM}; only such programs are supported")]
    Architecture(i32),
    /// SIGTRAP.
    #[error("process {0} ignores SIGTRAP, which attaching needs; start it with `heapline record`")]
    IgnoresTrap(i32),
    /// Static, or another C library.
    #[error(
        "process {0} cannot load libraries: it is statically linked, or its C library has no dlopen; \
         link it dynamically with glibc, or link Heapline's OCaml library"
    )]
    NoLoader(i32),
    /// Anything else.
    #[error("cannot inspect process {pid}: {reason}")]
    Unreadable {
        /// The process.
        pid: i32,
        /// The system's message.
        reason: String,
    },
}

/// Opens a process, if it can be attached to. `allow_seccomp`: also if it has a filter of system calls.
///
/// # Errors
///
/// The process has not been touched.
pub fn check(pid: i32, allow_seccomp: bool) -> Result<Process, Refusal> {
    if u32::try_from(pid) == Ok(std::process::id()) {
        return Err(Refusal::Oneself(pid));
    }
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Refusal::NoProcess(pid),
        _ => Refusal::Unreadable {
            pid,
            reason: error.to_string(),
        },
    };
    let identity = wait_for_tracer(pid).map_err(unreadable)?;
    match identity.state {
        'Z' | 'X' => return Err(Refusal::Ended(pid)),
        'T' => return Err(Refusal::Stopped(pid)),
        _ => {}
    }
    if identity.tracer != 0 {
        let tracer = identity.tracer;
        return Err(Refusal::Traced { pid, tracer });
    }
    let process = Process::open(pid).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => reason(pid, &identity),
        _ => unreadable(error),
    })?;
    scope(pid)?;
    match identity.seccomp {
        0 => {}
        1 => return Err(Refusal::StrictSeccomp(pid)),
        _ if allow_seccomp => {}
        _ => return Err(Refusal::Seccomp(pid)),
    }
    if identity.ignored >> (libc::SIGTRAP - 1) & 1 == 1 {
        return Err(Refusal::IgnoresTrap(pid));
    }
    let modules = process.modules().map_err(unreadable)?;
    let Some(program) = modules.first() else {
        return Err(Refusal::Architecture(pid));
    };
    let mut header = [0; 20];
    process
        .read(program.base, &mut header)
        .map_err(unreadable)?;
    // 64 bits, and the processor that this was built for.
    if !header.starts_with(b"\x7fELF\x02") || header[18..] != MACHINE.to_le_bytes() {
        return Err(Refusal::Architecture(pid));
    }
    let can_load = wait_until_loaded(&process, modules).map_err(unreadable)?;
    can_load.then_some(process).ok_or(Refusal::NoLoader(pid))
}

/// Reads the identity of a process, after whoever traces it at the moment has let go of it.
fn wait_for_tracer(pid: i32) -> io::Result<Identity> {
    let end = Instant::now() + TRACED;
    loop {
        let identity = Identity::read(&pid.to_string())?;
        if identity.tracer == 0 || Instant::now() > end {
            return Ok(identity);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the dynamic linker has mapped the C library of a program that has just been started.
/// Returns false if the program has none with `dlopen`.
fn wait_until_loaded(process: &Process, mut modules: Vec<Module>) -> io::Result<bool> {
    let end = Instant::now() + LOADING;
    loop {
        if process.symbol(&modules, "dlopen").is_some() {
            return Ok(true);
        }
        let is_dynamic = modules
            .first()
            .is_some_and(|program| process.has_interpreter(program));
        if !is_dynamic || Instant::now() > end {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(5));
        modules = process.modules()?;
    }
}

/// The reason why a process may not be inspected.
fn reason(pid: i32, identity: &Identity) -> Refusal {
    let own = Identity::read("self").map_or(u32::MAX, |own| own.users[1]);
    if let Some(&user) = identity.users.iter().find(|user| **user != own)
        && own != 0
    {
        if identity.users.contains(&own) {
            return Refusal::Protected(pid);
        }
        return Refusal::OtherUser { pid, user };
    }
    let is_protected = || {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(format!("/proc/{pid}/mem")).is_ok_and(|data| data.uid() != own)
    };
    if own != 0 && is_protected() {
        return Refusal::Protected(pid);
    }
    Refusal::Forbidden(pid)
}

/// Checks Yama's setting, which applies to tracing, not to reading.
fn scope(pid: i32) -> Result<(), Refusal> {
    let setting = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let may_trace = Identity::read("self").is_ok_and(|own| own.capabilities & MAY_TRACE != 0);
    let forbidden = forbidden_by(&setting.unwrap_or_default(), may_trace, || {
        is_descendant(pid)
    });
    forbidden.map_or(Ok(()), |(scope, advice)| {
        Err(Refusal::Scope { pid, scope, advice })
    })
}

/// Yama's setting, if that forbids to trace a process, and what to do. The text is empty where there is no
/// Yama.
fn forbidden_by(
    setting: &str,
    may_trace: bool,
    is_descendant: impl FnOnce() -> bool,
) -> Option<(u32, &'static str)> {
    let scope = setting.trim().parse().unwrap_or(0);
    let advice = match scope {
        0 => return None,
        1 if may_trace || is_descendant() => return None,
        2 if may_trace => return None,
        1 => {
            "run heapline as root, or allow it: sysctl kernel.yama.ptrace_scope=0; or start the program \
              with `heapline record`"
        }
        2 => "run heapline as root",
        _ => "start the program with `heapline record`",
    };
    Some((scope, advice))
}

fn is_descendant(pid: i32) -> bool {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let parent = |pid: i32| -> Option<i32> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok()
    };
    std::iter::successors(parent(pid), |pid| (*pid > 1).then(|| parent(*pid))?)
        .any(|ancestor| ancestor == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yama_is_obeyed() {
        let forbidden = |setting, may_trace, is_descendant| {
            forbidden_by(setting, may_trace, || is_descendant).map(|(scope, _)| scope)
        };
        for setting in ["", "0\n", "nonsense"] {
            assert_eq!(forbidden(setting, false, false), None, "{setting:?}");
        }
        // A process may trace its children, and root may trace all.
        assert_eq!(forbidden("1\n", false, false), Some(1));
        assert_eq!(forbidden("1\n", false, true), None);
        assert_eq!(forbidden("1\n", true, false), None);
        assert_eq!(forbidden("2\n", false, true), Some(2));
        assert_eq!(forbidden("2\n", true, false), None);
        // Nobody may.
        assert_eq!(forbidden("3\n", true, true), Some(3));

        let (_, advice) = forbidden_by("1", false, || false).unwrap();
        assert!(advice.contains("sysctl kernel.yama.ptrace_scope=0"));
    }
}
