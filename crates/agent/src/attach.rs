//! Entry points for a program that already runs.
//!
//! `heapline attach` loads the library into it, and calls [`heapline_attach`] and, at the end,
//! [`heapline_detach`], each in a thread that it has stopped. If the program waits (`dormant.rs`), they
//! are called in the thread that does so. Both only leave a note: the sampler is started and stopped at the
//! next safe point of each domain.
//!
//! The thread may be anywhere in OCaml code, and other domains may need it for a collection: so these
//! functions never wait for another thread of the program.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use heapline_recorder::contained;
use heapline_recorder::control::{Outcome, State};
use heapline_recorder::gaps::Unit;
use heapline_recorder::settings::{RecordingSettings, StackMode};

use crate::callbacks::{self, EndedSession, Session};
use crate::collector;
use crate::exit;
use crate::layout;
use crate::own_sampler::{self, Policy};
use crate::preload;
use crate::runtime::{self, Kind, Runtime, StartArguments, Unfit, Value};
use crate::safe_point;
use crate::stacks;
use crate::tracker::{self, Arguments};

/// Bytes of a message in the control block.
const MESSAGE: usize = 1024;

/// The control block: what `heapline attach` reads in the memory of the program.
#[derive(Debug)]
#[repr(C)]
pub struct Control {
    state: AtomicU32,
    message_len: AtomicU32,
    message: [AtomicU64; MESSAGE / 8],
}

/// The control block.
#[unsafe(export_name = "heapline_control")]
pub static CONTROL: Control = Control::new();

impl Control {
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            message_len: AtomicU32::new(0),
            message: [const { AtomicU64::new(0) }; MESSAGE / 8],
        }
    }

    /// The state, and a message if something has failed.
    pub(crate) fn read(&self) -> (State, String) {
        let state = State::from_number(self.state.load(Ordering::Acquire));
        let len = self.message_len.load(Ordering::Relaxed) as usize;
        let words = self.message.iter();
        let bytes: Vec<u8> = words
            .flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes())
            .take(len)
            .collect();
        let message = String::from_utf8_lossy(&bytes).into_owned();
        (state.unwrap_or(State::Idle), message)
    }

    pub(crate) fn set(&self, state: State) {
        self.state.store(state as u32, Ordering::Release);
    }

    pub(crate) fn fail(&self, message: &str) {
        self.tell(State::Failed, message);
    }

    /// Sets a state with a message, of which the end is cut off if it is too long.
    pub(crate) fn tell(&self, state: State, message: &str) {
        let bytes = message.as_bytes();
        let len = bytes.len().min(MESSAGE);
        for (word, chunk) in self.message.iter().zip(bytes[..len].chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        let len = u32::try_from(len).unwrap_or(0);
        self.message_len.store(len, Ordering::Relaxed);
        self.set(state);
    }
}

/// The recording that is wanted, and the state of the one that is there.
struct Attachment {
    /// The settings of the recording that is wanted.
    wanted: Option<RecordingSettings>,
    /// The arguments of its samplers, by which they are told from older ones.
    arguments: Option<Arguments>,
    /// Recordings so far.
    generation: usize,
    /// The runtime's function that finds stacks is replaced, where that is possible.
    is_patched: bool,
    /// Programs that start a sampler of their own get it.
    is_guarded: bool,
    /// Recordings that have ended, and are freed when no domain can be in them any more.
    retired: Vec<EndedSession>,
}

static ATTACHMENT: Mutex<Attachment> = Mutex::new(Attachment {
    wanted: None,
    arguments: None,
    generation: 0,
    is_patched: false,
    is_guarded: false,
    retired: Vec::new(),
});

static RUNTIME: OnceLock<Result<Runtime, Unfit>> = OnceLock::new();

/// The mark of the samplers that are wanted, as in [`Attachment::arguments`]; null for none.
static WANTED_MARK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

fn set_wanted_mark(mark: Value) {
    let mark = std::ptr::with_exposed_provenance_mut(mark);
    WANTED_MARK.store(mark, Ordering::Release);
}

/// The mark of the samplers that are wanted; 0 for none.
pub(crate) fn wanted_mark() -> Value {
    WANTED_MARK.load(Ordering::Acquire).addr()
}

