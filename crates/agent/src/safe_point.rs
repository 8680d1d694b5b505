//! The moments at which the sampler of a running program can be started and stopped.
//!
//! OCaml 4: the end of a minor collection, for which the runtime has a hook. No other thread runs OCaml
//! code then, and the minor heap is empty.
//!
//! OCaml 5: pending actions of a domain, which are done where OCaml code may run. The last of them is the
//! hook for external interrupts. A domain asks itself for it at the end of its next minor collection, in
//! which all domains take part, also those that are blocked.
//!
//! Both begin soon after [`ask_for`]: it requests a minor collection. If all threads are blocked, the
//! first that leaves its system call does so.
//!
//! The hooks stay, and do little: a hook that another library has set after us may call ours.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use heapline_recorder::contained;
use heapline_recorder::tail::Note;

use crate::attach;
use crate::callbacks;
use crate::domains;
use crate::hook::{Chain, Hook};
use crate::layout;
use crate::profile::{self, Profile};
use crate::runtime::{Kind, Runtime, symbol};
use crate::snapshot;

static MINOR_GC_END: Chain = Chain::new();
static LEAVE_BLOCKING_SECTION: Chain = Chain::new();
static EXTERNAL_INTERRUPT: Chain = Chain::new();

/// True while a safe point is waited for.
static EXPECTED: AtomicBool = AtomicBool::new(false);

/// Times that other domains were stopped.
static ALONE: AtomicUsize = AtomicUsize::new(0);

/// A safe point is wanted when a domain comes by.
pub(crate) fn expect() {
    EXPECTED.store(true, Ordering::Release);
}

/// Returns true while a safe point is waited for.
pub(crate) fn is_expected() -> bool {
    EXPECTED.load(Ordering::Acquire) || snapshot::is_wanted()
}

/// A safe point was reached, and what was wanted there is done.
pub(crate) fn is_reached() {
    EXPECTED.store(false, Ordering::Release);
}

/// The domain of the main thread, for threads that run none; null if it is not known.
static FIRST_DOMAIN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The hook for the end of system calls before `main`; null if it is not known.
static DEFAULT_HOOK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

const LEAVE_BLOCKING: &CStr = c"caml_leave_blocking_section_hook";

/// Takes note of the domain of this thread, the main thread, which is about to run OCaml code.
pub(crate) fn note_first_domain() {
    if let Some(variable) = symbol(c"caml_state") {
        // SAFETY: it is a variable of this thread that holds an address.
        let state = unsafe { *std::ptr::with_exposed_provenance::<*mut c_void>(variable) };
        FIRST_DOMAIN.store(state, Ordering::Release);
    }
}

/// Takes note of the hooks that the runtime begins with. Only before `main`.
pub(crate) fn note_default_hooks() {
    if let Some(variable) = symbol(LEAVE_BLOCKING) {
        // SAFETY: it is a variable that holds an address, and nobody writes to it yet.
        let hook = unsafe { *std::ptr::with_exposed_provenance::<*mut ()>(variable) };
        DEFAULT_HOOK.store(hook, Ordering::Release);
    }
}

/// Returns true if the program is going to initialise OCaml's `Thread` module, which overwrites hooks.
fn is_before_threads() -> bool {
    let default = DEFAULT_HOOK.load(Ordering::Acquire);
    if default.is_null() || symbol(c"caml_thread_initialize").is_none() {
        return false;
    }
    symbol(LEAVE_BLOCKING).is_some_and(|variable| {
        // SAFETY: it is a variable that holds an address, which the runtime writes whole.
        let variable =
            unsafe { AtomicPtr::from_ptr(std::ptr::with_exposed_provenance_mut(variable)) };
        variable.load(Ordering::Acquire) == default
    })
}

