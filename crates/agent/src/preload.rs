//! Entry point: reads the settings and installs the hooks.

use std::ffi::{CStr, c_void};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::panic::catch_unwind;
use std::sync::{Once, OnceLock};

use heapline_recorder::Recorder;
use heapline_recorder::gaps::Unit;
use heapline_recorder::settings::{Memprof, RecordingSettings, StackMode, WaitSettings};
use heapline_recorder::tail::Note;

use crate::arch;
use crate::attach;
use crate::callbacks::{self, Session};
use crate::check;
use crate::collector;
use crate::domains;
use crate::dormant;
use crate::exit;
use crate::layout;
use crate::own_sampler::{self, Policy};
use crate::patch::Patch;
use crate::runtime::{Kind, Runtime, StartArguments, Unfit};
use crate::safe_point;
use crate::snapshot;
use crate::stacks;
use crate::tracker;

static SETTINGS: OnceLock<RecordingSettings> = OnceLock::new();
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

static START_PROGRAM: Patch = Patch::new();
static SPAWN: Patch = Patch::new();

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

/// Runs before `main`.
extern "C" fn constructor() {
    if is_attached() {
        return;
    }
    contained(|| {
        match WaitSettings::from_environment() {
            Ok(None) => {}
            Ok(Some(settings)) => return prepare_to_wait(settings),
            Err(message) => return say(&message),
        }
        match RecordingSettings::from_environment() {
            Ok(None) => {}
            Ok(Some(settings)) => prepare(settings),
            Err(message) => say(&message),
        }
    });
}

/// Returns true if the library was not preloaded, but loaded into a program that runs already, by
/// `heapline attach`: then the environment is none of ours.
fn is_attached() -> bool {
    own_path().to_bytes().starts_with(b"/proc/self/fd/")
}

/// Runs when the program exits, whichever thread does so.
extern "C" fn destructor() {
    contained(|| {
        if let Some(session) = callbacks::session() {
            exit::note();
            collector::session_ends(session);
            session.recorder.stop();
            if let Some(result) = check::result() {
                say(&result);
            }
        }
    });
}

/// Does something that must not harm the program.
fn contained(f: impl FnOnce() + std::panic::UnwindSafe) {
    if catch_unwind(f).is_err() {
        callbacks::end();
    }
}

/// Tells the user.
fn say(message: &str) {
    // SAFETY: it is not closed, since it is not dropped; if it is not open, writing fails.
    let mut stderr = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(2) });
    let _ = stderr.write_all(format!("heapline: {message}\n").as_bytes());
}

/// A message of a panic would be among the program's output.
pub(crate) fn silence_panics() {
    static SILENT: Once = Once::new();
    SILENT.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}

fn prepare(settings: RecordingSettings) {
    silence_panics();
    let found = Runtime::find();
    if let Err(Unfit::NoRuntime) = found {
        // Something on the way to the program, such as `env` or `timeout`.
        return;
    }
    // SAFETY: before `main` there is only this thread.
    unsafe { settings.hide(own_path()) };
    let runtime = match found {
        Ok(runtime) => runtime,
        Err(unfit) => return say(&format!("not recorded: {unfit}")),
    };
    let start_program = runtime.start_program;
    if settings.listen {
        safe_point::note_default_hooks();
        dormant::start(settings.follow.fork);
    }
    let _ = SETTINGS.set(settings);
    let _ = RUNTIME.set(runtime);
    if let Err(error) = hook_start(start_program) {
        say(&format!(
            "not recorded: the program's code cannot be patched ({error})"
        ));
    }
}

/// Has [`before_start`] called before OCaml code runs. Only before `main`.
fn hook_start(start_program: usize) -> io::Result<()> {
    let hook = (arch::before_start as *const ()).expose_provenance();
    // SAFETY: it is a function of the runtime, longer than a jump, and there is only this thread,
    // which is not in it.
    unsafe { START_PROGRAM.set(start_program, hook) }
}

/// Makes an OCaml program wait for `heapline attach`. Others are left alone, without a word: `heapline
/// attach` says why they cannot be recorded.
fn prepare_to_wait(settings: WaitSettings) {
    silence_panics();
    let Ok(runtime) = Runtime::find() else {
        return;
    };
    // SAFETY: before `main` there is only this thread.
    unsafe { settings.hide(own_path()) };
    safe_point::note_default_hooks();
    if attach::has_domains(&runtime) {
        // If it cannot be patched, recordings begin a little later.
        let _ = hook_start(runtime.start_program);
    }
    dormant::start(settings.follow.fork);
}

/// The name of this library's file.
fn own_path() -> &'static CStr {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = constructor as *const c_void;
    // SAFETY: looks for the library that an address is in.
    let found = unsafe { libc::dladdr(here, info.as_mut_ptr()) };
    // SAFETY: all zeros is a value of it too.
    let name = unsafe { info.assume_init() }.dli_fname;
    if found == 0 || name.is_null() {
        return c"";
    }
    // SAFETY: the dynamic linker keeps the name as long as the library.
    unsafe { CStr::from_ptr(name) }
}

