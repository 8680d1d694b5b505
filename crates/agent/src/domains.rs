//! Gives each domain of OCaml 5.3 its own random seed.
//!
//! In OCaml 5.3 the random numbers of a domain's sampler are seeded with the number of its slot. A
//! program that starts one short-lived domain after the other gets the same slot every time, and so
//! the same numbers: 2,000 domains of 8,000 words each gave not a single sample at a rate of
//! 1e-4, where 1,600 were expected.
//!
//! So each new domain gets a sampler with its own seed. The runtime creates one on request,
//! and takes the seed from the slot number, which we change temporarily. The new domain does this
//! itself, before it runs OCaml code.
//!
//! The offsets in the runtime's data come from its sources. They are verified before anything is
//! changed; if they are wrong, domains are left alone, and the user gets a warning.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use heapline_recorder::tail::Note;

use crate::callbacks;
use crate::runtime::{UNIT, Value, symbol};

/// Words of the runtime's `caml_domain_state`, more than any version has.
const STATE_WORDS: usize = 256;

/// Offsets in `caml_domain_state`, in words: OCaml 5.3.
const ACTION_PENDING: usize = 7;
const EXTERNAL_INTERRUPT: usize = 32;
const ID: usize = 36;
const UNIQUE_ID: usize = 37;
const MEMPROF: usize = 58;

/// Seeds are greater than the number of any slot.
const FIRST_SEED: i32 = 1 << 30;

/// Domains of which some share a slot, or might as well.
const MANY: u32 = 16;

type Hook = extern "C" fn();

/// A domain's `caml_domain_state`.
type State = *mut usize;

/// The functions of the runtime that are needed.
struct Functions {
    domain_id: extern "C" fn(Value) -> Value,
    domain_index: extern "C" fn(Value) -> Value,
    new_domain: extern "C" fn(State, State),
    delete_domain: extern "C" fn(State),
    set_trigger: extern "C" fn(State),
    reset_young_limit: extern "C" fn(State),
}

static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
/// The hook that was there before ours, as an address.
static PREVIOUS: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static STARTED: AtomicU32 = AtomicU32::new(0);
static FAILED: AtomicBool = AtomicBool::new(false);

/// Returns true if the program has started domains.
pub(crate) fn has_started_any() -> bool {
    STARTED.load(Ordering::Relaxed) > 0
}

/// Asks the runtime to tell of new domains.
///
/// # Safety
///
/// No domain is being started, and none is going to be before this returns.
pub(crate) unsafe fn watch() {
    FUNCTIONS.get_or_init(functions);
    let Some(hook) = symbol(c"caml_domain_initialize_hook") else {
        return;
    };
    let hook = std::ptr::with_exposed_provenance_mut::<*mut ()>(hook);
    // SAFETY: it is a variable of the runtime that holds a function's address, and nobody is
    // looking at it.
    unsafe {
        if *hook == (started as Hook) as *mut () {
            return;
        }
        PREVIOUS.store(*hook, Ordering::Release);
        *hook = (started as Hook) as *mut ();
    }
}

fn functions() -> Option<Functions> {
    /// # Safety
    ///
    /// `F` is a function of the symbol's type.
    unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let address = symbol(name)?;
        // SAFETY: the caller promises the type, and it has the size of an address.
        Some(unsafe { std::mem::transmute_copy(&address) })
    }
    // SAFETY: these are their types in OCaml 5.3 and later.
    unsafe {
        Some(Functions {
            domain_id: function(c"caml_ml_domain_id")?,
            domain_index: function(c"caml_ml_domain_index")?,
            new_domain: function(c"caml_memprof_new_domain")?,
            delete_domain: function(c"caml_memprof_delete_domain")?,
            set_trigger: function(c"caml_memprof_set_trigger")?,
            reset_young_limit: function(c"caml_reset_young_limit")?,
        })
    }
}

/// The runtime calls this in a new domain.
extern "C" fn started() {
    let contained = std::panic::catch_unwind(|| {
        let Some(session) = callbacks::session() else {
            return;
        };
        session.recorder.domain_started();
        let functions = FUNCTIONS.get().and_then(Option::as_ref);
        // SAFETY: the domain is ours, and runs no OCaml code yet.
        let reseeded = functions.is_some_and(|functions| unsafe { reseed(functions) });
        if !reseeded {
            FAILED.store(true, Ordering::Relaxed);
        }
        let count = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= MANY && FAILED.load(Ordering::Relaxed) {
            session.recorder.note(Note::AlikeDomains);
        }
    });
    if contained.is_err() {
        callbacks::end();
    }
    let previous = PREVIOUS.load(Ordering::Acquire);
    if !previous.is_null() {
        // SAFETY: it was there as a function to call.
        let previous: Hook = unsafe { std::mem::transmute(previous) };
        previous();
    }
}

/// Returns true if the state of domains has the layout of OCaml 5.3.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn has_known_state() -> bool {
    let functions = FUNCTIONS.get_or_init(functions).as_ref();
    // SAFETY: as the caller's.
    functions.is_some_and(|functions| unsafe { known_state(functions) }.is_some())
}

