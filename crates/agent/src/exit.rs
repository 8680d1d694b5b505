//! The end of the program: the last moment at which its runtime can be asked for something.

use std::sync::atomic::{AtomicBool, Ordering};

use heapline_recorder::contained;

use crate::arch;
use crate::collector;
use crate::patch::Patch;
use crate::preload;
use crate::runtime::symbol;

/// `caml_do_exit`, and before 4.13 `caml_sys_exit`: the function with which a program exits.
static EXIT: Patch = Patch::new();
/// `caml_shutdown`, after which the runtime's data may be gone.
static SHUTDOWN: Patch = Patch::new();

/// The end was noted.
static IS_NOTED: AtomicBool = AtomicBool::new(false);

/// From now on, the end of the program is noticed.
///
/// # Safety
///
/// No other thread runs OCaml code, and this one is not at the beginning of these functions.
pub(crate) unsafe fn watch() {
    let exit = symbol(c"caml_do_exit").or_else(|| symbol(c"caml_sys_exit"));
    let hooks = [
        (&EXIT, exit, arch::before_exit as *const ()),
        (
            &SHUTDOWN,
            symbol(c"caml_shutdown"),
            arch::before_shutdown as *const (),
        ),
    ];
    for (patch, function, hook) in hooks {
        if let Some(function) = function {
            // SAFETY: it is a function of the runtime, longer than a jump; the rest is the caller's.
            let _ = unsafe { patch.set(function, hook.expose_provenance()) };
        }
    }
}

/// From now on, it is not noticed.
///
/// # Safety
///
/// As for [`watch`].
pub(crate) unsafe fn unwatch() {
    // SAFETY: as the caller's.
    unsafe {
        EXIT.restore();
        SHUTDOWN.restore();
    }
}

/// Comes before the function with which a program exits.
pub(crate) extern "C" fn before_exit() -> usize {
    before(&EXIT, preload::snapshot_at_exit)
}

/// Comes before the function that shuts the runtime down.
pub(crate) extern "C" fn before_shutdown() -> usize {
    before(&SHUTDOWN, || {})
}

fn before(patch: &Patch, then: fn()) -> usize {
    // SAFETY: whoever else exits at the same time is beyond us.
    let function = contained(None, || unsafe { patch.restore() });
    contained((), || {
        // SAFETY: the runtime calls this in a thread that may run OCaml code, and does not.
        unsafe { collector::verify_at_end() };
        note();
        then();
    });
    function.unwrap_or_default()
}

/// Takes note of the end of the program, once.
pub(crate) fn note() {
    if !IS_NOTED.swap(true, Ordering::AcqRel) {
        collector::read_counters();
    }
}
