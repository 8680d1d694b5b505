//! Tells a program's own code from that of libraries.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::crates::{Crates, ModulePlace, is_dependency, is_standard, module_place};
use crate::query::Pattern;
use crate::store::{CrateId, FrameId, FunctionId, IdVec, Profile, Symbols};

/// Top-level modules of common OCaml libraries; `*` stands for nothing, or for a rest that begins a new
/// word: `Lwt*` is `Lwt`, `Lwt_unix` and `LwtLabels`, not `Lwtest`. For modules whose files do not tell whether they
/// belong to an installed library: most have relative paths.
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
    "Batteries*",
    "Containers*",
    "Core",
    "Core_kernel*",
    "Core_unix*",
    "ExtLib",
    "Stdio",
    // Concurrency.
    "Async*",
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

/// The beginnings of the modules of libraries that have no module of their own name, before a capital letter: `BatList` of
/// Batteries and `CCVector` of Containers, but not `Batch` or `CClosure`.
const OCAML_PREFIXES: &[&str] = &["Bat", "CC"];

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
        let is_library = libraries(symbols, &crates, &profile.header().program);
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

/// For each crate, true if it is a library: by where its files are, where they tell, and otherwise by its name.
fn libraries(symbols: &Symbols, crates: &Crates, program: &str) -> IdVec<CrateId, bool> {
    let main = main_module(program);
    let mut is_library = IdVec::like(crates.names(), false);
    let mut module_places = IdVec::like(crates.names(), ModulePlace::Unknown);
    for (frame, info) in symbols.frames().enumerate() {
        let (id, name) = (crates.id(frame), crates.name(frame));
        let file = &symbols.files()[info.file];
        // A crate is a library if any of its functions is in a package: others may have no file.
        if is_dependency(name, file) {
            is_library[id] = true;
        }
        if is_module(name) && !is_standard(name) {
            module_places[id] = module_places[id].max(module_place(file));
        }
    }
    // Where all modules are in packages, so is the program: it was itself built and installed as one.
    let is_apart = crates
        .names()
        .iter()
        .zip(&module_places)
        .any(|(name, &place)| {
            is_module(name) && !is_standard(name) && place != ModulePlace::Package
        });
    for ((is_library, name), &place) in is_library
        .iter_mut()
        .zip(crates.names())
        .zip(&module_places)
    {
        *is_library |= is_standard(name)
            || match place {
                ModulePlace::Package if is_apart => true,
                ModulePlace::Elsewhere => false,
                ModulePlace::Package | ModulePlace::Unknown => {
                    *name != main && is_known_library(name)
                }
            };
    }
    is_library
}

/// The module that an OCaml program is named after: a program `lwt_server` is not a part of Lwt.
fn main_module(program: &str) -> String {
    let file = program.rsplit('/').next().unwrap_or_default();
    let stem = file.split('.').next().unwrap_or_default();
    let mut letters = stem.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Returns true if a crate is a top-level module of OCaml.
fn is_module(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns true for the modules of known libraries.
fn is_known_library(name: &str) -> bool {
    let begins_word = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_lowercase());
    let is_listed = OCAML_LIBRARIES
        .iter()
        .any(|listed| match listed.strip_suffix('*') {
            Some(start) => name.strip_prefix(start).is_some_and(begins_word),
            None => name == *listed,
        });
    let is_capital = |rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase());
    is_listed
        || OCAML_PREFIXES
            .iter()
            .any(|start| name.strip_prefix(start).is_some_and(is_capital))
}

/// Returns true if a name is in a list, where `*` stands for any rest of a name.
fn is_listed(name: &str, list: &[&str]) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *listed,
    })
}
