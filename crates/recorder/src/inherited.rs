//! Starts a program as this one was started: with the same signals and standard descriptors.
//!
//! Rust changes some of that. Before `main` it ignores SIGPIPE, and opens `/dev/null` where standard
//! input, output or error are closed. A `Command` sets SIGPIPE to its default action and unblocks all
//! signals, so that a program that was started with `nohup` or with a closed output would behave
//! differently when it is recorded.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Bits of the standard descriptors that were closed.
static CLOSED: AtomicI32 = AtomicI32::new(0);
static IGNORED_SIGPIPE: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

/// Runs before Rust's runtime starts.
extern "C" fn constructor() {
    let is_closed = |descriptor: &i32| {
        // SAFETY: only asks for a flag of the descriptor.
        unsafe { libc::fcntl(*descriptor, libc::F_GETFD) == -1 }
    };
    let closed = (0..3).filter(is_closed).map(|descriptor| 1 << descriptor);
    CLOSED.store(closed.sum(), Ordering::Relaxed);
    IGNORED_SIGPIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Returns true if this process ignores a signal.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action, and changes nothing. All zeros is a valid one, if it fails.
    let action = unsafe {
        libc::sigaction(signal, null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Lets a program inherit what this one inherited.
///
/// If SIGCHLD is ignored, this process stops ignoring it: it could not wait for the program.
pub fn hand_on(command: &mut Command) {
    let closed = CLOSED.load(Ordering::Relaxed);
    let ignored = [
        (libc::SIGPIPE, IGNORED_SIGPIPE.load(Ordering::Relaxed)),
        (libc::SIGCHLD, is_ignored(libc::SIGCHLD)),
    ];
    let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: asks for the mask, and changes nothing. All zeros is a valid one, if it fails.
    let blocked = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, null(), blocked.as_mut_ptr());
        blocked.assume_init()
    };
    // SAFETY: the default action of SIGCHLD is to do nothing.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let restore = move || -> io::Result<()> {
        for (signal, _) in ignored.iter().filter(|(_, ignored)| *ignored) {
            // SAFETY: nothing runs when the signal comes.
            unsafe { libc::signal(*signal, libc::SIG_IGN) };
        }
        for descriptor in (0..3).filter(|descriptor| closed & (1 << descriptor) != 0) {
            // SAFETY: nothing uses it before the program is executed.
            unsafe { libc::close(descriptor) };
        }
        // SAFETY: the mask is that of the process that was forked.
        let error =
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, null_mut()) };
        if error == 0 {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(error))
        }
    };
    // SAFETY: the closure only makes system calls, which are allowed between fork and exec.
    unsafe { command.pre_exec(restore) };
}
