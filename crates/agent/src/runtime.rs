//! Finds OCaml's runtime in the program.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heapline_recorder::{Frame, FrameSink, seed};

use crate::domains;

/// An OCaml value: a tagged integer or the address of a block.
pub(crate) type Value = usize;

pub(crate) const UNIT: Value = 1;
pub(crate) const NONE: Value = 1;

/// `caml_c_call`, for the code of the closures.
pub(crate) static C_CALL: AtomicUsize = AtomicUsize::new(0);

/// The arguments that the [closure](crate::tracker::starter) that starts the sampler passes to it, and
/// the function that it calls.
pub(crate) static START_ARGUMENTS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// OCaml 4: true while the sampler runs for us.
static SINGLE_SAMPLING: AtomicBool = AtomicBool::new(false);

/// OCaml 4: returns true while the sampler runs for us.
pub(crate) fn is_single_sampling() -> bool {
    SINGLE_SAMPLING.load(Ordering::Acquire)
}

/// A function that only the runtimes of `OxCaml` have: it allocates in the arenas for local values.
const OXCAML: &CStr = c"caml_alloc_local";

/// Frames of a location that are kept: functions inlined into each other.
const MAX_INLINED: usize = 64;

/// The properties of the runtime.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) kind: Kind,
    pub(crate) start_program: usize,
    pub(crate) memprof_start: usize,
    pub(crate) memprof_stop: usize,
    memprof_discard: Option<usize>,
    c_call: usize,
    debuginfo_extract: usize,
    debuginfo_next: usize,
    debuginfo_location: usize,
    parameters: Option<usize>,
}

/// The arguments with which a sampler is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartArguments {
    pub(crate) rate: Value,
    pub(crate) stack_size: Value,
    pub(crate) tracker: Value,
    /// The seed of the recording.
    pub(crate) seed: u64,
}

/// The two ways in which samplers work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 4.11 to 4.14: one for the process.
    Single,
    /// From 5.3 on: one per domain.
    Domains {
        /// `caml_ml_domain_index`
        domain_index: usize,
        /// `caml_domain_spawn`
        spawn: Option<usize>,
    },
}

/// The reason why a program cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It is no OCaml program, or does not let its symbols be seen.
    NoRuntime,
    /// `OxCaml`, which has a sampler, but other stacks, frame descriptors and domain states.
    OxCaml,
    /// Before 4.11.
    TooOld,
    /// 5.0 to 5.2 have functions that only say that they do nothing.
    NoSampler,
    /// Something that should be there is not.
    Missing(&'static CStr),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuntime => f.write_str("it is no OCaml program"),
            Self::OxCaml => f.write_str(
                "the program was built with OxCaml, whose runtime heapline does not support; build it with \
                 OCaml 4.14, or 5.3 or later, or link memtrace, whose traces heapline reads",
            ),
            Self::TooOld => f.write_str(
                "the program was built with an OCaml before 4.11, which has no sampler; build it with \
                 4.14, or 5.3 or later",
            ),
            Self::NoSampler => f.write_str(
                "the program was built with OCaml 5.0, 5.1 or 5.2, which have no sampler; build it with \
                 5.3 or later, or 4.14",
            ),
            Self::Missing(name) => {
                let name = name.to_string_lossy();
                write!(
                    f,
                    "this OCaml runtime has no {name}, so it is one that heapline does not know"
                )
            }
        }
    }
}

/// The address of a symbol of the program.
pub(crate) fn symbol(name: &CStr) -> Option<usize> {
    // SAFETY: a search by name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then(|| address.expose_provenance())
}

impl Runtime {
    /// Looks for the runtime in this process.
    pub(crate) fn find() -> Result<Self, Unfit> {
        let needed = |name: &'static CStr| symbol(name).ok_or(Unfit::Missing(name));
        let start_program = symbol(c"caml_start_program").ok_or(Unfit::NoRuntime)?;
        if symbol(OXCAML).is_some() {
            return Err(Unfit::OxCaml);
        }
        let memprof_start = symbol(c"caml_memprof_start").ok_or(Unfit::TooOld)?;
        let memprof_discard = symbol(c"caml_memprof_discard");
        let kind = if symbol(c"caml_memprof_young_trigger").is_some() {
            Kind::Single
        } else {
            // 5.2 has all functions of `Gc.Memprof`, which do nothing.
            let domain_index = symbol(c"caml_ml_domain_index").ok_or(Unfit::NoSampler)?;
            Kind::Domains {
                domain_index,
                spawn: symbol(c"caml_domain_spawn"),
            }
        };
        Ok(Self {
            kind,
            start_program,
            memprof_start,
            memprof_stop: needed(c"caml_memprof_stop")?,
            memprof_discard,
            c_call: needed(c"caml_c_call")?,
            debuginfo_extract: needed(c"caml_debuginfo_extract")?,
            debuginfo_next: needed(c"caml_debuginfo_next")?,
            debuginfo_location: needed(c"caml_debuginfo_location")?,
            parameters: symbol(c"caml_runtime_parameters"),
        })
    }