/// Asks for a safe point soon. Any thread may do so, at any time, and more than once: a request may get
/// lost if the program is just being started, or handles another one.
pub(crate) fn ask_for(runtime: &Runtime) {
    static HOOKED: Once = Once::new();
    expect();
    if !HOOKED.is_completed() && is_before_threads() {
        return;
    }
    HOOKED.call_once(|| {
        if attach::has_domains(runtime) {
            EXTERNAL_INTERRUPT.set(c"caml_domain_external_interrupt_hook", external_interrupt);
        }
        MINOR_GC_END.set(c"caml_minor_gc_end_hook", minor_gc_ended);
        LEAVE_BLOCKING_SECTION.set(LEAVE_BLOCKING, left_blocking_section);
    });
    request(runtime);
}

/// Requests a minor collection, if this thread may.
fn request(runtime: &Runtime) {
    let name = match runtime.kind {
        Kind::Single => c"Caml_state",
        Kind::Domains { .. } => c"caml_state",
    };
    let (Some(variable), Some(request)) = (symbol(name), symbol(c"caml_request_minor_gc")) else {
        return;
    };
    // SAFETY: that is its type. It only sets flags, and is meant for signal handlers too.
    let request: Hook = unsafe { std::mem::transmute(request) };
    // In OCaml 5 it is a variable of each thread, and null in those that do not run OCaml code now. In
    // OCaml 4 it is null before the runtime is up.
    let variable = std::ptr::with_exposed_provenance_mut::<*mut c_void>(variable);
    // SAFETY: it is a variable that holds an address.
    let is_set = unsafe { !(*variable).is_null() };
    if is_set {
        request();
        return;
    }
    let first = FIRST_DOMAIN.load(Ordering::Acquire);
    if !first.is_null() && attach::has_domains(runtime) {
        // SAFETY: the variable is this thread's own, and the first domain is there until the process ends.
        // The flags of a domain may be set by other threads, as OCaml's own thread for time slices does.
        unsafe {
            *variable = first;
            request();
            *variable = std::ptr::null_mut();
        }
    }
}

extern "C" fn left_blocking_section() {
    LEAVE_BLOCKING_SECTION.call_previous();
    if is_expected() {
        contained((), || match attach::runtime() {
            Some(runtime) if attach::has_domains(runtime) => {
                // SAFETY: this thread runs its domain again.
                unsafe { domains::interrupt_oneself() };
            }
            Some(runtime) => request(runtime),
            None => {}
        });
    }
}

extern "C" fn minor_gc_ended() {
    MINOR_GC_END.call_previous();
    contained((), || {
        let Some(runtime) = attach::runtime() else {
            return;
        };
        match runtime.kind {
            Kind::Single => {
                // SAFETY: the runtime calls this with its lock, after it has emptied the heap.
                unsafe {
                    snapshot::at_safe_point(runtime);
                    if EXPECTED.load(Ordering::Acquire) && !profile::is_suspended() {
                        attach::at_safe_point_of_single(runtime);
                    }
                }
            }
            Kind::Domains { .. } => {
                // SAFETY: the runtime calls this in a domain.
                unsafe {
                    let profile = profile::of_domain();
                    if profile == Profile::Unknown {
                        refuse();
                        return;
                    }
                    if let (Profile::Foreign, Some(session)) = (profile, callbacks::session()) {
                        session.recorder.note(Note::DomainNotRecorded);
                    }
                    if is_expected() || profile.is_due() {
                        domains::interrupt_oneself();
                    }
                }
            }
        }
    });
}

/// Gives up what is wanted: the state of a domain is not as it should be.
#[cold]
fn refuse() {
    if let Some(refusal) = layout::unverified() {
        let message = refusal.to_string();
        attach::refuse(&message);
        snapshot::refuse(&message);
    }
}

extern "C" fn external_interrupt() {
    contained((), || {
        let Some(runtime) = attach::runtime() else {
            return;
        };
        // SAFETY: the runtime calls this in a domain, where OCaml code may run.
        unsafe {
            snapshot::at_safe_point(runtime);
            let mut profile = profile::of_domain();
            if !profile.is_due() && !EXPECTED.load(Ordering::Acquire) {
                return;
            }
            if let Profile::Suspended = profile {
                // In a callback: at the next collection.
                return;
            }
            profile.stop_if_old(runtime);
            match profile {
                Profile::Unknown => refuse(),
                Profile::Foreign => {
                    attach::refuse(attach::OWN_SAMPLER);
                    attach::at_safe_point_of_domain(runtime, true);
                }
                profile => attach::at_safe_point_of_domain(runtime, profile.is_current()),
            }
        }
    });
    EXTERNAL_INTERRUPT.call_previous();
    if attach::runtime().is_some() {
        // The runtime's own hook does not reset the request, since it never makes one.
        // SAFETY: as above.
        unsafe { domains::end_interrupt() };
    }
}

