//! The signal that asks for a heap snapshot.
//!
//! The handler only counts: `heapline record` sees the count in the tail of the trace, and asks for the snapshot.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use heapline_recorder::Recorder;

/// The counter in the tail of the trace.
static COUNTER: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// The signal that is counted, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn count(_: c_int) {
    // SAFETY: it is null, or a counter that is there as long as the process.
    if let Some(counter) = unsafe { COUNTER.load(Ordering::Acquire).as_ref() } {
        counter.fetch_add(1, Ordering::Release);
    }
}

/// Counts a signal from now on. Returns false if the program does something else with it, such as to ignore it.
pub(crate) fn watch(signal: i32, recorder: &'static Recorder) -> bool {
    let Some(counter) = recorder.snapshot_signals() else {
        return false;
    };
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action of a signal.
    if unsafe { libc::sigaction(signal, null(), before.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: all zeros is a value of it too.
    if unsafe { before.assume_init() }.sa_sigaction != libc::SIG_DFL {
        return false;
    }
    COUNTER.store(from_ref(counter).cast_mut(), Ordering::Release);
    SIGNAL.store(signal, Ordering::Relaxed);
    // The program's system calls go on.
    set(
        signal,
        (count as *const ()).expose_provenance(),
        libc::SA_RESTART,
    )
}

/// In a process that was just forked and is not recorded: the signal does what it does by default.
pub(crate) fn forked() {
    if COUNTER.swap(null_mut(), Ordering::Acquire).is_null() {
        return;
    }
    let signal = SIGNAL.load(Ordering::Relaxed);
    let mut current = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action of a signal; all zeros is a value of it too.
    let handler = unsafe {
        libc::sigaction(signal, null(), current.as_mut_ptr());
        current.assume_init().sa_sigaction
    };
    // The program may have a handler of its own by now.
    if handler == (count as *const ()).expose_provenance() {
        set(signal, libc::SIG_DFL, 0);
    }
}

fn set(signal: i32, handler: libc::sighandler_t, flags: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros is a value of it; the handler only counts.
    unsafe {
        let action = action.assume_init_mut();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        libc::sigaction(signal, action, null_mut()) == 0
    }
}