/// The state of this domain and its sampler, as addresses, if the state has the layout of OCaml 5.3.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn sampler() -> Option<(usize, usize)> {
    let functions = FUNCTIONS.get_or_init(functions).as_ref()?;
    // SAFETY: as the caller's.
    let state = unsafe { known_state(functions) }?;
    let state = state.expose_provenance();
    // SAFETY: it has that layout.
    unsafe { sampler_of(state) }.map(|memprof| (state, memprof))
}

/// The sampler of a domain, as an address.
///
/// # Safety
///
/// It is the state of a domain, with the layout of OCaml 5.3.
pub(crate) unsafe fn sampler_of(state: usize) -> Option<usize> {
    let state = std::ptr::with_exposed_provenance::<usize>(state);
    // SAFETY: the state has more words than this.
    let memprof = unsafe { *state.add(MEMPROF) };
    (memprof != 0 && memprof.is_multiple_of(8)).then_some(memprof)
}

/// Computes the next sample of a domain again, after its sampler was stopped.
///
/// # Safety
///
/// It is the state of a domain, which stands still, with the layout of OCaml 5.3.
pub(crate) unsafe fn renew_trigger(state: usize) {
    if let Some(functions) = FUNCTIONS.get_or_init(functions) {
        let state = std::ptr::with_exposed_provenance_mut(state);
        (functions.set_trigger)(state);
        (functions.reset_young_limit)(state);
    }
}

/// Makes this domain process external interrupts when it returns from C code.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn interrupt_oneself() {
    // SAFETY: as the caller's.
    unsafe {
        set(EXTERNAL_INTERRUPT, 1);
        set(ACTION_PENDING, 1);
    }
}

/// External interrupts were processed.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn end_interrupt() {
    // SAFETY: as the caller's.
    unsafe { set(EXTERNAL_INTERRUPT, 0) };
}

/// Sets a word of the state of this domain, if it has the layout of OCaml 5.3.
///
/// # Safety
///
/// This thread runs a domain.
unsafe fn set(index: usize, value: usize) {
    // SAFETY: as the caller's; these words may be written by any thread.
    unsafe {
        let functions = FUNCTIONS.get_or_init(functions).as_ref();
        if let Some(state) = functions.and_then(|functions| known_state(functions)) {
            AtomicUsize::from_ptr(state.add(index)).store(value, Ordering::Release);
        }
    }
}

/// The state of this domain, if it has the layout of OCaml 5.3.
///
/// # Safety
///
/// This thread runs a domain.
unsafe fn known_state(functions: &Functions) -> Option<State> {
    // A symbol of a thread's own: what is found is that of this one.
    let variable = symbol(c"caml_state")?;
    // SAFETY: it is a variable that holds the address of the domain's state.
    let state: State = unsafe { *std::ptr::with_exposed_provenance::<State>(variable) };
    if state.is_null() {
        return None;
    }
    // SAFETY: the state has more words than this, each an aligned slot that nobody else writes to.
    let (slot, unique_id) = unsafe {
        (
            *state.add(ID).cast::<i32>(),
            *state.add(UNIQUE_ID).cast::<i32>(),
        )
    };
    let number = |value: Value| i32::try_from(value >> 1).ok();
    let is_known = number((functions.domain_index)(UNIT)) == Some(slot)
        && number((functions.domain_id)(UNIT)) == Some(unique_id);
    is_known.then_some(state)
}

/// Gives this domain a sampler with a seed of its own; false if that cannot be done.
///
/// # Safety
///
/// This thread is a domain that has run no OCaml code yet, and nobody has a pointer to its sampler.
unsafe fn reseed(functions: &Functions) -> bool {
    // SAFETY: as the caller's.
    let Some(state) = (unsafe { known_state(functions) }) else {
        return false;
    };
    // SAFETY: the state has more words than this, each an aligned slot that nobody else writes to.
    let (id, unique_id, memprof) = unsafe {
        (
            state.add(ID).cast::<i32>(),
            *state.add(UNIQUE_ID).cast::<i32>(),
            state.add(MEMPROF),
        )
    };
    // SAFETY: as above.
    let slot = unsafe { *id };
    // SAFETY: as above.
    let old = unsafe { *memprof };
    if old == 0 || !old.is_multiple_of(8) {
        return false;
    }
    // SAFETY: all else is where it is in 5.3, so this is the sampler, which begins with a
    // pointer back.
    if unsafe { *std::ptr::with_exposed_provenance::<State>(old) } != state {
        return false;
    }
    let Some(seed) = FIRST_SEED.checked_add(unique_id) else {
        return false;
    };
    // What a new domain inherits comes from its parent: a stand-in that has the old sampler.
    let mut parent = [0; STATE_WORDS];
    parent[MEMPROF] = old;
    // SAFETY: as above; the runtime is not looking at the slot's number while this domain is here.
    unsafe { *id = seed };
    (functions.new_domain)(parent.as_mut_ptr(), state);
    // SAFETY: as above.
    unsafe { *id = slot };
    // SAFETY: as above.
    if unsafe { *memprof } == 0 {
        // There was no memory for it.
        // SAFETY: as above.
        unsafe { *memprof = old };
        return false;
    }
    (functions.delete_domain)(parent.as_mut_ptr());
    (functions.set_trigger)(state);
    (functions.reset_young_limit)(state);
    true
}
