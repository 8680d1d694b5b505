//! Finds out if a sampler is running, and whose it is.
//!
//! Up to OCaml 5.4 starting a second sampler raises an exception inside of the program, and from 5.5 on it replaces
//! the first. Before 5.5 the runtime does not say if there is one, and never whose it is. So this reads the runtime's
//! data; where their [layout](crate::layout) is not known, nothing is started.

use std::ffi::{c_int, c_void};

use crate::attach::wanted_mark;
use crate::callbacks;
use crate::domains;
use crate::layout::sampler::{self, config as field};
use crate::runtime::{Runtime, Value, symbol};
use crate::tracker;

/// Values of the status.
const SAMPLING: usize = 0;
const STOPPED: usize = 1;

/// The sampler of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// It is in the middle of a callback, or between two threads.
    Suspended,
    /// Its layout is not known.
    Unknown,
    /// Nothing is sampled.
    None,
    /// The program has started it.
    Foreign,
    /// We have started it.
    Ours {
        /// By this value recordings are told apart.
        mark: Value,
        /// Its description in the runtime.
        config: Value,
        /// False if it was stopped.
        is_sampling: bool,
    },
}

/// OCaml 5: the sampler of this domain.
///
/// # Safety
///
/// This thread runs a domain.
pub(crate) unsafe fn of_domain() -> Profile {
    // SAFETY: as the caller's.
    let Some((state, memprof)) = (unsafe { domains::sampler() }) else {
        return Profile::Unknown;
    };
    // SAFETY: it is the sampler of a domain.
    unsafe { read(state, memprof) }.map_or(Profile::Unknown, |(profile, is_suspended)| {
        if is_suspended {
            Profile::Suspended
        } else {
            profile
        }
    })
}

/// OCaml 5: stops the sampler of a domain if it is ours, without calling callbacks, as the runtime's function
/// would.
///
/// # Safety
///
/// The state of this domain, or of one that stands still.
pub(crate) unsafe fn stop_in(state: usize) {
    // SAFETY: as the caller's.
    let profile = unsafe {
        let sampler = domains::sampler_of(state);
        sampler.and_then(|memprof| read(state, memprof))
    };
    let Some((
        Profile::Ours {
            config,
            is_sampling: true,
            ..
        },
        _,
    )) = profile
    else {
        return;
    };
    let status = std::ptr::with_exposed_provenance_mut::<Value>(config + 8 * field::STATUS);
    // SAFETY: the status is an integer, and nobody looks at it now.
    unsafe {
        *status = STOPPED << 1 | 1;
        domains::renew_trigger(state);
    }
}

/// The sampler of a domain, and true if it is in a callback. `None` if the layout is another one.
///
/// # Safety
///
/// It is the sampler of this domain, or of one that stands still.
unsafe fn read(state: usize, memprof: usize) -> Option<(Profile, bool)> {
    /// # Safety
    ///
    /// There is a word.
    unsafe fn word(address: usize, index: usize) -> usize {
        // SAFETY: as the caller's.
        unsafe { *std::ptr::with_exposed_provenance::<usize>(address + 8 * index) }
    }
    // SAFETY: the sampler's data begin with a pointer back to the state of the domain, and have more words
    // than these.
    let (config, thread) = unsafe {
        if word(memprof, 0) != state {
            return None;
        }
        (
            word(memprof, sampler::CONFIG),
            word(memprof, sampler::CURRENT_THREAD),
        )
    };
    if !thread.is_multiple_of(8) {
        return None;
    }
    // When a thread has ended, the domain has none until another one runs.
    // SAFETY: a thread's data begin with a flag.
    let is_suspended =
        thread == 0 || unsafe { *std::ptr::with_exposed_provenance::<u8>(thread) } != 0;
    if config == sampler::NO_CONFIG {
        return Some((Profile::None, is_suspended));
    }
    if config == 0 || !config.is_multiple_of(8) {
        return None;
    }
    // SAFETY: it is an OCaml block, which has a header before it.
    let header = unsafe { word(config - 8, 0) };
    if header << 8 >> 18 != field::FIELDS || header & 0xff != 0 {
        return None;
    }
    // SAFETY: the block has more fields than these.
    let (status, mark) = unsafe {
        (
            word(config, field::STATUS) >> 1,
            word(config, field::ALLOC_MINOR),
        )
    };
    let profile = match status {
        SAMPLING | STOPPED if tracker::is_mark(mark) => Profile::Ours {
            mark,
            config,
            is_sampling: status == SAMPLING,
        },
        SAMPLING => Profile::Foreign,
        _ => Profile::None,
    };
    Some((profile, is_suspended))
}

impl Profile {
    /// Returns true if it is to be started or stopped.
    pub(crate) fn is_due(self) -> bool {
        let wanted = wanted_mark();
        match self {
            Self::Suspended => false,
            Self::Unknown | Self::Foreign => wanted != 0 && callbacks::session().is_none(),
            Self::None => wanted != 0,
            Self::Ours { .. } => !self.is_current(),
        }
    }

    /// Returns true if it samples for the recording that is wanted.
    pub(crate) fn is_current(self) -> bool {
        matches!(self, Self::Ours { mark, is_sampling: true, .. } if mark == wanted_mark())
    }

    /// Stops and discards a sampler of an earlier recording.
    ///
    /// # Safety
    ///
    /// It is the sampler of this domain, which may run OCaml code.
    pub(crate) unsafe fn stop_if_old(&mut self, runtime: &Runtime) {
        if self.is_current() {
            return;
        }
        if let Self::Ours {
            is_sampling: true, ..
        } = self
        {
            // SAFETY: as the caller's.
            unsafe {
                if let Some((state, _)) = domains::sampler() {
                    stop_in(state);
                }
                *self = of_domain();
            }
        }
        if let Self::Ours {
            config,
            is_sampling: false,
            ..
        } = *self
        {
            // SAFETY: it was stopped.
            unsafe { runtime.discard_sampler(config) };
            *self = Self::None;
        }
    }
}

/// OCaml 4: returns true if a callback of the sampler is running in any thread, or if that is not known.
pub(crate) fn is_suspended() -> bool {
    type Action = extern "C" fn(*const c_int, *mut c_void);
    type Iterate = extern "C" fn(Action, *mut c_void);
    /// The state of a thread begins with the flag.
    extern "C" fn look(thread: *const c_int, found: *mut c_void) {
        // SAFETY: the runtime passes the state of a thread, and what was passed to it.
        unsafe {
            if *thread != 0 {
                *found.cast::<bool>() = true;
            }
        }
    }
    // 4.11
    if let Some(flag) = symbol(c"caml_memprof_suspended") {
        // SAFETY: it is a variable of this type.
        return unsafe { *std::ptr::with_exposed_provenance::<c_int>(flag) } != 0;
    }
    // 4.12 to 4.14
    let Some(hook) = symbol(c"caml_memprof_th_ctx_iter_hook") else {
        return true;
    };
    // SAFETY: it is a variable of this type.
    let iterate: Iterate = unsafe { *std::ptr::with_exposed_provenance(hook) };
    let mut found = false;
    iterate(look, std::ptr::from_mut(&mut found).cast());
    found
}