/// Nobody waits for it: who has it may need the waiting thread.
fn attachment() -> Option<MutexGuard<'static, Attachment>> {
    match ATTACHMENT.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Looks for the runtime, and prepares for being called in it.
pub(crate) fn find_runtime() -> Result<&'static Runtime, Unfit> {
    preload::silence_panics();
    RUNTIME
        .get_or_init(Runtime::find)
        .as_ref()
        .map_err(|unfit| *unfit)
}

/// The runtime, once somebody has attached.
pub(crate) fn runtime() -> Option<&'static Runtime> {
    RUNTIME.get()?.as_ref().ok()
}

/// Looks for the layout of the runtime's data. The error says why it is not known.
///
/// Like all entry points, only in a thread that is in OCaml code or in a system call, or in our own.
pub(crate) fn check_layout(runtime: &Runtime) -> Result<(), String> {
    if !has_domains(runtime) {
        return Ok(());
    }
    // SAFETY: it is OCaml 5.3 or later, and this thread is not in the code of the runtime.
    let layout = unsafe { layout::get() };
    layout.map(drop).map_err(ToString::to_string)
}

/// Asks for a recording with [settings](RecordingSettings::to_bytes).
///
/// # Safety
///
/// `settings` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_attach(settings: *const u8, len: usize) -> usize {
    // SAFETY: as the caller's.
    let settings = unsafe { std::slice::from_raw_parts(settings, len) };
    contained(Outcome::Failed, || attach(settings)) as usize
}

/// Asks for a recording with [settings](RecordingSettings::to_bytes).
pub(crate) fn attach(settings: &[u8]) -> Outcome {
    let Some(mut attachment) = attachment() else {
        return Outcome::Busy;
    };
    if callbacks::session().is_some() || attachment.wanted.is_some() {
        CONTROL.fail("heapline records it already");
        return Outcome::Failed;
    }
    let runtime = match find_runtime() {
        Ok(runtime) => runtime,
        Err(unfit) => {
            CONTROL.fail(&unfit.to_string());
            return Outcome::Failed;
        }
    };
    if let Err(refusal) = check_layout(runtime) {
        CONTROL.fail(&refusal);
        return Outcome::Failed;
    }
    let settings = match RecordingSettings::from_bytes(settings) {
        Ok(settings) => settings,
        Err(message) => {
            CONTROL.fail(&message);
            return Outcome::Failed;
        }
    };
    attachment.generation += 1;
    // SAFETY: no sampler that matters has it: the last one that did was that of so many recordings ago.
    let arguments =
        unsafe { tracker::arguments(attachment.generation, settings.rate, runtime.kind) };
    attachment.arguments = Some(arguments);
    set_wanted_mark(arguments.mark);
    attachment.wanted = Some(settings);
    CONTROL.set(State::Armed);
    drop(attachment);
    preload::watch_forks();
    collector::watch(runtime);
    safe_point::ask_for(runtime);
    Outcome::Done
}

/// Asks again for the safe point at which a recording begins or ends, if it was not reached yet.
pub(crate) fn ask_again() {
    if let Some(runtime) = runtime()
        && safe_point::is_expected()
    {
        safe_point::ask_for(runtime);
    }
}

/// Ends the recording. The trace is complete when this returns.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_detach(_: *const u8, _: usize) -> usize {
    contained(Outcome::Failed, detach) as usize
}

/// Ends the recording. The trace is complete when this returns.
pub(crate) fn detach() -> Outcome {
    let Some(mut attachment) = attachment() else {
        return Outcome::Busy;
    };
    attachment.end();
    CONTROL.set(State::Idle);
    drop(attachment);
    if let Some(runtime) = runtime() {
        safe_point::ask_for(runtime);
    }
    Outcome::Done
}

/// Ends the recording, if there is one, when the program starts a sampler of its own: `stop` stops ours, and
/// restores the functions with which programs use the sampler. Returns false if that failed.
pub(crate) fn end_with(stop: impl FnOnce() -> bool) -> bool {
    unguarded(stop).is_some_and(|mut attachment| {
        if attachment.wanted.is_some() {
            attachment.end();
            CONTROL.set(State::Idle);
        }
        true
    })
}

