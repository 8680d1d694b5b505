//! Where the runtime keeps its data.
//!
//! The runtime exports functions, but the agent also needs fields of its structures, whose offsets differ between
//! versions. All of them are here. Those of OCaml 5's `caml_domain_state` are
//!
//! 1. found by calling functions of the runtime with a state of our own (`probe`),
//! 2. compared with those of the sources of this version (`table`),
//! 3. verified on the state of each domain before it is used ([`Layout::state`]).
//!
//! If any of that fails, nothing is read or written: the user is told why. `heapline attach --explain` prints what was
//! found.

mod calls;
mod probe;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use probe::WORDS as STATE_WORDS;
pub(crate) use table::{CounterOffsets, Offsets, Version};

use std::ffi::CStr;
use std::fmt::{self, Write as _};
use std::sync::OnceLock;

use crate::runtime::{UNIT, Value, symbol};
use probe::Found;

/// OCaml 4: offsets in `Caml_state`, in words.
pub(crate) mod single {
    /// `bottom_of_stack`, which `last_return_address` follows. The first is that of 4.12 to 4.14, the second that of
    /// 4.11. Verified by looking up the return address.
    pub(crate) const BOTTOM_OF_STACK: [usize; 2] = [26, 25];

    /// The counters of the collector, which follow each other.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Statistics {
        /// `stat_minor_words`, a double, as the next two are. Verified with `caml_gc_minor_words_unboxed`.
        pub(crate) minor_words: usize,
        /// 4.11 has no `stat_forced_major_collections`.
        pub(crate) has_forced: bool,
    }

    impl Statistics {
        pub(crate) const PROMOTED_WORDS: usize = 1;
        pub(crate) const MAJOR_WORDS: usize = 2;
        pub(crate) const MINOR_COLLECTIONS: usize = 3;
        pub(crate) const MAJOR_COLLECTIONS: usize = 4;
        pub(crate) const HEAP_WORDS: usize = 5;
        pub(crate) const TOP_HEAP_WORDS: usize = 6;
        pub(crate) const COMPACTIONS: usize = 7;
        pub(crate) const FORCED_MAJOR_COLLECTIONS: usize = 8;

        /// Those of the version that has these functions.
        pub(crate) fn of(has: impl Fn(&std::ffi::CStr) -> bool) -> Self {
            // 4.11
            let is_first = has(c"caml_memprof_suspended");
            Self {
                minor_words: if is_first { 36 } else { 37 },
                has_forced: !is_first,
            }
        }
    }

    /// From `user_data` to other fields of `struct tracked`, in words.
    pub(crate) mod tracked {
        pub(crate) const BLOCK: isize = -3;
        pub(crate) const SAMPLES: isize = -2;
        pub(crate) const WORDS: isize = -1;
    }
}

/// OCaml 5: offsets in the stack of a fiber, in words, the same in 5.3 to 5.5. Verified on the current stack.
pub(crate) mod fiber {
    /// `current_stack` in `caml_domain_state`
    pub(crate) const CURRENT_STACK: usize = 5;
    /// `handler` in `struct stack_info`, of which `sp` comes first.
    pub(crate) const HANDLER: usize = 2;
    /// `parent` in `struct stack_handler`
    pub(crate) const PARENT: usize = 3;
}

/// OCaml 5: offsets in the data of a domain's sampler, in words, the same in 5.3 to 5.5. Verified on a new sampler.
pub(crate) mod sampler {
    use std::ops::Range;

    /// The configuration, in `struct memprof_domain_s`, which begins with the state of the domain.
    pub(crate) const CONFIG: usize = 8;
    pub(super) const THREADS: usize = 11;
    pub(crate) const CURRENT_THREAD: usize = 12;
    /// The state of its random numbers: 4 times 64 numbers of 32 bits.
    pub(crate) const RANDOM: Range<usize> = 15..143;
    pub(crate) type RandomNumbers = [usize; RANDOM.end - RANDOM.start];
    /// In `struct memprof_thread_s`, which begins with the flag `suspended`.
    pub(super) const THREAD_CONFIG: usize = 10;
    pub(super) const THREAD_DOMAIN: usize = 11;

    /// In place of a configuration: there is none.
    pub(crate) const NO_CONFIG: usize = 1;

    /// The fields of a configuration, which is an OCaml block.
    pub(crate) mod config {
        /// Their number.
        pub(crate) const FIELDS: usize = 9;
        pub(crate) const STATUS: usize = 0;
        pub(crate) const ALLOC_MINOR: usize = 4;
    }

    /// From `user_data` to other fields of `struct entry_s`, in words.
    pub(crate) mod entry {
        pub(crate) const BLOCK: isize = -1;
        pub(crate) const SAMPLES: isize = 1;
        pub(crate) const WORDS: isize = 2;
    }
}

/// OCaml 5: the layout of `caml_domain_state`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    version: Version,
    offsets: Offsets,
    domain_id: extern "C" fn(Value) -> Value,
    domain_index: extern "C" fn(Value) -> Value,
}

