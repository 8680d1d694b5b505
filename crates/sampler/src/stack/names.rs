//! Looks up functions, files and lines of addresses in the debug information of the program.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use addr2line::Loader;
use addr2line::gimli::DW_LANG_Rust;

use super::modules::modules;
use crate::lock::Lock;

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The function, as Rust spells it; empty if nothing is known. If the debug information has no paths
    /// of functions, as with `debug = "line-tables-only"`, inlined functions have their file and line
    /// instead: `src/cache.rs::new:17`.
    pub function: String,
    /// The file; empty if it is not known.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// True if it belongs to the standard library, or to the sampler itself.
    pub is_library: bool,
}

/// Cache of names.
static NAMES: Lock<Option<Names>> = Lock::new(None);

#[derive(Default)]
struct Names {
    /// `None` for what cannot be read.
    files: HashMap<PathBuf, Option<Loader>>,
    frames: HashMap<u64, Arc<[Frame]>>,
}

// SAFETY: a loader has nothing that belongs to a thread; it cannot be shared, which the lock sees to.
unsafe impl Send for Names {}

/// The frames at a return address, the innermost first: a function, and before it those that are
/// inlined there. At least one. The sampler must be at work.
pub(crate) fn resolve(address: u64) -> Arc<[Frame]> {
    let mut names = NAMES.lock();
    let names = names.get_or_insert_default();
    if let Some(frames) = names.frames.get(&address) {
        return frames.clone();
    }
    let Some(frames) = names.look_up(address) else {
        // Not kept: its library may become known.
        return [Frame::new(format!("{address:#x}"), String::new(), 0, 0)].into();
    };
    let frames: Arc<[Frame]> = frames.into();
    names.frames.insert(address, frames.clone());
    frames
}

/// Returns true if the program begins at this frame: outer frames only start it, and are the same
/// in all stacks.
pub(crate) fn is_beginning(frame: &Frame) -> bool {
    frame.function.contains("__rust_begin_short_backtrace")
}

impl Names {
    /// The frames at an address; `None` if it is in no module that is known.
    fn look_up(&mut self, address: u64) -> Option<Vec<Frame>> {
        let (path, place) = modules()?.locate(address)?;
        // The call is before the place to return to.
        let place = place.wrapping_sub(1);
        let file = self
            .files
            .entry(path.to_owned())
            .or_insert_with(|| Loader::new(path).ok());
        let mut frames = file
            .as_ref()
            .map_or_else(Vec::new, |file| lines(file, place));
        if frames.is_empty() {
            let symbol = file.as_ref().and_then(|file| file.find_symbol(place));
            let name = match symbol {
                Some(symbol) => demangled(symbol),
                None => {
                    let name = path.file_name().unwrap_or_default();
                    format!("{}+{place:#x}", name.to_string_lossy())
                }
            };
            frames.push(Frame::new(name, String::new(), 0, 0));
        }
        Some(frames)
    }
}

/// Looks up frames in the debug information.
fn lines(file: &Loader, place: u64) -> Vec<Frame> {
    let mut found = Vec::new();
    let Ok(mut frames) = file.find_frames(place) else {
        return found;
    };
    let mut is_rust = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let location = frame.location.as_ref();
        let function = frame.function.as_ref();
        is_rust.push(function.is_some_and(|name| name.language == Some(DW_LANG_Rust)));
        let function = function.and_then(|name| name.raw_name().ok());
        let function = function.map(|name| demangled(&name)).unwrap_or_default();
        let path = location.and_then(|location| location.file).unwrap_or("");
        found.push(Frame::new(
            function,
            path.to_owned(),
            location.and_then(|location| location.line).unwrap_or(0),
            location.and_then(|location| location.column).unwrap_or(0),
        ));
    }
    // Where there are only line tables, names are without their modules; but that of the function which
    // all is inlined into is also a symbol.
    if let Some(frame) = found.last_mut()
        && !is_qualified(&frame.function)
        && let Some(symbol) = file.find_symbol(place)
    {
        frame.function = demangled(symbol);
    }
    for (frame, is_rust) in found.iter_mut().zip(is_rust) {
        if is_rust && !is_qualified(&frame.function) {
            frame.qualify();
        }
    }
    found
}

/// Returns true if a name has a path, or needs none.
fn is_qualified(function: &str) -> bool {
    // Generic arguments have paths of their own.
    let path = function.split('<').next().unwrap_or(function);
    // `<T as Trait>::f` has no such part, and a function without a name has nothing to tell apart.
    path.is_empty() || path.contains("::")
}

/// Demangles a Rust name, without the hash.
fn demangled(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol))
}

impl Frame {
    fn new(function: String, path: String, line: u32, column: u32) -> Self {
        Self {
            is_library: is_library_code(&function, &path),
            file: shortened(path),
            function,
            line,
            column,
        }
    }

    /// Makes the name of a function without its path unique: reports know functions by their names, and
    /// there are many that are called `new` or `{closure#0}`. The file is in place of the module. The line
    /// is not that of the function, but nothing else tells functions of a file apart.
    fn qualify(&mut self) {
        if !self.file.is_empty() {
            self.function = format!("{}::{}:{}", self.file, self.function, self.line);
        }
    }
}

