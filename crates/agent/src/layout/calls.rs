//! The functions of this process's runtime, for [`super::probe`].

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::probe::{Functions, State};
use crate::runtime::symbol;

/// The state with which a function is called; 0 for none.
static PROBED: AtomicUsize = AtomicUsize::new(0);
/// True if the hook was called with it.
static WAS_CALLED: AtomicBool = AtomicBool::new(false);
/// The hook that ours stands in for.
static PREVIOUS: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

type Hook = extern "C" fn();
type OfState = extern "C" fn(*mut State);
type OfTwoStates = extern "C" fn(*mut State, *mut State);
type Action = extern "C" fn(*mut c_void, usize, *mut usize);
type Finalisers = extern "C" fn(Action, c_int, *mut c_void, *mut State, c_int);

/// The runtime of this process, which is up.
pub(super) struct Runtime {
    /// `caml_state` of this thread.
    current: *mut usize,
}

impl Runtime {
    /// # Safety
    ///
    /// The runtime is one of OCaml 5.3 or later, and is up. This thread is not in the runtime's code, and nobody else
    /// probes.
    pub(super) unsafe fn new() -> Option<Self> {
        let current = symbol(c"caml_state")?;
        Some(Self {
            current: std::ptr::with_exposed_provenance_mut(current),
        })
    }

    /// The state of the domain that this thread runs; null if it runs none.
    pub(super) fn state(&self) -> *mut usize {
        // SAFETY: it is a variable of this thread that holds an address.
        std::ptr::with_exposed_provenance_mut(unsafe { *self.current })
    }
}

/// # Safety
///
/// `F` is the type of the function.
unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = symbol(name)?;
    // SAFETY: the caller promises the type, and it has the size of an address.
    Some(unsafe { std::mem::transmute_copy(&address) })
}

/// Takes the place of the runtime's hook.
extern "C" fn hook() {
    let probed = PROBED.load(Ordering::Acquire);
    let current = symbol(c"caml_state").map(|variable| {
        // SAFETY: it is a variable of this thread that holds an address.
        unsafe { *std::ptr::with_exposed_provenance::<usize>(variable) }
    });
    if probed != 0 && current == Some(probed) {
        WAS_CALLED.store(true, Ordering::Release);
        return;
    }
    // Another domain is really interrupted.
    let previous = PREVIOUS.load(Ordering::Acquire);
    if !previous.is_null() {
        // SAFETY: it was there as a function to call.
        let previous: Hook = unsafe { std::mem::transmute(previous) };
        previous();
    }
}

impl Functions for Runtime {
    fn set_action_pending(&self, state: &mut State) -> Option<()> {
        // SAFETY: that is its type.
        let set: OfState = unsafe { function(c"caml_set_action_pending") }?;
        set(state);
        Some(())
    }

    fn is_interrupted(&self, state: &mut State) -> Option<bool> {
        // SAFETY: that is its type.
        let process: Hook = unsafe { function(c"caml_process_external_interrupt") }?;
        let variable = symbol(c"caml_domain_external_interrupt_hook")?;
        // SAFETY: it is a variable of the runtime that holds the address of a function, which the runtime reads whole.
        let variable =
            unsafe { AtomicPtr::<()>::from_ptr(std::ptr::with_exposed_provenance_mut(variable)) };
        let ours = hook as *mut ();
        let probed = (&raw mut *state).expose_provenance();
        WAS_CALLED.store(false, Ordering::Release);
        PREVIOUS.store(variable.load(Ordering::Acquire), Ordering::Release);
        PROBED.store(probed, Ordering::Release);
        let before = variable.swap(ours, Ordering::AcqRel);
        // SAFETY: the variable is this thread's own. The function reads one word of the state, and calls the hook.
        unsafe {
            let own = *self.current;
            *self.current = probed;
            process();
            *self.current = own;
        }
        // Not if the program has set another one meanwhile.
        let _ = variable.compare_exchange(ours, before, Ordering::AcqRel, Ordering::Acquire);
        PROBED.store(0, Ordering::Release);
        Some(WAS_CALLED.load(Ordering::Acquire))
    }

    fn with_sampler<R>(&self, state: &mut State, f: impl FnOnce(&State) -> R) -> Option<R> {
        // SAFETY: those are their types.
        let (create, delete): (OfTwoStates, OfState) = unsafe {
            (
                function(c"caml_memprof_new_domain")?,
                function(c"caml_memprof_delete_domain")?,
            )
        };
        // It has no parent, so it samples nothing and nobody else knows it.
        create(std::ptr::null_mut(), state);
        let result = f(state);
        delete(state);
        Some(result)
    }

    fn first_finaliser(&self, state: &mut State) -> Option<usize> {
        extern "C" fn note(first: *mut c_void, value: usize, _: *mut usize) {
            // SAFETY: it is what was passed with this function.
            let first = unsafe { &mut *first.cast::<Option<usize>>() };
            first.get_or_insert(value);
        }
        // SAFETY: that is its type.
        let finalisers: Finalisers = unsafe { function(c"caml_final_do_roots") }?;
        let mut first: Option<usize> = None;
        finalisers(note, 0, (&raw mut first).cast(), state, 0);
        first
    }

    fn word(&self, address: usize) -> usize {
        // SAFETY: probes read structures that the runtime has made, within their sizes.
        unsafe { *std::ptr::with_exposed_provenance(address) }
    }
}