/// The reason why a layout is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A version without a table.
    UnknownVersion(String),
    /// A function that is needed to find the layout is missing.
    Missing(Version, &'static CStr),
    /// The function that uses a field does not use any word of a state.
    NotFound(Version, &'static str),
    /// A field is not where the sources have it.
    Moved {
        version: Version,
        field: &'static str,
        found: usize,
        expected: usize,
    },
    /// The data of samplers are others.
    Sampler(Version),
    /// The state of a domain is not as the layout says.
    Unverified(Version),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what_to_do = "`heapline record` works; attaching and snapshots need a newer heapline";
        let of = |version: &Version| match full_version() {
            Some(name) => name,
            None => version.to_string(),
        };
        match self {
            Self::UnknownVersion(name) => write!(
                f,
                "the program was built with OCaml {name}, whose runtime this heapline does not know; {what_to_do}"
            ),
            Self::Missing(version, name) => write!(
                f,
                "the program's OCaml runtime (like that of {}) has no {}; {what_to_do}",
                of(version),
                name.to_string_lossy()
            ),
            Self::NotFound(version, field) => write!(
                f,
                "cannot find {field} in the program's OCaml runtime (like that of {}); {what_to_do}",
                of(version)
            ),
            Self::Moved {
                version,
                field,
                found,
                expected,
            } => write!(
                f,
                "the program's OCaml runtime (like that of {}) has {field} at word {found} of its domain state, not at \
                 {expected}: it was changed, or is a newer one; {what_to_do}",
                of(version)
            ),
            Self::Sampler(version) => write!(
                f,
                "the sampler of the program's OCaml runtime (like that of {}) has data that this heapline does not \
                 know; {what_to_do}",
                of(version)
            ),
            Self::Unverified(version) => write!(
                f,
                "the domain state of the program's OCaml runtime (like that of {}) is not as heapline expects it; \
                 {what_to_do}",
                of(version)
            ),
        }
    }
}

static LAYOUT: OnceLock<Result<Layout, Refusal>> = OnceLock::new();

/// The layout, which is looked for at the first call.
///
/// # Safety
///
/// The runtime is one of OCaml 5.3 or later. At the first call it is up, and this thread is not in its code, but at
/// a safe point, in OCaml code or in a system call.
pub(crate) unsafe fn get() -> Result<&'static Layout, &'static Refusal> {
    // SAFETY: as the caller's; others wait.
    LAYOUT.get_or_init(|| unsafe { Layout::find() }).as_ref()
}

/// The layout, if it was looked for and found.
pub(crate) fn known() -> Option<&'static Layout> {
    LAYOUT.get()?.as_ref().ok()
}

/// The refusal of a domain whose state does not have the layout.
pub(crate) fn unverified() -> Option<Refusal> {
    known().map(|layout| Refusal::Unverified(layout.version))
}

