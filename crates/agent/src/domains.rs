//! Gives each domain of OCaml 5 its own random seed, in each recording another one.
//!
//! In OCaml 5.3 to 5.5 the random numbers of a domain's sampler are seeded with the number of its slot. A
//! program that starts one short-lived domain after the other gets the same slot every time, and so
//! the same numbers: 2,000 domains of 8,000 words each gave not a single sample at a rate of
//! 1e-4, where 1,600 were expected.
//!
//! So each new domain gets a sampler with its own seed. The runtime creates one on request,
//! and takes the seed from the slot number, which we change temporarily. The new domain does this
//! itself, before it runs OCaml code. Domains that run already have threads that know their sampler: its random numbers
//! are replaced by those of another one before it is started.
//!
//! If the [layout] of the runtime's data is not known, domains are left alone, and the user gets a warning.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use heapline_recorder::seed;
use heapline_recorder::tail::Note;

use crate::callbacks;
use crate::collector;
use crate::layout::{self, Layout, STATE_WORDS};
use crate::runtime::{UNIT, Value, symbol};

/// Seeds are greater than the number of any slot.
const FIRST_SEED: i32 = 1 << 30;

/// Domains of which some share a slot, or might as well.
const MANY: u32 = 16;

/// The hook for new domains: up to 5.4, and from 5.5 on, where it returns unit or an exception.
const HOOK: &CStr = c"caml_domain_initialize_hook";
const HOOK_EXN: &CStr = c"caml_domain_initialize_hook_exn";
type Hook = extern "C" fn();
type HookExn = extern "C" fn() -> Value;

/// A domain's `caml_domain_state`.
type State = *mut usize;

/// The functions of the runtime that are needed.
struct Functions {
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
    let hooks = [
        (HOOK, (started as Hook) as *mut ()),
        (HOOK_EXN, (started_exn as HookExn) as *mut ()),
    ];
    for (name, ours) in hooks {
        let Some(hook) = symbol(name) else {
            continue;
        };
        let hook = std::ptr::with_exposed_provenance_mut::<*mut ()>(hook);
        // SAFETY: it is a variable of the runtime that holds the address of a function of our function's type, and
        // nobody is looking at it.
        unsafe {
            if *hook != ours {
                PREVIOUS.store(*hook, Ordering::Release);
                *hook = ours;
            }
        }
        return;
    }
    // Domains are not told apart, and cannot be counted.
    FAILED.store(true, Ordering::Relaxed);
    if let Some(session) = callbacks::session() {
        session.recorder.note(Note::AlikeDomains);
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
    // SAFETY: these are their types in OCaml 5.3 to 5.5.
    unsafe {
        Some(Functions {
            new_domain: function(c"caml_memprof_new_domain")?,
            delete_domain: function(c"caml_memprof_delete_domain")?,
            set_trigger: function(c"caml_memprof_set_trigger")?,
            reset_young_limit: function(c"caml_reset_young_limit")?,
        })
    }
}

/// The runtime calls this in a new domain.
extern "C" fn started() {
    note_started();
    let previous = PREVIOUS.load(Ordering::Acquire);
    if !previous.is_null() {
        // SAFETY: it was there as a function to call.
        let previous: Hook = unsafe { std::mem::transmute(previous) };
        previous();
    }
}

/// The same for OCaml 5.5.
extern "C" fn started_exn() -> Value {
    note_started();
    let previous = PREVIOUS.load(Ordering::Acquire);
    if previous.is_null() {
        return UNIT;
    }
    // SAFETY: it was there as a function to call.
    let previous: HookExn = unsafe { std::mem::transmute(previous) };
    previous()
}

fn note_started() {
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
        collector::read_counters();
        let count = STARTED.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= MANY && FAILED.load(Ordering::Relaxed) {
            session.recorder.note(Note::AlikeDomains);
        }
    });
    if contained.is_err() {
        callbacks::end();
    }
}

/// Returns true if the state of this domain has a known layout.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn has_known_state() -> bool {
    // SAFETY: as the caller's.
    unsafe { known_state() }.is_some()
}

/// The state of this domain and its sampler, as addresses, if its layout is known.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn sampler() -> Option<(usize, usize)> {
    // SAFETY: as the caller's.
    let (_, state) = unsafe { known_state() }?;
    let state = state.expose_provenance();
    // SAFETY: it has that layout.
    unsafe { sampler_of(state) }.map(|memprof| (state, memprof))
}

