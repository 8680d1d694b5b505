//! Makes a copy of this process, of which the program does not know.
//!
//! It is a child that signals nothing when it ends, so that the program's handler for `SIGCHLD` and its
//! `wait` do not see it. Handlers of `pthread_atfork` are not called. It has no file of the program but the
//! one that it writes, and no signal reaches it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::MEMORY;

const PAGE: usize = 4096;

/// Runs a function in a copy of this process, which exits with its result. Returns the number of the copy.
///
/// # Safety
///
/// The function only needs what a process has that was just copied, in which no other thread runs: none of
/// the C library's locks.
pub(super) unsafe fn run_in_copy(file: RawFd, f: impl FnOnce() -> u8) -> io::Result<libc::pid_t> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut previous = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sets are written before they are read. A copy without shared memory begins here too, with the
    // same stack.
    let copy = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), previous.as_mut_ptr());
        MEMORY.while_unused(|| libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0))
    };
    if copy == 0 {
        isolate(file);
        let result = f();
        // SAFETY: ends this copy, without handlers of the program.
        unsafe { libc::_exit(result.into()) };
    }
    let error = io::Error::last_os_error();
    // SAFETY: it was written above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, previous.as_ptr(), std::ptr::null_mut());
    }
    match libc::pid_t::try_from(copy) {
        Ok(copy) if copy > 0 => Ok(copy),
        _ => Err(error),
    }
}

/// A number that a process and its copy share.
#[derive(Debug)]
pub(super) struct Shared(NonNull<AtomicU64>);

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        let (read_write, shared) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        // SAFETY: asks for new memory.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, read_write, shared, -1, 0) };
        match NonNull::new(page) {
            Some(page) if page.as_ptr() != libc::MAP_FAILED => Ok(Self(page.cast())),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn number(&self) -> &AtomicU64 {
        // SAFETY: it is there as long as this is.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size. The copy has a mapping of its own.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
    }
}

/// Separates a copy from what the program shares with others.
fn isolate(file: RawFd) {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let file = u32::try_from(file).unwrap_or(u32::MAX);
    // SAFETY: nothing in this copy needs other files: pipes and sockets of the program must not be open
    // for longer than in the program. If the system does not know the call, they are.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        if file > 0 {
            libc::syscall(libc::SYS_close_range, 0, file - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, file + 1, u32::MAX, 0);
        libc::prctl(libc::PR_SET_NAME, c"heapline-copy".as_ptr());
    }
    // If memory is short, the copy is what to end first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Returns true if a copy has ended.
pub(super) fn has_ended(copy: libc::pid_t) -> bool {
    // SAFETY: asks about our own copy only, and does not wait.
    let result = unsafe { libc::waitpid(copy, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
    result != 0
}

/// Ends a copy that has not ended yet. Its number is that of no other process until [`has_ended`].
pub(super) fn end(copy: libc::pid_t) {
    // SAFETY: only our own copy gets a signal.
    unsafe { libc::kill(copy, libc::SIGKILL) };
}