impl Layout {
    /// # Safety
    ///
    /// As for [`get`].
    unsafe fn find() -> Result<Self, Refusal> {
        let version = Version::of(|name| symbol(name).is_some());
        if let Some(name) = full_version()
            && Version::named(&name) != Some(version)
        {
            // Nothing is called in a runtime whose functions may do something else.
            return Err(Refusal::UnknownVersion(name));
        }
        let needed = |name| symbol(name).ok_or(Refusal::Missing(version, name));
        let [id, index] = [
            needed(c"caml_ml_domain_id")?,
            needed(c"caml_ml_domain_index")?,
        ];
        // SAFETY: as the caller's.
        let runtime = unsafe { calls::Runtime::new() };
        let runtime = runtime.ok_or(Refusal::Missing(version, c"caml_state"))?;
        let offsets = check(version, probe::find(&runtime))?;
        // SAFETY: those are their types.
        let layout = unsafe {
            Self {
                version,
                offsets,
                domain_id: std::mem::transmute::<usize, extern "C" fn(Value) -> Value>(id),
                domain_index: std::mem::transmute::<usize, extern "C" fn(Value) -> Value>(index),
            }
        };
        // SAFETY: a thread that has a state runs a domain.
        if !runtime.state().is_null() && unsafe { layout.state() }.is_none() {
            return Err(Refusal::Unverified(version));
        }
        Ok(layout)
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    /// The random numbers of a sampler with a seed.
    pub(crate) fn random_numbers(&self, seed: i32) -> Option<sampler::RandomNumbers> {
        // SAFETY: the layout was found in the runtime of this process; samplers are made at any time.
        let runtime = unsafe { calls::Runtime::new() }?;
        probe::random_numbers(&runtime, self.offsets.id, self.offsets.memprof, seed)
    }

    /// The number of this domain, which no other has.
    ///
    /// # Safety
    ///
    /// This thread runs a domain.
    pub(crate) unsafe fn unique_id(&self) -> usize {
        (self.domain_id)(UNIT) >> 1
    }

    /// The state of the domain that this thread runs, if it has this layout.
    ///
    /// # Safety
    ///
    /// This thread runs a domain, or has no domain state.
    pub(crate) unsafe fn state(&self) -> Option<*mut usize> {
        // A symbol of a thread's own: what is found is that of this one.
        let variable = symbol(c"caml_state")?;
        // SAFETY: it is a variable that holds the address of the domain's state.
        let state = unsafe { *std::ptr::with_exposed_provenance::<*mut usize>(variable) };
        if state.is_null() {
            return None;
        }
        let numbers = [self.domain_index, self.domain_id].map(|function| function(UNIT) >> 1);
        // SAFETY: states have at least as many words as the offsets need. The sampler is read only if the numbers are
        // where they should be.
        let word = |address: usize| unsafe { *std::ptr::with_exposed_provenance(address) };
        is_state(&self.offsets, state.expose_provenance(), numbers, word).then_some(state)
    }

    /// Describes what was found.
    fn describe(&self) -> String {
        let Offsets {
            action_pending,
            ephe_info,
            final_info,
            external_interrupt,
            id,
            unique_id,
            memprof,
        } = self.offsets;
        let version = self.version;
        let mut text = String::new();
        let fields = [
            ("action_pending", action_pending, "caml_set_action_pending"),
            ("ephe_info", ephe_info, "the word before final_info"),
            ("final_info", final_info, "caml_final_do_roots"),
            (
                "requested_external_interrupt",
                external_interrupt,
                "caml_process_external_interrupt",
            ),
            ("id", id, "caml_memprof_new_domain, Domain.self_index"),
            ("unique_id", unique_id, "Domain.self"),
            ("memprof", memprof, "caml_memprof_new_domain, points back"),
        ];
        let _ = writeln!(text, "caml_domain_state as in OCaml {version}:");
        for (name, word, how) in fields {
            let _ = writeln!(text, "  word {word:>3}  {name:28}  {how}");
        }
        text
    }
}

/// Compares what was found with the sources.
fn check(version: Version, found: Found) -> Result<Offsets, Refusal> {
    let offsets = version.offsets();
    let fields = [
        (
            "action_pending",
            found.action_pending,
            offsets.action_pending,
        ),
        ("memprof", found.memprof, offsets.memprof),
        ("id", found.id, offsets.id),
        (
            "requested_external_interrupt",
            found.external_interrupt,
            offsets.external_interrupt,
        ),
        ("final_info", found.final_info, offsets.final_info),
    ];
    for (field, found, expected) in fields {
        let found = found.ok_or(Refusal::NotFound(version, field))?;
        if found != expected {
            return Err(Refusal::Moved {
                version,
                field,
                found,
                expected,
            });
        }
    }
    if !found.has_known_sampler {
        return Err(Refusal::Sampler(version));
    }
    Ok(offsets)
}

/// Returns true if a state has a layout: the numbers of the domain, its index and its unique number, are in it, and its
/// sampler points back.
fn is_state(
    offsets: &Offsets,
    state: usize,
    numbers: [usize; 2],
    word: impl Fn(usize) -> usize,
) -> bool {
    // The numbers have 32 bits.
    let number = |n: usize| word(state + 8 * n) & 0xffff_ffff;
    let memprof = || word(state + 8 * offsets.memprof);
    [number(offsets.id), number(offsets.unique_id)] == numbers
        && memprof() != 0
        && memprof().is_multiple_of(8)
        && word(memprof()) == state
}

/// What `Sys.ocaml_version` is; `None` if the program does not have that module, or has not initialised it.
fn full_version() -> Option<String> {
    /// Fields of the module that are looked at.
    const FIELDS: usize = 64;
    /// The lower bits of the header of a string (tag 252) that is not in the heap (colour 3), where it could be moved.
    const STRING: usize = 0x3fc;
    let module = symbol(c"camlStdlib__Sys")?;
    // SAFETY: it is a module's block, whose fields are OCaml values; blocks have a header before them, and strings
    // end in NUL.
    unsafe {
        let word = |address: usize| *std::ptr::with_exposed_provenance::<usize>(address);
        let fields = (word(module - 8) << 8 >> 18).min(FIELDS);
        let values = (0..fields).map(|n| word(module + 8 * n));
        let mut strings = values
            .filter(|value| *value != 0 && value.is_multiple_of(8))
            .filter(|value| word(value - 8) & 0x3ff == STRING)
            .map(|value| CStr::from_ptr(std::ptr::with_exposed_provenance(value)));
        strings.find_map(|string| {
            let text = string.to_str().ok()?;
            let mut parts = text.split(['.', '+', '~', '-']);
            let mut is_number = || parts.next()?.parse::<u8>().ok();
            (is_number().is_some() && is_number().is_some()).then(|| text.to_owned())
        })
    }
}

/// Describes the runtime of this process, and what was found in it, if that is known.
///
/// # Safety
///
/// This thread runs a domain, or has no domain state.
pub(crate) unsafe fn explain() -> String {
    let mut text = String::new();
    if let Some(name) = full_version() {
        let _ = writeln!(text, "OCaml {name}");
    }
    if let Some(layout) = known() {
        text.push_str(&layout.describe());
        // SAFETY: as the caller's.
        let is_verified = unsafe { layout.state() }.is_some();
        text.push_str(if is_verified {
            "verified on the state of a domain"
        } else {
            "to be verified when the program next runs OCaml code"
        });
    }
    text
}