    pub(crate) fn memprof_discard(&self) -> Option<usize> {
        self.memprof_discard
    }

    /// The parameters that the program runs with, as `Sys.runtime_parameters` has them.
    ///
    /// # Safety
    ///
    /// The runtime is up, this thread may run OCaml code, and does not.
    pub(crate) unsafe fn parameters(&self) -> String {
        let Some(function) = self.parameters else {
            return String::new();
        };
        // SAFETY: that is what the function takes and returns.
        let function: extern "C" fn(Value) -> Value = unsafe { std::mem::transmute(function) };
        let string = std::ptr::with_exposed_provenance::<c_char>(function(UNIT));
        // SAFETY: OCaml's strings end in NUL, and nothing has happened since this one was made.
        let string = unsafe { CStr::from_ptr(string) };
        string.to_string_lossy().into_owned()
    }

    /// Starts the sampler with closures that call [`crate::callbacks`].
    ///
    /// # Safety
    ///
    /// As for [`parameters`](Self::parameters); the sampler was not started before.
    pub(crate) unsafe fn start_sampler(&self, arguments: &StartArguments) {
        // SAFETY: as the caller's.
        unsafe {
            if self.kind == Kind::Single {
                self.start(arguments);
                self.restart(arguments);
            } else {
                domains::seed(arguments.seed);
                self.start(arguments);
            }
        }
    }

    /// # Safety
    ///
    /// As for [`start_sampler`](Self::start_sampler).
    unsafe fn start(&self, arguments: &StartArguments) {
        C_CALL.store(self.c_call, Ordering::Release);
        // SAFETY: that is what the function takes and returns.
        let start: extern "C" fn(Value, Value, Value) -> Value =
            unsafe { std::mem::transmute(self.memprof_start) };
        start(arguments.rate, arguments.stack_size, arguments.tracker);
        SINGLE_SAMPLING.store(self.kind == Kind::Single, Ordering::Release);
    }

    /// OCaml 4: starts the sampler, which has just been started, again with other random numbers. The function that
    /// chooses the next sample in the minor heap passes over one of them.
    ///
    /// # Safety
    ///
    /// As for [`parameters`](Self::parameters).
    unsafe fn restart(&self, arguments: &StartArguments) {
        let Some(renew) = symbol(c"caml_memprof_renew_minor_sample") else {
            return;
        };
        // SAFETY: that is its type.
        let renew: extern "C" fn() = unsafe { std::mem::transmute(renew) };
        let [first, second] = seed::skips(arguments.seed);
        (0..first).for_each(|_| renew());
        // SAFETY: as the caller's.
        unsafe {
            self.stop_sampler();
            self.start(arguments);
        }
        (0..second).for_each(|_| renew());
    }

    /// OCaml 4: like [`start_sampler`](Self::start_sampler), but returns false if the program has started
    /// a sampler.
    ///
    /// # Safety
    ///
    /// As for [`parameters`](Self::parameters).
    pub(crate) unsafe fn try_start_sampler(&self, arguments: &StartArguments) -> bool {
        let Some(callback) = symbol(c"caml_callback_exn") else {
            return false;
        };
        C_CALL.store(self.c_call, Ordering::Release);
        let values = [
            arguments.rate,
            arguments.stack_size,
            arguments.tracker,
            self.memprof_start,
        ];
        for (place, argument) in START_ARGUMENTS.iter().zip(values) {
            place.store(argument, Ordering::Release);
        }
        // SAFETY: that is what the function takes and returns.
        let callback: extern "C" fn(Value, Value) -> Value =
            unsafe { std::mem::transmute(callback) };
        let result = callback(crate::tracker::starter(self.kind), UNIT);
        // An exception is marked.
        let has_started = result & 3 != 2;
        SINGLE_SAMPLING.store(has_started, Ordering::Release);
        if has_started {
            // SAFETY: as the caller's.
            unsafe { self.restart(arguments) };
        }
        has_started
    }