/// Comes before `caml_start_program`: the runtime is up, and about to run OCaml. Returns where to
/// go on.
pub(crate) extern "C" fn before_start() -> usize {
    // SAFETY: this is the only thread that runs OCaml's code.
    let start_program = unsafe { START_PROGRAM.restore() };
    contained(|| {
        safe_point::note_first_domain();
        // A program that waits is hooked only if it has domains.
        if RUNTIME.get().is_none_or(attach::has_domains) {
            // Now, before the program sets hooks. Whoever needs it later is told if it is not known.
            // SAFETY: it is OCaml 5.3 or later, which is up, and has called us.
            let _ = unsafe { layout::get() };
        }
        if let (Some(settings), Some(runtime)) = (SETTINGS.get(), RUNTIME.get()) {
            start(settings, runtime);
        }
    });
    start_program.unwrap_or_default()
}

fn start(settings: &'static RecordingSettings, runtime: &'static Runtime) {
    // SAFETY: the runtime is up, and its own code has called us.
    let params = unsafe { runtime.parameters() };
    let seed = settings.draw_seed();
    let Some(recorder) = record(settings, params, Some(seed), 0) else {
        return;
    };
    collector::watch(runtime);
    callbacks::begin(Session { runtime, recorder });
    if settings.stacks == StackMode::Check {
        check::start();
    }
    let wants_own = settings.stacks != StackMode::Sampler;
    // SAFETY: no OCaml code runs yet.
    let finds_stacks = wants_own && unsafe { stacks::replace(runtime.kind) };
    let depth = stacks::limit(settings.stack_depth, finds_stacks);
    // SAFETY: this happens once.
    let arguments = unsafe { tracker::arguments(0, settings.rate, runtime.kind) };
    // SAFETY: as above.
    unsafe {
        runtime.start_sampler(&StartArguments {
            rate: arguments.rate,
            stack_size: depth,
            tracker: arguments.tracker,
            seed,
        });
    }
    watch_forks();
    // SAFETY: no OCaml code runs.
    unsafe {
        exit::watch();
        collector::forced::watch(runtime.kind);
        collector::recording_began();
    }
    if let Some(signal) = settings.snapshot_signal
        && !snapshot::signal::watch(signal, recorder)
    {
        say(&format!(
            "no heap snapshots by signal {signal}: the program was started with it ignored"
        ));
    }
    let policy = match settings.memprof {
        Memprof::Ours => Policy::Pretend,
        Memprof::Theirs => Policy::GiveWay,
    };
    // SAFETY: no OCaml code runs.
    unsafe { own_sampler::guard(runtime, policy) };
    if let Kind::Domains {
        spawn: Some(spawn), ..
    } = runtime.kind
    {
        let hook = (arch::before_spawn as *const ()).expose_provenance();
        // SAFETY: no OCaml code runs, so nobody starts a domain.
        let _ = unsafe { SPAWN.set(spawn, hook) };
    }
}

/// From now on, handles forks.
pub(crate) fn watch_forks() {
    static WATCHED: Once = Once::new();
    // SAFETY: the handlers are made for it.
    WATCHED.call_once(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
    });
}

/// Starts a trace of this process, or tells the user why not.
fn record(
    settings: &RecordingSettings,
    params: String,
    seed: Option<u64>,
    first_id: u64,
) -> Option<&'static Recorder> {
    match settings.start(Unit::Word, params, seed, first_id) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            let path = settings.output.path().display();
            say(&format!("not recorded: cannot write {path}: {error}"));
            None
        }
    }
}

/// Gives domains that the program starts from now on a seed of their own.
///
/// # Safety
///
/// No other thread runs OCaml code.
pub(crate) unsafe fn watch_domains(runtime: &Runtime) {
    if attach::has_domains(runtime) {
        // SAFETY: nobody starts a domain.
        unsafe { domains::watch() };
    }
}

/// Takes the heap snapshot of the end of the program, if it is wanted.
pub(crate) fn snapshot_at_exit() {
    if let Some(settings) = SETTINGS.get()
        && let Some(file) = &settings.exit_snapshot
        && callbacks::session().is_some()
    {
        // SAFETY: the runtime calls this in a thread that may run OCaml code, and does not.
        if let Err(error) = unsafe { snapshot::at_exit(file) } {
            say(&format!(
                "no heap snapshot of the end of the program: {error}"
            ));
        }
    }
}

/// Comes before the program's first `caml_domain_spawn`.
pub(crate) extern "C" fn before_spawn() -> usize {
    // SAFETY: there is only one domain yet, and its lock is held.
    let function = unsafe { SPAWN.restore() };
    // SAFETY: as above.
    contained(|| unsafe { domains::watch() });
    function.unwrap_or_default()
}

/// Runs before this process forks another.
extern "C" fn before_fork() {
    dormant::pause();
}

/// Runs in the process that has forked another.
extern "C" fn in_parent() {
    dormant::resume();
    contained(|| {
        if let (Some(session), Some(settings)) = (callbacks::session(), SETTINGS.get())
            && !settings.follow.fork
        {
            session.recorder.note(Note::Forked);
        }
    });
}

/// Runs in a process that was just forked. It has the sampler too.
extern "C" fn in_child() {
    dormant::resume();
    contained(|| {
        let session = callbacks::session();
        callbacks::end();
        snapshot::signal::forked();
        attach::forked();
        dormant::forked();
        collector::forked();
        let Some(session) = session else {
            return;
        };
        if let Some(settings) = SETTINGS.get()
            && settings.follow.fork
            && let Some(recorder) = record(
                settings,
                session.recorder.runtime_params().to_owned(),
                // Its random numbers are where those of its parent are.
                None,
                session.recorder.next_id(),
            )
        {
            let runtime = session.runtime;
            callbacks::begin(Session { runtime, recorder });
            collector::read_counters();
        }
    });
}
