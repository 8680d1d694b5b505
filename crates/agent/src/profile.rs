//! Finds out if a sampler is running, and whose it is.
//!
//! The runtime does not say: starting a second sampler raises an exception inside of the program. So for
//! OCaml 5.3 this reads the runtime's data. Its layout is verified as far as possible; where it is
//! another one, nothing is started.

use std::ffi::{c_int, c_void};

use crate::attach::wanted_rate;
use crate::callbacks;
use crate::domains;
use crate::runtime::{Runtime, Value, symbol};
use crate::tracker;

/// Offsets in OCaml 5.3's `struct memprof_domain_s`, in words: the configuration of the domain's own
/// entries, and the current thread.
const CONFIG: usize = 8;
const CURRENT_THREAD: usize = 12;

/// The fields of a configuration: its number, and those used.
const CONFIG_FIELDS: usize = 9;
const STATUS: usize = 0;
const RATE: usize = 1;

/// In place of a configuration: there is none.
const NO_CONFIG: Value = 1;

/// Values of the status.
const SAMPLING: usize = 0;
const STOPPED: usize = 1;

/// The sampler of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// It is in the middle of a callback.
    Suspended,
    /// The layout is not that of OCaml 5.3.
    Unknown,
    /// Nothing is sampled.
    None,
    /// The program has started it.
    Foreign,
    /// We have started it, with this rate.
    Ours {
        /// The value that was passed for it, by which recordings are told apart.
        rate: Value,
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
/// The state of this domain, or of one that stands still, with the layout of OCaml 5.3.
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
    let status = std::ptr::with_exposed_provenance_mut::<Value>(config + 8 * STATUS);
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
        (word(memprof, CONFIG), word(memprof, CURRENT_THREAD))
    };
    if thread == 0 || !thread.is_multiple_of(8) {
        return None;
    }
    // SAFETY: a thread's data begin with a flag.
    let is_suspended = unsafe { *std::ptr::with_exposed_provenance::<u8>(thread) } != 0;
    if config == NO_CONFIG {
        return Some((Profile::None, is_suspended));
    }
    if config == 0 || !config.is_multiple_of(8) {
        return None;
    }
    // SAFETY: it is an OCaml block, which has a header before it.
    let header = unsafe { word(config - 8, 0) };
    if header << 8 >> 18 != CONFIG_FIELDS || header & 0xff != 0 {
        return None;
    }
    // SAFETY: the block has more fields than these.
    let (status, rate) = unsafe { (word(config, STATUS) >> 1, word(config, RATE)) };
    let profile = match status {
        SAMPLING | STOPPED if tracker::is_rate(rate) => Profile::Ours {
            rate,
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
        let wanted = wanted_rate();
        match self {
            Self::Suspended => false,
            Self::Unknown | Self::Foreign => wanted != 0 && callbacks::session().is_none(),
            Self::None => wanted != 0,
            Self::Ours { .. } => !self.is_current(),
        }
    }

    /// Returns true if it samples for the recording that is wanted.
    pub(crate) fn is_current(self) -> bool {
        matches!(self, Self::Ours { rate, is_sampling: true, .. } if rate == wanted_rate())
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