    /// OCaml 5: discards a sampler that was stopped.
    ///
    /// # Safety
    ///
    /// As for [`parameters`](Self::parameters); `config` is that of a sampler that was stopped.
    pub(crate) unsafe fn discard_sampler(&self, config: Value) {
        if let Some(discard) = self.memprof_discard {
            // SAFETY: that is what the function takes and returns.
            let discard: extern "C" fn(Value) -> Value = unsafe { std::mem::transmute(discard) };
            discard(config);
        }
    }

    /// Stops the sampler.
    ///
    /// # Safety
    ///
    /// As for [`parameters`](Self::parameters); the sampler was started.
    pub(crate) unsafe fn stop_sampler(&self) {
        // SAFETY: that is what the function takes and returns.
        let stop: extern "C" fn(Value) -> Value = unsafe { std::mem::transmute(self.memprof_stop) };
        stop(UNIT);
        SINGLE_SAMPLING.store(false, Ordering::Release);
    }

    /// The number of the domain that this thread runs: that of its slot, which later domains get
    /// again.
    #[inline]
    pub(crate) fn domain(&self) -> usize {
        match self.kind {
            Kind::Single => 0,
            Kind::Domains { domain_index, .. } => {
                // SAFETY: that is what the function takes and returns.
                let index: extern "C" fn(Value) -> Value =
                    unsafe { std::mem::transmute(domain_index) };
                index(UNIT) >> 1
            }
        }
    }

    /// Adds the frames of a location, the outermost function first.
    pub(crate) fn resolve(&self, code: u64, frames: &mut FrameSink<'_>) {
        let mut found = [Frame::UNKNOWN; MAX_INLINED];
        let count = self.frames(code, &mut found);
        for frame in found[..count].iter().rev() {
            frames.push(*frame);
        }
    }

    /// The outermost function of a location, into which the others are inlined.
    pub(crate) fn outermost(&self, code: u64) -> Option<Frame<'static>> {
        let mut found = [Frame::UNKNOWN; MAX_INLINED];
        let count = self.frames(code, &mut found);
        found[..count].last().copied()
    }

    /// The frames of a location, the innermost function first. Returns their number.
    fn frames(&self, code: u64, found: &mut [Frame<'static>; MAX_INLINED]) -> usize {
        type Walk = extern "C" fn(*const c_void) -> *const c_void;
        // SAFETY: that is what these functions take and return.
        let (extract, next, location): (
            Walk,
            Walk,
            extern "C" fn(*const c_void, &mut LocationInfo),
        ) = unsafe {
            (
                std::mem::transmute::<usize, Walk>(self.debuginfo_extract),
                std::mem::transmute::<usize, Walk>(self.debuginfo_next),
                std::mem::transmute::<usize, extern "C" fn(*const c_void, &mut LocationInfo)>(
                    self.debuginfo_location,
                ),
            )
        };
        // A code is the address of a slot without its lowest bit, which is 0.
        #[expect(clippy::cast_possible_truncation, reason = "it is an address")]
        let mut info = extract(std::ptr::with_exposed_provenance((code << 1) as usize));
        let mut count = 0;
        while !info.is_null() && count < MAX_INLINED {
            let mut raw = LocationInfo::default();
            location(info, &mut raw);
            if let Some(frame) = raw.frame(self.kind) {
                found[count] = frame;
                count += 1;
            }
            info = next(info);
        }
        count
    }
}

/// The runtime's `struct caml_loc_info`.
#[repr(C)]
#[derive(Default)]
struct LocationInfo {
    valid: c_int,
    is_raise: c_int,
    file: usize,
    name: usize,
    /// Line, columns and more, which differ between versions; more room than any needs.
    numbers: [c_int; 12],
}

impl LocationInfo {
    fn frame(&self, kind: Kind) -> Option<Frame<'static>> {
        if self.valid == 0 {
            return None;
        }
        let [line, start, end] = match kind {
            // loc_lnum, loc_startchr, loc_endchr
            Kind::Single => [self.numbers[0], self.numbers[1], self.numbers[2]],
            // start_lnum, start_chr, end_lnum, end_chr, end_offset, which counts from the start
            // of the first line as the other one does
            Kind::Domains { .. } => [self.numbers[0], self.numbers[1], self.numbers[4]],
        };
        Some(Frame {
            file: text(self.file),
            name: text(self.name),
            line: u32::try_from(line).unwrap_or(0),
            start_char: column(start),
            end_char: column(end),
        })
    }
}

fn column(number: c_int) -> u16 {
    u16::try_from(number.max(0)).unwrap_or(u16::MAX)
}

/// A string of the program's debug information.
fn text(address: usize) -> &'static [u8] {
    if address == 0 {
        return b"??";
    }
    // SAFETY: the runtime gave it as a string, and debug information is never unloaded.
    unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(address)) }.to_bytes()
}