/// Calls `restore`, which restores functions with which programs use the sampler until the next safe point.
/// Returns false if that failed.
pub(crate) fn unguard_with(restore: impl FnOnce() -> bool) -> bool {
    unguarded(restore).is_some()
}

fn unguarded(restore: impl FnOnce() -> bool) -> Option<MutexGuard<'static, Attachment>> {
    let mut attachment = attachment()?;
    if !restore() {
        return None;
    }
    attachment.is_guarded = false;
    if runtime().is_some() {
        safe_point::expect();
    }
    Some(attachment)
}

/// In a process that was just forked: its sampler is not needed.
pub(crate) fn forked() {
    if runtime().is_none() {
        return;
    }
    if let Some(mut attachment) = attachment() {
        attachment.wanted = None;
        set_wanted_mark(0);
        CONTROL.set(State::Idle);
    }
    safe_point::expect();
}

/// OCaml 4: starts or stops the sampler.
///
/// # Safety
///
/// This thread may run OCaml code, the minor heap is empty, and no callback of a sampler is running.
pub(crate) unsafe fn at_safe_point_of_single(runtime: &'static Runtime) {
    let Some(mut attachment) = attachment() else {
        return;
    };
    let is_current = callbacks::session().is_some();
    if runtime::is_single_sampling() && !is_current {
        attachment.is_guarded = false;
        // SAFETY: no other thread runs OCaml code, and our sampler is running.
        unsafe {
            own_sampler::restore();
            runtime.stop_sampler();
        }
    }
    safe_point::is_reached();
    // SAFETY: as the caller's.
    unsafe { attachment.clean_up(runtime) };
    if !runtime::is_single_sampling() && attachment.wanted.is_some() {
        // SAFETY: as the caller's.
        unsafe { attachment.begin(runtime, true) };
    }
}

/// OCaml 5: starts or stops the sampler of this domain.
///
/// # Safety
///
/// This thread may run OCaml code, and no callback of a sampler is running in it.
pub(crate) unsafe fn at_safe_point_of_domain(runtime: &'static Runtime, has_sampler: bool) {
    let Some(mut attachment) = attachment() else {
        return;
    };
    safe_point::is_reached();
    // SAFETY: as the caller's.
    unsafe { attachment.clean_up(runtime) };
    if attachment.wanted.is_some() && !has_sampler {
        // SAFETY: as the caller's.
        unsafe { attachment.begin(runtime, false) };
    }
    if attachment.wanted.is_some() && !attachment.is_guarded {
        // SAFETY: as the caller's.
        unsafe { attachment.guard(runtime) };
    }
}

/// The program has a sampler of its own, or the runtime is unknown.
pub(crate) fn refuse(message: &str) {
    if let Some(mut attachment) = attachment()
        && attachment.wanted.is_some()
        && callbacks::session().is_none()
    {
        attachment.refuse(message);
    }
}

impl Attachment {
    fn refuse(&mut self, message: &str) {
        CONTROL.fail(message);
        self.wanted = None;
        set_wanted_mark(0);
    }

    /// Ends the recording, if there is one.
    fn end(&mut self) {
        self.wanted = None;
        set_wanted_mark(0);
        self.end_session();
    }

    fn end_session(&mut self) {
        self.retired.extend(callbacks::stop());
    }

