//! Programs that use `Gc.Memprof` themselves.
//!
//! A runtime has one sampler, or one per domain. Up to OCaml 5.4 it raises an exception if that is started twice, and
//! from 5.5 on the second one replaces the first. So while ours runs, the functions that the program calls for its
//! own are replaced: see [`Policy`].

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heapline_recorder::contained;
use heapline_recorder::tail::Note;

use crate::arch::{self, Registers};
use crate::attach;
use crate::callbacks;
use crate::collector;
use crate::patch::Patch;
use crate::profile::{self, Profile};
use crate::runtime::{self, Kind, Runtime, UNIT, Value, symbol};
use crate::safe_point;

static START: Patch = Patch::new();
static STOP: Patch = Patch::new();
static DISCARD: Patch = Patch::new();
static IS_SAMPLING: Patch = Patch::new();

/// The runtime whose functions are replaced.
static RUNTIME: OnceLock<&'static Runtime> = OnceLock::new();

/// True for [`Policy::Pretend`].
static PRETENDS: AtomicBool = AtomicBool::new(false);

/// True if the program believes to have a sampler.
static BELIEVES: AtomicBool = AtomicBool::new(false);

/// The function `caml_failwith` of the runtime.
pub(crate) static FAILWITH: AtomicUsize = AtomicUsize::new(0);

/// The address of the message with which the runtime refuses to stop a sampler that was not started.
pub(crate) static NOT_STARTED: AtomicUsize = AtomicUsize::new(0);

/// The time for which other domains are waited for. They come at their next safe point.
const PATIENCE: Duration = Duration::from_secs(1);

/// Behaviour when the program starts a sampler of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// It gets it, and the recording ends.
    GiveWay,
    /// It believes to have one, and the recording goes on.
    Pretend,
}

/// Replaces the functions with which programs use the sampler. Ours must be running.
///
/// # Safety
///
/// No other thread runs OCaml code.
pub(crate) unsafe fn guard(runtime: &'static Runtime, policy: Policy) {
    let pretends = policy == Policy::Pretend;
    let _ = RUNTIME.set(runtime);
    PRETENDS.store(pretends, Ordering::Release);
    let address = |function: *const ()| function.expose_provenance();
    let failwith = symbol(c"caml_failwith");
    FAILWITH.store(failwith.unwrap_or_default(), Ordering::Release);
    let not_started = match runtime.kind {
        Kind::Single => c"Gc.Memprof.stop: not started.",
        Kind::Domains { .. } => c"Gc.Memprof.stop: no profile running.",
    };
    NOT_STARTED.store(not_started.as_ptr().expose_provenance(), Ordering::Release);
    // SAFETY: they are functions of the runtime, longer than a jump, and nobody is in them.
    unsafe {
        let start = address(arch::before_own_start as *const ());
        let _ = START.set(runtime.memprof_start, start);
        if pretends || failwith.is_some() {
            let stop = address(arch::before_own_stop as *const ());
            let _ = STOP.set(runtime.memprof_stop, stop);
        }
        if let Some(discard) = runtime.memprof_discard().filter(|_| pretends) {
            let _ = DISCARD.set(discard, address(pretend as *const ()));
        }
        // 5.5
        if let Some(is_sampling) = symbol(c"caml_memprof_is_sampling") {
            let _ = IS_SAMPLING.set(is_sampling, address(own_is_sampling as *const ()));
        }
    }
}

/// Undoes [`guard`].
///
/// # Safety
///
/// No other thread runs OCaml code.
pub(crate) unsafe fn restore() {
    for patch in [&START, &STOP, &DISCARD, &IS_SAMPLING] {
        // SAFETY: as the caller's.
        unsafe { patch.restore() };
    }
}

/// Takes the place of functions of the sampler that return nothing.
extern "C" fn pretend(_: Value, _: Value, _: Value) -> Value {
    UNIT
}

/// Takes the place of `caml_memprof_is_sampling`: ours is none of the program's.
extern "C" fn own_is_sampling(_: Value) -> Value {
    let is_own = contained(false, || {
        // SAFETY: OCaml code has called us.
        let profile = unsafe { profile::of_domain() };
        BELIEVES.load(Ordering::Acquire) || profile == Profile::Foreign
    });
    usize::from(is_own) << 1 | 1
}

/// Comes before the program's `caml_memprof_start`. Returns where to go on.
pub(crate) unsafe extern "C" fn before_own_start(registers: *mut Registers) -> usize {
    let Some(runtime) = RUNTIME.get() else {
        return 0;
    };
    let session = callbacks::session();
    if let Some(session) = session.filter(|_| PRETENDS.load(Ordering::Acquire)) {
        BELIEVES.store(true, Ordering::Release);
        contained((), || session.recorder.note(Note::OwnSampler));
        return (pretend as *const ()).expose_provenance();
    }
    // SAFETY: OCaml code has called us, with values in these registers.
    contained((), || unsafe {
        let roots = Roots::register(registers);
        give_way(runtime);
        roots.remove();
    });
    // SAFETY: if other domains could not be stopped, that one of them is here at the same time is unlikely.
    unsafe { restore() };
    runtime.memprof_start
}