/// Returns true if code belongs to the standard library or to the sampler.
fn is_library_code(function: &str, path: &str) -> bool {
    // Where the standard library was built, or where its sources are installed.
    if path.starts_with("/rustc/") || path.starts_with("/rust/deps/") {
        return true;
    }
    if path.contains("/lib/rustlib/src/rust/library/") || is_own(path) {
        return true;
    }
    starts_with_crate(function, &["heapline", "__rustc"])
        || function.starts_with("__rust_")
        || function.starts_with("__rg_")
        || calls_back_for_std(function)
        || path.is_empty() && is_library_name(function)
}

/// Returns true for the C functions that the standard library captures backtraces with. They call
/// it back, and it allocates there.
fn calls_back_for_std(function: &str) -> bool {
    function.starts_with("_Unwind_") || function.ends_with("dl_iterate_phdr")
}

/// Returns true if a function belongs to the standard library, judged by its name only.
fn is_library_name(function: &str) -> bool {
    const CRATES: [&str; 4] = ["std", "core", "alloc", "hashbrown"];
    // A trait of the library's for a type that is nobody's: `<u8 as alloc::...>::f`.
    let for_any_type = function.split_once(" as ").is_some_and(|(kind, rest)| {
        function.starts_with('<') && !kind.contains("::") && starts_with_crate(rest, &CRATES)
    });
    for_any_type || starts_with_crate(function, &CRATES)
}

fn starts_with_crate(function: &str, crates: &[&str]) -> bool {
    let function = function.trim_start_matches(['<', '&', '[']);
    let function = function.strip_prefix("mut ").unwrap_or(function);
    crates.iter().any(|name| {
        let rest = function.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with("::"))
    })
}

/// Returns true if a file is one of the sampler's sources, as named by the compiler.
fn is_own(path: &str) -> bool {
    let Some(folder) = file!().strip_suffix("stack/names.rs") else {
        return false;
    };
    match path.split_once(folder) {
        Some((before, _)) => before.is_empty() || before.ends_with('/'),
        None => false,
    }
}

/// Without what is the same for all files of a crate.
fn shortened(path: String) -> String {
    static FOLDER: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::current_dir().ok());
    let after = |mark: &str| path.find(mark).map(|at| at + mark.len());
    // /rustc/HASH/library/...: the hash says nothing that the compiler's version does not.
    if path.starts_with("/rustc/") {
        return path.splitn(4, '/').last().unwrap_or_default().to_owned();
    }
    // .../registry/src/INDEX/serde-1.0.2/...
    if let Some(at) = after("/registry/src/") {
        let rest = &path[at..];
        return rest
            .split_once('/')
            .map_or(rest, |(_, rest)| rest)
            .to_owned();
    }
    let folder = FOLDER.as_deref().unwrap_or(Path::new(""));
    match Path::new(&path).strip_prefix(folder) {
        Ok(short) => short.to_string_lossy().into_owned(),
        Err(_) => path,
    }
}

/// Before a fork.
pub(super) fn hold() {
    NAMES.hold();
}

/// After a fork.
pub(super) fn release() {
    NAMES.release();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_library_and_the_sampler_are_told_from_the_program() {
        let vec = "/rustc/abc/library/alloc/src/vec/mod.rs";
        assert!(is_library_code("alloc::vec::Vec<T,A>::push", vec));
        assert!(is_library_code("<T as core::convert::Into<U>>::into", vec));
        assert!(is_library_code("std::rt::lang_start", ""));
        assert!(is_library_code("__rustc::__rust_alloc", ""));
        assert!(is_library_code(
            "<heapline::alloc::Alloc as X>::alloc",
            "/x"
        ));
        assert!(is_library_code("_Unwind_Backtrace", ""));
        assert!(!is_library_code("leak::fill", "/home/me/leak/src/main.rs"));
        assert!(!is_library_code("stdx::fill", ""));
        assert!(is_library_code(
            "<u8 as alloc::vec::SpecFromElem>::from_elem",
            ""
        ));
        assert!(is_library_code(
            "<&mut alloc::string::String as core::fmt::Write>::write_str",
            ""
        ));
        assert!(!is_library_code(
            "<leak::Question as core::clone::Clone>::clone",
            ""
        ));
    }

    #[test]
    fn names_without_a_path_are_recognised() {
        for name in [
            "leak::fill",
            "<a::T as b::U>::f",
            "<T as U>::f",
            "a::f<T>",
            "",
        ] {
            assert!(is_qualified(name), "{name}");
        }
        for name in ["new", "{closure#0}", "push<alloc::vec::Vec<u8>>"] {
            assert!(!is_qualified(name), "{name}");
        }
    }

    #[test]
    fn paths_are_short() {
        let short = |path: &str| shortened(path.to_owned());
        assert_eq!(
            short("/rustc/abc/library/core/src/x.rs"),
            "library/core/src/x.rs"
        );
        let serde = "/home/me/.cargo/registry/src/index-19/serde-1.0/src/lib.rs";
        assert_eq!(short(serde), "serde-1.0/src/lib.rs");
        let here = std::env::current_dir().unwrap().join("src/main.rs");
        assert_eq!(short(here.to_str().unwrap()), "src/main.rs");
        assert_eq!(short("/somewhere/else.rs"), "/somewhere/else.rs");
    }
}
