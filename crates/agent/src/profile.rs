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
    /// # Safety
    ///
    /// There is a word.
    unsafe fn word(address: usize, index: usize) -> usize {
        // SAFETY: as the caller's.
        unsafe { *std::ptr::with_exposed_provenance::<usize>(address + 8 * index) }
    }
    // SAFETY: as the caller's.
    let Some((state, memprof)) = (unsafe { domains::sampler() }) else {
        return Profile::Unknown;
    };
    // SAFETY: the sampler's data begin with a pointer back to the state of the domain, and have more words
    // than these.
    let (config, thread) = unsafe {
        if word(memprof, 0) != state {
            return Profile::Unknown;
        }
        (word(memprof, CONFIG), word(memprof, CURRENT_THREAD))
    };
    if thread == 0 || !thread.is_multiple_of(8) {
        return Profile::Unknown;
    }
    // SAFETY: a thread's data begin with a flag.
    if unsafe { *std::ptr::with_exposed_provenance::<u8>(thread) } != 0 {
        return Profile::Suspended;
    }
    if config == NO_CONFIG {
        return Profile::None;
    }
    if config == 0 || !config.is_multiple_of(8) {
        return Profile::Unknown;
    }
    // SAFETY: it is an OCaml block, which has a header before it.
    let header = unsafe { word(config - 8, 0) };
    if header << 8 >> 18 != CONFIG_FIELDS || header & 0xff != 0 {
        return Profile::Unknown;
    }
    // SAFETY: the block has more fields than these.
    let (status, rate) = unsafe { (word(config, STATUS) >> 1, word(config, RATE)) };
    match status {
        SAMPLING | STOPPED if tracker::is_rate(rate) => Profile::Ours {
            rate,
            config,
            is_sampling: status == SAMPLING,
        },
        SAMPLING => Profile::Foreign,
        _ => Profile::None,
    }
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
            // SAFETY: it is running.
            unsafe { runtime.stop_sampler() };
            // SAFETY: as the caller's. Collections may have moved it.
            *self = unsafe { of_domain() };
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
