//! OCaml 4: major collections that the program asks for, with `Gc.full_major`, `Gc.major` and `Gc.compact`, for which the
//! runtime calls no hooks.
//!
//! The functions are overwritten with jumps to ours, which restore them for the duration of the call. One thread at a time runs
//! OCaml code and the runtime's. Another one may be in the middle of such a function: in a finaliser that waits. That is
//! far behind the first instructions, because the functions have called several others before.
//!
//! If a finaliser raises an exception, it leaves the function, and ours. Then the function stays as the runtime has it, and
//! later calls are only seen by the counters.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use heapline_recorder::{CollectionKind, contained};

use super::{began, ended};
use crate::callbacks;
use crate::patch::Patch;
use crate::runtime::{Kind, Value, symbol};

type Function = unsafe extern "C" fn(Value) -> Value;

/// A function that does a whole major collection.
struct Forced {
    name: &'static CStr,
    ours: Function,
    patch: Patch,
    /// Its collections are counted by the runtime, as from 4.12 on, and as they are here for 4.11.
    is_counted: bool,
}

static FORCED: [Forced; 3] = [
    Forced::new(c"caml_gc_full_major", full_major, true),
    Forced::new(c"caml_gc_compaction", compaction, true),
    Forced::new(c"caml_gc_major", major, false),
];

/// Collections that have ended.
static COMPLETED: AtomicU64 = AtomicU64::new(0);

/// The number of collections that have ended while there was a recording.
pub(super) fn completed() -> u64 {
    COMPLETED.load(Ordering::Relaxed)
}

/// From now on, such collections are recorded.
///
/// # Safety
///
/// No other thread runs OCaml code, and this one is not at the beginning of such a function.
pub(crate) unsafe fn watch(kind: Kind) {
    if kind != Kind::Single {
        return;
    }
    for forced in &FORCED {
        if let Some(function) = symbol(forced.name) {
            // SAFETY: the function is longer than a jump; the rest is the caller's.
            unsafe { forced.set(function) };
        }
    }
}

/// Restores the functions.
///
/// # Safety
///
/// As for [`watch`].
pub(crate) unsafe fn restore() {
    for forced in &FORCED {
        // SAFETY: as the caller's.
        unsafe { forced.patch.restore() };
    }
}

unsafe extern "C" fn full_major(unit: Value) -> Value {
    // SAFETY: the runtime's function was called.
    unsafe { FORCED[0].call(unit) }
}

unsafe extern "C" fn compaction(unit: Value) -> Value {
    // SAFETY: as above.
    unsafe { FORCED[1].call(unit) }
}

unsafe extern "C" fn major(unit: Value) -> Value {
    // SAFETY: as above.
    unsafe { FORCED[2].call(unit) }
}

impl Forced {
    const fn new(name: &'static CStr, ours: Function, is_counted: bool) -> Self {
        Self {
            name,
            ours,
            patch: Patch::new(),
            is_counted,
        }
    }

    /// # Safety
    ///
    /// As for [`watch`].
    unsafe fn set(&self, function: usize) {
        let ours = (self.ours as *const ()).expose_provenance();
        // If that fails, the collections are only counted.
        // SAFETY: as the caller's.
        let _ = unsafe { self.patch.set(function, ours) };
    }

    /// Takes the place of the function.
    ///
    /// # Safety
    ///
    /// The function was called.
    unsafe fn call(&self, argument: Value) -> Value {
        // SAFETY: this is the thread that runs OCaml code.
        let function = contained(None, || unsafe { self.patch.restore() });
        let Some(function) = function.or_else(|| symbol(self.name)) else {
            return argument;
        };
        began(CollectionKind::Forced);
        // SAFETY: that is its type, and it is as the runtime has it. If it raises an exception, nothing here is left to
        // be done.
        let result = unsafe {
            let function: Function = std::mem::transmute(function);
            function(argument)
        };
        if self.is_counted {
            COMPLETED.fetch_add(1, Ordering::Relaxed);
        }
        ended(CollectionKind::Forced);
        contained((), || {
            if callbacks::session().is_some() {
                // SAFETY: this is the thread that runs OCaml code.
                unsafe { self.set(function) };
            }
        });
        result
    }
}