    /// Starts the sampler, and the recording if this is the first domain.
    ///
    /// # Safety
    ///
    /// As for [`at_safe_point_of_domain`]; this domain has no sampler of ours.
    unsafe fn begin(&mut self, runtime: &'static Runtime, is_single: bool) {
        // SAFETY: as the caller's.
        if !unsafe { self.patch(runtime) } {
            // Other domains could not be stopped: next time.
            safe_point::expect();
            return;
        }
        let (Some(settings), Some(arguments)) = (&self.wanted, self.arguments) else {
            return;
        };
        let is_first = callbacks::session().is_none();
        if is_first {
            // SAFETY: as the caller's.
            let params = unsafe { runtime.parameters() };
            let seed = Some(settings.draw_seed());
            match settings.start(Unit::Word, params, seed, callbacks::next_id()) {
                Ok(recorder) => callbacks::begin(Session { runtime, recorder }),
                Err(error) => {
                    let path = settings.output.path().display();
                    let message = format!("the program cannot write {path}: {error}");
                    self.refuse(&message);
                    return;
                }
            }
        }
        let depth = stacks::limit(settings.stack_depth, stacks::is_replaced());
        let Arguments { rate, tracker, .. } = arguments;
        let arguments = StartArguments {
            rate,
            stack_size: depth,
            tracker,
            seed: callbacks::seed(),
        };
        // SAFETY: as the caller's.
        let has_started = unsafe {
            if is_single {
                runtime.try_start_sampler(&arguments)
            } else {
                runtime.start_sampler(&arguments);
                true
            }
        };
        if !has_started {
            self.end_session();
            self.refuse(OWN_SAMPLER);
            return;
        }
        if is_single {
            // SAFETY: as the caller's.
            unsafe { self.guard(runtime) };
        }
        // SAFETY: as the caller's.
        unsafe { collector::recording_began() };
        if is_first {
            CONTROL.set(State::Recording);
        }
    }

    /// From now on, the program gets the sampler if it starts one.
    ///
    /// # Safety
    ///
    /// As for [`at_safe_point_of_domain`].
    unsafe fn guard(&mut self, runtime: &'static Runtime) {
        // SAFETY: no other thread runs OCaml code.
        let guard = |_: &[usize]| unsafe { own_sampler::guard(runtime, Policy::GiveWay) };
        // SAFETY: as the caller's.
        self.is_guarded = unsafe { safe_point::alone(runtime, guard) };
        if !self.is_guarded {
            safe_point::expect();
        }
    }

    /// Replaces functions of the runtime, but for that which starts the sampler, which is as it was so that
    /// we can call it. Returns false if other domains could not be stopped for that.
    ///
    /// # Safety
    ///
    /// As for [`at_safe_point_of_domain`].
    unsafe fn patch(&mut self, runtime: &'static Runtime) -> bool {
        if self.is_patched && !self.is_guarded {
            return true;
        }
        let wants_own = self
            .wanted
            .as_ref()
            .is_some_and(|settings| settings.stacks == StackMode::Own);
        let is_patched = self.is_patched;
        let patch = |_: &[usize]| {
            // SAFETY: no other thread runs OCaml code.
            unsafe {
                own_sampler::restore();
                if !is_patched {
                    let _ = wants_own && stacks::replace(runtime.kind);
                    preload::watch_domains(runtime);
                    exit::watch();
                    collector::forced::watch(runtime.kind);
                }
            }
        };
        // SAFETY: as the caller's.
        let is_done = unsafe { safe_point::alone(runtime, patch) };
        if is_done {
            self.is_patched = true;
            self.is_guarded = false;
        }
        is_done
    }

    /// Frees recordings that have ended, and restores the code of the runtime.
    ///
    /// # Safety
    ///
    /// As for [`at_safe_point_of_domain`].
    unsafe fn clean_up(&mut self, runtime: &'static Runtime) {
        let is_idle = self.wanted.is_none();
        if self.retired.is_empty() && !(is_idle && self.is_patched) {
            return;
        }
        let (retired, is_patched) = (&mut self.retired, &mut self.is_patched);
        let is_guarded = &mut self.is_guarded;
        let clean_up = |_: &[usize]| {
            // SAFETY: no other thread runs OCaml code or is in a callback. Callbacks that come later find
            // neither a session nor a lane.
            unsafe {
                for session in retired.drain(..) {
                    callbacks::free(session);
                }
                if is_idle {
                    stacks::restore();
                    own_sampler::restore();
                    exit::unwatch();
                    collector::forced::restore();
                    (*is_patched, *is_guarded) = (false, false);
                }
            }
        };
        // SAFETY: as the caller's.
        if !unsafe { safe_point::alone(runtime, clean_up) } {
            safe_point::expect();
        }
    }
}

/// Said if the sampler is taken.
pub(crate) const OWN_SAMPLER: &str = "the program uses Gc.Memprof itself, such as by memtrace or \
     memprof-limits, and the runtime has only one sampler; stop that one first";

/// True if the runtime has domains.
pub(crate) fn has_domains(runtime: &Runtime) -> bool {
    matches!(runtime.kind, Kind::Domains { .. })
}
