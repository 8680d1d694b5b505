//! For C: a program that waits for `heapline attach`.
//!
//! ```c
//! int heapline_listen(void (*wake)(void));
//! intptr_t heapline_wanted(double *rate, size_t *stack_depth);
//! int heapline_begin(const char *params);
//! void heapline_refuse(const char *message);
//! ```
//!
//! The thread that listens calls `wake` when something has changed. The program then calls
//! [`heapline_wanted`] where it can start and stop its sampler.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::Recorder;
use crate::capi::{self, current};
use crate::contained;
use crate::control::{FileView, Outcome, Reply, Request, State};
use crate::listener::listen;
use crate::settings::RecordingSettings;

/// The recording that `heapline attach` wants.
struct Attachment {
    settings: Option<RecordingSettings>,
    /// The recording has begun.
    recorder: Option<&'static Recorder>,
    /// The reason why it could not.
    failure: Option<String>,
    /// Recordings so far.
    generation: isize,
}

static ATTACHMENT: Mutex<Attachment> = Mutex::new(Attachment {
    settings: None,
    recorder: None,
    failure: None,
    generation: 0,
});

/// Has the program call [`heapline_wanted`] soon.
static WAKE: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

type Wake = extern "C" fn();

fn wake() {
    let function = WAKE.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: it was stored as such a function.
        let function: Wake = unsafe { std::mem::transmute(function) };
        function();
    }
}

fn lock() -> MutexGuard<'static, Attachment> {
    ATTACHMENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For the program, which does not wait: in a forked process, the lock may belong to nobody.
fn try_lock() -> Option<MutexGuard<'static, Attachment>> {
    match ATTACHMENT.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Starts to wait for `heapline attach`; 0 if that was possible. `wake` is called in another thread.
#[unsafe(no_mangle)]
pub extern "C" fn heapline_listen(wake: Wake) -> c_int {
    WAKE.store(wake as *mut (), Ordering::Release);
    let is_listening = contained(false, || listen(answer).is_ok());
    c_int::from(!is_listening)
}

/// Said if a snapshot is asked for: `heapline snapshot` goes on with ptrace then.
const NO_SNAPSHOTS: &str = "the OCaml library takes no heap snapshots by itself";

/// Said if it is asked for the layout of the runtime.
const NO_LAYOUT: &str = "the OCaml library needs no data of the OCaml runtime";

fn answer(request: &Request) -> Reply {
    let mut attachment = lock();
    let outcome = match request {
        Request::State | Request::Explain => Outcome::Done,
        Request::Attach(settings) => attachment.attach(settings),
        Request::Detach => {
            attachment.detach();
            Outcome::Done
        }
        Request::Snapshot(_) | Request::SnapshotState => Outcome::Failed,
    };
    let state = attachment.state();
    let message = match request {
        Request::Snapshot(_) | Request::SnapshotState => NO_SNAPSHOTS.to_owned(),
        Request::Explain => NO_LAYOUT.to_owned(),
        _ => attachment.failure.clone().unwrap_or_default(),
    };
    drop(attachment);
    if state == State::Armed || outcome == Outcome::Done && state == State::Idle {
        wake();
    }
    Reply {
        outcome,
        state,
        files: FileView::default(),
        message,
    }
}

impl Attachment {
    fn state(&self) -> State {
        match (&self.settings, self.recorder, &self.failure) {
            (_, Some(recorder), _) if recorder.is_recording() => State::Recording,
            (Some(_), None, _) => State::Armed,
            (None, None, Some(_)) => State::Failed,
            _ => State::Idle,
        }
    }

    fn attach(&mut self, settings: &[u8]) -> Outcome {
        self.failure = if current().is_some_and(Recorder::is_recording) {
            Some("the program records itself".to_owned())
        } else if self.settings.is_some() {
            Some("heapline records it already".to_owned())
        } else {
            match RecordingSettings::from_bytes(settings) {
                Ok(settings) => {
                    self.settings = Some(settings);
                    self.recorder = None;
                    self.generation += 1;
                    return Outcome::Done;
                }
                Err(message) => Some(message),
            }
        };
        Outcome::Failed
    }

    fn detach(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            recorder.stop();
        }
        self.settings = None;
        self.failure = None;
    }
}

/// Returns the number of the recording that is wanted, with its rate and depth of stacks (0 for no limit);
/// 0 if none is, and -1 if that is not known now.
///
/// # Safety
///
/// Both point to numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_wanted(rate: *mut f64, stack_depth: *mut usize) -> isize {
    let Some(attachment) = try_lock() else {
        return -1;
    };
    let Some(settings) = &attachment.settings else {
        return 0;
    };
    // SAFETY: the caller promises that both point to numbers.
    unsafe {
        *rate = settings.rate;
        *stack_depth = settings.stack_depth.unwrap_or(0);
    }
    attachment.generation
}

/// Begins the recording that is wanted; 0 if that was possible. `params` may be null.
///
/// # Safety
///
/// The string ends in NUL, if there is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_begin(params: *const c_char) -> c_int {
    // SAFETY: the caller promises a string or null.
    let params = unsafe { capi::text(params) };
    let Some(mut attachment) = try_lock() else {
        return 1;
    };
    let Some(settings) = &attachment.settings else {
        return 1;
    };
    match capi::record(settings, params) {
        Ok(recorder) => {
            attachment.recorder = Some(recorder);
            return 0;
        }
        Err(error) => {
            let trace = settings.output.path().display();
            attachment.failure = Some(format!("the program cannot write {trace}: {error}"));
        }
    }
    attachment.settings = None;
    1
}

/// Ends the recording that is wanted, because the sampler cannot be started.
///
/// # Safety
///
/// The string ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapline_refuse(message: *const c_char) {
    // SAFETY: the caller promises a string.
    let message = unsafe { capi::text(message) };
    if let Some(mut attachment) = try_lock() {
        attachment.detach();
        attachment.failure = Some(message);
    }
}