/// The type of functions that run while all domains are stopped.
type Handler = extern "C" fn(*mut c_void, *mut c_void, c_int, *mut *mut c_void);
type RunOnAllDomains = extern "C" fn(Handler, *mut c_void, *mut c_void) -> c_int;

/// The domain that has stopped the others, and what it does then.
static LEADER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static WORK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// True while a domain is the leader, or is going to be.
static HAS_LEADER: AtomicBool = AtomicBool::new(false);

/// Takes part in what another domain does while all are stopped, if that waits for this one.
///
/// # Safety
///
/// This thread may run OCaml code, and does not.
pub(crate) unsafe fn meet(runtime: &Runtime) {
    extern "C" fn nothing(_: *mut c_void, _: *mut c_void, _: c_int, _: *mut *mut c_void) {}
    if attach::has_domains(runtime)
        && let Some(run) = symbol(c"caml_try_run_on_all_domains")
    {
        // SAFETY: that is its type.
        let run: RunOnAllDomains = unsafe { std::mem::transmute(run) };
        run(nothing, std::ptr::null_mut(), std::ptr::null_mut());
    }
    std::thread::yield_now();
}

/// Calls a function while no other thread runs OCaml code or is in a callback of a sampler, with the
/// states of all domains, of which OCaml 4 has none. Returns false if that was not possible now.
///
/// # Safety
///
/// This thread may run OCaml code, and does not.
pub(crate) unsafe fn alone(runtime: &Runtime, f: impl FnOnce(&[usize])) -> bool {
    if !attach::has_domains(runtime) {
        f(&[]);
        return true;
    }
    // SAFETY: as the caller's.
    let state = unsafe { domains::sampler() };
    let (Some(run), Some((state, _))) = (symbol(c"caml_try_run_on_all_domains"), state) else {
        return false;
    };
    // SAFETY: that is its type.
    let run: RunOnAllDomains = unsafe { std::mem::transmute(run) };
    if HAS_LEADER.swap(true, Ordering::AcqRel) {
        return false;
    }
    let mut f = Some(f);
    let mut call = |domains: &[usize]| {
        if let Some(f) = f.take() {
            f(domains);
        }
    };
    let mut work: &mut dyn FnMut(&[usize]) = &mut call;
    WORK.store(std::ptr::from_mut(&mut work).cast(), Ordering::Release);
    LEADER.store(std::ptr::without_provenance_mut(state), Ordering::Release);
    let number = ALONE.load(Ordering::Acquire) + 1;
    let number = std::ptr::without_provenance_mut(number);
    let is_done = run(in_all_domains, number, std::ptr::null_mut()) != 0;
    HAS_LEADER.store(false, Ordering::Release);
    is_done
}

/// Runs in all domains at once. The runtime lets a domain go when it has returned, so all wait for the
/// leader.
extern "C" fn in_all_domains(
    state: *mut c_void,
    number: *mut c_void,
    count: c_int,
    domains: *mut *mut c_void,
) {
    if state.addr() == LEADER.load(Ordering::Acquire).addr() {
        let work = WORK
            .load(Ordering::Acquire)
            .cast::<&mut dyn FnMut(&[usize])>();
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the runtime passes as many addresses.
        let domains = unsafe { std::slice::from_raw_parts(domains.cast::<usize>(), count) };
        // SAFETY: the leader, which is this thread, has put it there and waits for this.
        contained((), || unsafe { (*work)(domains) });
        ALONE.store(number.addr(), Ordering::Release);
    }
    while ALONE.load(Ordering::Acquire) < number.addr() {
        std::thread::yield_now();
    }
}