/// The sampler of a domain, as an address.
///
/// # Safety
///
/// It is the state of a domain.
pub(crate) unsafe fn sampler_of(state: usize) -> Option<usize> {
    let memprof = layout::known()?.offsets().memprof;
    let state = std::ptr::with_exposed_provenance::<usize>(state);
    // SAFETY: all states of a runtime have the same layout.
    let memprof = unsafe { *state.add(memprof) };
    (memprof != 0 && memprof.is_multiple_of(8)).then_some(memprof)
}

/// Computes the next sample of a domain again, after its sampler was stopped.
///
/// # Safety
///
/// It is the state of a domain, which stands still.
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
    if let Some((layout, state)) = unsafe { known_state() } {
        let offsets = layout.offsets();
        // SAFETY: the state has that layout; these words may be written by any thread.
        unsafe {
            set(state, offsets.external_interrupt, 1);
            set(state, offsets.action_pending, 1);
        }
    }
}

/// External interrupts were processed.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn end_interrupt() {
    // SAFETY: as the caller's.
    if let Some((layout, state)) = unsafe { known_state() } {
        // SAFETY: as above.
        unsafe { set(state, layout.offsets().external_interrupt, 0) };
    }
}

/// Sets a word of the state of a domain.
///
/// # Safety
///
/// The state has that word, and any thread may write to it.
unsafe fn set(state: State, index: usize, value: usize) {
    // SAFETY: as the caller's.
    unsafe { AtomicUsize::from_ptr(state.add(index)).store(value, Ordering::Release) };
}

/// The state of this domain, if its layout is known.
///
/// # Safety
///
/// This thread runs a domain.
unsafe fn known_state() -> Option<(&'static Layout, State)> {
    let layout = layout::known()?;
    // SAFETY: as the caller's.
    let state = unsafe { layout.state() }?;
    Some((layout, state))
}

/// The number that takes the place of a slot's.
fn seed_of_domain(seed: u64, unique_id: usize) -> i32 {
    let number = seed::of_part(seed, unique_id as u64) % u64::from(FIRST_SEED.unsigned_abs());
    // The number is less than 2^30.
    FIRST_SEED + i32::try_from(number).unwrap_or_default()
}

/// Gives the sampler of this domain, which is not sampling, the random numbers of a recording. If the layout is not known,
/// they stay as they are.
///
/// # Safety
///
/// This thread runs a domain, and is at a safe point.
pub(crate) unsafe fn seed(seed: u64) {
    // SAFETY: as the caller's.
    let (Some((layout, _)), Some((_, memprof))) = (unsafe { (known_state(), sampler()) }) else {
        return;
    };
    // SAFETY: as the caller's.
    let seed = seed_of_domain(seed, unsafe { layout.unique_id() });
    let Some(numbers) = layout.random_numbers(seed) else {
        return;
    };
    let place = memprof + 8 * layout::sampler::RANDOM.start;
    let place = std::ptr::with_exposed_provenance_mut::<layout::sampler::RandomNumbers>(place);
    // SAFETY: the sampler of a domain has them there, and only this domain looks at them, when it samples.
    unsafe { *place = numbers };
}

/// Gives this domain a sampler with a seed of its own; false if that cannot be done.
///
/// # Safety
///
/// This thread is a domain that has run no OCaml code yet, and nobody has a pointer to its sampler.
unsafe fn reseed(functions: &Functions) -> bool {
    // SAFETY: as the caller's.
    let Some((layout, state)) = (unsafe { known_state() }) else {
        return false;
    };
    let offsets = layout.offsets();
    // SAFETY: the state has that layout; each word is an aligned slot that nobody else writes to.
    let (id, memprof) = unsafe {
        (
            state.add(offsets.id).cast::<i32>(),
            state.add(offsets.memprof),
        )
    };
    // SAFETY: as above.
    let (slot, old, unique_id) = unsafe { (*id, *memprof, layout.unique_id()) };
    let seed = seed_of_domain(callbacks::seed(), unique_id);
    // What a new domain inherits comes from its parent: a stand-in that has the old sampler.
    let mut parent = [0; STATE_WORDS];
    parent[offsets.memprof] = old;
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