/// Comes before the program's `caml_memprof_stop`. Returns where to go on.
pub(crate) extern "C" fn before_own_stop(_: *mut Registers) -> usize {
    let Some(runtime) = RUNTIME.get() else {
        return 0;
    };
    if PRETENDS.load(Ordering::Acquire) {
        BELIEVES.store(false, Ordering::Release);
        return (pretend as *const ()).expose_provenance();
    }
    // SAFETY: OCaml code has called us.
    let is_ours = contained(false, || unsafe { is_ours(runtime) });
    if is_ours {
        // By itself, the program would have none to stop.
        return (arch::raise_not_started as *const ()).expose_provenance();
    }
    // It is the program's own, in a domain that is not recorded.
    // SAFETY: as above.
    let restore_stop = || unsafe {
        safe_point::alone(runtime, |_| {
            STOP.restore();
        })
    };
    let end = Instant::now() + PATIENCE;
    contained((), || {
        while !attach::unguard_with(restore_stop) && Instant::now() < end {
            // SAFETY: as above.
            unsafe { safe_point::meet(runtime) };
        }
    });
    // SAFETY: if other domains could not be stopped, that one of them is here at the same time is unlikely.
    unsafe { STOP.restore() };
    runtime.memprof_stop
}

/// Returns true if the sampler of this domain runs for us.
///
/// # Safety
///
/// This thread may run OCaml code.
unsafe fn is_ours(runtime: &Runtime) -> bool {
    match runtime.kind {
        Kind::Single => runtime::is_single_sampling(),
        // SAFETY: as the caller's.
        Kind::Domains { .. } => match unsafe { profile::of_domain() } {
            Profile::Ours { is_sampling, .. } => is_sampling,
            Profile::Unknown => callbacks::session().is_some(),
            _ => false,
        },
    }
}

/// Stops our samplers in all domains, restores the functions, and ends the recording.
///
/// # Safety
///
/// This thread may run OCaml code, and does not.
unsafe fn give_way(runtime: &'static Runtime) {
    let session = callbacks::session();
    if let Some(session) = session {
        collector::read_counters();
        collector::session_ends(session);
        session.recorder.give_way();
    }
    let end = Instant::now() + PATIENCE;
    // SAFETY: as the caller's.
    while !attach::end_with(|| unsafe { stop_everywhere(runtime) }) && Instant::now() < end {
        // Who has the lock may be waiting for this domain.
        // SAFETY: as the caller's.
        unsafe { safe_point::meet(runtime) };
    }
    callbacks::end();
    // SAFETY: as the caller's. While there is a session, its sampler runs.
    unsafe {
        let is_unknown = attach::has_domains(runtime) && profile::of_domain() == Profile::Unknown;
        if is_unknown && session.is_some() {
            restore();
            runtime.stop_sampler();
        }
    }
}

/// Stops our samplers in all domains, and restores the functions. Returns false if other domains could not
/// be stopped for that.
///
/// # Safety
///
/// This thread may run OCaml code, and does not.
unsafe fn stop_everywhere(runtime: &Runtime) -> bool {
    let stop = |domains: &[usize]| {
        // SAFETY: no other thread runs OCaml code, and these are the states of all domains.
        unsafe {
            restore();
            if runtime::is_single_sampling() {
                runtime.stop_sampler();
            }
            for &state in domains {
                profile::stop_in(state);
            }
        }
    };
    // SAFETY: as the caller's.
    unsafe {
        let is_unknown = attach::has_domains(runtime) && profile::of_domain() == Profile::Unknown;
        is_unknown || safe_point::alone(runtime, stop)
    }
}

/// The arguments of a function that was called by OCaml code, while collections may move them.
struct Roots {
    arguments: [*mut Value; 3],
    remove: Option<Root>,
}

/// A function that registers or removes a root.
type Root = extern "C" fn(*mut Value);

impl Roots {
    /// # Safety
    ///
    /// The registers for three arguments hold OCaml values, and stay where they are.
    unsafe fn register(registers: *mut Registers) -> Self {
        let function = |name| {
            // SAFETY: that is the type of both.
            symbol(name).map(|address| unsafe { std::mem::transmute::<usize, Root>(address) })
        };
        let register = function(c"caml_register_generational_global_root");
        let remove = function(c"caml_remove_generational_global_root");
        // SAFETY: as the caller's.
        let arguments = unsafe { arch::arguments(registers) };
        if let (Some(register), Some(_)) = (register, remove) {
            for argument in arguments {
                register(argument);
            }
        }
        Self { arguments, remove }
    }

    fn remove(self) {
        if let Some(remove) = self.remove {
            self.arguments.iter().for_each(|&argument| remove(argument));
        }
    }
}
