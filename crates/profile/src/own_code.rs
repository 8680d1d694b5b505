//! Tells a program's own code from that of libraries.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::crates::{Crates, is_dependency, is_standard};
use crate::query::Pattern;
use crate::store::{CrateId, FrameId, FunctionId, IdVec, Profile};

/// Top-level modules of common OCaml libraries; `*` stands for any rest of a name. OCaml traces
/// have the file names that the compiler was given, which do not say where a library was installed.
const OCAML_LIBRARIES: &[&str] = &[
    // OCaml itself; `Stdlib` and `Camlinternal*` are standard anyway.
    "Bigarray",
    "Condition",
    "Dynlink",
    "Mutex",
    "Semaphore",
    "Str",
    "Thread",
    "Unix",
    "UnixLabels",
    "Compiler_libs*",
    "Runtime_events",
    // Standard libraries.
    "Base",
    "Base_bigstring",
    "Base_quickcheck",
    "Bat*",
    "CC*",
    "Containers*",
    "Core",
    "Core_kernel*",
    "Core_unix*",
    "ExtLib",
    "Stdio",
    // Concurrency.
    "Async",
    "Async_*",
    "Domainslib",
    "Eio*",
    "Kcas*",
    "Lwt*",
    "Miou*",
    "Picos*",
    "Riot",
    "Saturn*",
    // Formats, parsing, networking.
    "Angstrom",
    "Bin_prot",
    "Cohttp*",
    "Faraday",
    "Httpaf*",
    "MenhirLib",
    "Sexplib*",
    "Yojson*",
    "Ezjsonm",
    "Fmt",
    "Logs",
    "Re",
    "Uutf",
    "Zarith*",
];

/// Functions that are in no crate: those of OCaml's and C's runtimes, and the frame that stands for
/// frames that were not recorded. `*` stands for any rest of a name.
const RUNTIME: &[&str] = &[
    "caml_*",
    "__libc_*",
    "_start",
    "start_thread",
    "clone*",
    "malloc",
    "calloc",
    "realloc",
    "__rust_*",
    "<deeper calls>",
];

/// The distinction between a program's own code and that of libraries, in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct OwnCode {
    /// The patterns of own functions; empty if all code outside of known libraries is own.
    pub mine: Vec<String>,
    /// The libraries found in the trace, by name; empty if there are patterns.
    pub libraries: Vec<String>,
}

/// The own code of a profile: that outside of libraries, or, if there are patterns, functions or
/// crates that match one.
#[derive(Debug)]
pub(crate) struct OwnFrames {
    is_own: IdVec<FrameId, bool>,
    pub(crate) info: OwnCode,
}

impl OwnFrames {
    /// The own code by some patterns, kept for the next report.
    pub(crate) fn shared(profile: &Profile, mine: &[Pattern]) -> Arc<Self> {
        let key = mine.to_vec();
        profile.memo().get(&key, || Self::new(profile, mine))
    }

    fn new(profile: &Profile, mine: &[Pattern]) -> Self {
        let symbols = profile.symbols();
        let crates = Crates::new(symbols);
        let function = |frame: FrameId| &symbols.functions()[symbols.frames()[frame].function];
        if !mine.is_empty() {
            let is_meant = |pattern: &Pattern, name: &str| pattern.matches(name);
            let of_crate: IdVec<CrateId, bool> = crates
                .names()
                .iter()
                .map(|name| mine.iter().any(|pattern| is_meant(pattern, name)))
                .collect();
            // The name of a crate is not taken for the end of that of a function.
            let is_crate = |pattern: &&Pattern| {
                let mut names = crates.names().iter();
                names.any(|name| is_meant(pattern, name))
            };
            let functions = symbols.functions();
            let mut of_function = IdVec::like(functions, false);
            for pattern in mine {
                let matches: IdVec<FunctionId, bool> = if is_crate(&pattern) {
                    let matches = functions.iter();
                    matches
                        .map(|function| pattern.matches_function(function))
                        .collect()
                } else {
                    pattern.functions(functions)
                };
                for (is_own, &matches) in of_function.iter_mut().zip(&matches) {
                    *is_own |= matches;
                }
            }
            let frames = symbols.frames();
            return Self {
                is_own: frames
                    .enumerate()
                    .map(|(frame, info)| of_crate[crates.id(frame)] || of_function[info.function])
                    .collect(),
                info: OwnCode {
                    mine: mine.iter().map(ToString::to_string).collect(),
                    libraries: Vec::new(),
                },
            };
        }
        let mut is_library: IdVec<CrateId, bool> = crates
            .names()
            .iter()
            .map(|name| is_standard(name) || is_listed(name, OCAML_LIBRARIES))
            .collect();
        // A crate is a library if any of its functions is in a package: others may have no file.
        for (frame, info) in symbols.frames().enumerate() {
            if is_dependency(crates.name(frame), &symbols.files()[info.file]) {
                is_library[crates.id(frame)] = true;
            }
        }
        let is_own = symbols.frames().ids().map(|frame| {
            !is_library[crates.id(frame)] && !is_listed(&function(frame).name, RUNTIME)
        });
        let names = crates.names().iter().zip(&is_library);
        let mut libraries: Vec<String> = names
            .filter(|(_, is_library)| **is_library)
            .map(|(name, _)| name.clone())
            .collect();
        libraries.sort();
        Self {
            is_own: is_own.collect(),
            info: OwnCode {
                mine: Vec::new(),
                libraries,
            },
        }
    }

    /// For each frame, true if it is own code.
    pub(crate) fn is_own(&self, frame: FrameId) -> bool {
        self.is_own[frame]
    }
}

/// Returns true if a name is in a list.
fn is_listed(name: &str, list: &[&str]) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *listed,
    })
}
