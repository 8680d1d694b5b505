//! The crate of each function.
//!
//! In OCaml programs, whose libraries are known by their top-level modules, it is that module.

use hashbrown::HashMap;

use crate::store::{
    CrateId, DUNE_EXECUTABLE, FileId, FrameId, FunctionId, IdVec, Symbols, is_of_dune_executable,
};

/// The crate of functions of which it is not known.
const NO_CRATE: &str = "(no crate)";

/// The crates of a profile.
#[derive(Debug, Default)]
pub(crate) struct Crates {
    names: IdVec<CrateId, String>,
    of_frame: IdVec<FrameId, CrateId>,
}

impl Crates {
    pub(crate) fn new(symbols: &Symbols) -> Self {
        let mut names = IdVec::default();
        let mut ids: HashMap<String, CrateId> = HashMap::new();
        let mut known: HashMap<(FunctionId, FileId), CrateId> = HashMap::new();
        let of_frame = symbols.frames().iter().map(|frame| {
            let place = (frame.function, frame.file);
            *known.entry(place).or_insert_with(|| {
                let function = &symbols.functions()[frame.function];
                let file = &symbols.files()[frame.file];
                let name = if is_of_dune_executable(&function.raw) {
                    Some(DUNE_EXECUTABLE.to_owned())
                } else {
                    crate_of(&function.name, file)
                };
                let name = name.unwrap_or_else(|| NO_CRATE.to_owned());
                *ids.entry_ref(&name)
                    .or_insert_with(|| names.push(name.clone()))
            })
        });
        let of_frame = of_frame.collect();
        Self { names, of_frame }
    }

    /// All crates.
    pub(crate) fn names(&self) -> &IdVec<CrateId, String> {
        &self.names
    }

    /// The crate of a frame.
    pub(crate) fn id(&self, frame: FrameId) -> CrateId {
        self.of_frame[frame]
    }

    /// The name of a frame's crate.
    pub(crate) fn name(&self, frame: FrameId) -> &str {
        &self.names[self.id(frame)]
    }

    /// For each frame, true if it belongs to the standard library.
    pub(crate) fn in_standard_library(&self) -> IdVec<FrameId, bool> {
        let is_standard = self.names.iter().map(|name| is_standard(name));
        let is_standard: IdVec<CrateId, bool> = is_standard.collect();
        self.of_frame.iter().map(|&id| is_standard[id]).collect()
    }
}

/// Returns true for the crates of Rust's standard library and the modules of OCaml's.
pub(crate) fn is_standard(name: &str) -> bool {
    matches!(name, "std" | "core" | "alloc" | "Stdlib") || name.starts_with("Camlinternal")
}

/// The crate of a function with a readable name, or the top-level module of an OCaml function.
///
/// The path of a function begins with its crate. That of `<Type as Trait>::f` does not tell if the
/// code is in the crate of the type or in that of the trait, but its file may, if it is part of a
/// package. Otherwise it is the first of the two that is not the standard library.
fn crate_of(function: &str, file: &str) -> Option<String> {
    if !function.contains("::") && function.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Some(top_level_module(function).to_owned());
    }
    let named = crates_in(function);
    let package = package_of(file);
    let of_file = package.filter(|package| named.contains(&&**package));
    let own = || named.iter().find(|name| !is_standard(name));
    of_file
        .or_else(|| own().or(named.first()).map(|name| (*name).to_owned()))
        .or_else(|| package_of(file))
}

/// The top-level module of an OCaml function.
fn top_level_module(function: &str) -> &str {
    function.split('.').next().unwrap_or(function)
}

/// The crates that a function's name tells: one for a path, up to two for `<Type as Trait>::f`.
fn crates_in(function: &str) -> Vec<&str> {
    let Some(inner) = function.strip_prefix('<') else {
        return first_segment(function).into_iter().collect();
    };
    let parts = match split_cast(inner) {
        Some((kind, of_trait)) => [Some(kind), Some(of_trait)],
        None => [Some(inner), None],
    };
    let parts = parts.into_iter().flatten();
    parts.filter_map(first_segment).collect()
}

/// Splits `Type as Trait>::f` where the cast is not within generic arguments.
fn split_cast(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            // The arrow of a function type closes nothing.
            '>' if text[..at].ends_with('-') => {}
            '>' | ')' | ']' => depth = depth.checked_sub(1)?,
            ' ' if depth == 0 && text[at..].starts_with(" as ") => {
                return Some((&text[..at], &text[at + " as ".len()..]));
            }
            _ => {}
        }
    }
    None
}

/// The first segment of a path, behind what may precede it in a type: `&mut`, `*const`, `dyn`, `[`.
fn first_segment(path: &str) -> Option<&str> {
    let mut rest = path;
    loop {
        rest = rest.trim_start_matches(['&', '*', '[', '(', '<', ' ']);
        let keyword = ["mut ", "const ", "dyn ", "impl "];
        match keyword.iter().find_map(|word| rest.strip_prefix(word)) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let (name, mut behind) = rest.split_at(end);
    // The hash of a crate: `name[1f2e3d4c]::path`.
    if let Some(hash) = behind.strip_prefix('[') {
        behind = hash.split_once(']').map_or("", |(_, behind)| behind);
    }
    (!name.is_empty() && behind.starts_with("::")).then_some(name)
}

/// The crate of a file in a package of a registry, or in the sources of the standard library. The
/// sampler leaves out the directories that are the same for all.
fn package_of(file: &str) -> Option<String> {
    let behind = |mark: &str| file.split_once(mark).map(|(_, rest)| rest);
    let library = file
        .strip_prefix("library/")
        .or_else(|| {
            file.strip_prefix("/rustc/")?
                .split_once("/library/")
                .map(|(_, rest)| rest)
        })
        .or_else(|| behind("/rustlib/src/rust/library/"));
    if let Some((name, _)) = library.and_then(|rest| rest.split_once('/')) {
        return Some(name.to_owned());
    }
    let package = behind("/registry/src/")
        .and_then(|rest| rest.split_once('/'))
        .map(|(_, rest)| rest)
        .or_else(|| file.strip_prefix("/rust/deps/"))
        .unwrap_or(file);
    let (folder, _) = package.split_once('/')?;
    let (name, _) = folder
        .match_indices('-')
        .map(|(at, _)| (&folder[..at], &folder[at + 1..]))
        .find(|(_, version)| is_version(version))?;
    Some(name.replace('-', "_"))
}

/// Returns true if a file shows that a crate is a dependency: a file of a package with the name of the crate, from a
/// registry, a `vendor` directory, or a repository that cargo has cloned.
pub(crate) fn is_dependency(name: &str, file: &str) -> bool {
    let folder = |mark: &str| {
        let (_, rest) = file.split_once(mark)?;
        rest.split('/')
            .next()
            .map(|folder| folder.replace('-', "_"))
    };
    package_of(file).is_some_and(|package| package == name)
        || folder("vendor/").is_some_and(|folder| folder == name)
        // NAME-HASH, where a repository may have several crates: `tokio` and `tokio_util`.
        || folder("/git/checkouts/").is_some_and(|folder| {
            let (repository, _) = folder.rsplit_once('_').unwrap_or((&folder, ""));
            name.starts_with(repository)
        })
}

/// What the path of an OCaml module's file tells of where the module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModulePlace {
    /// Nothing: the path is relative, as dune has it, for programs and for libraries.
    Unknown,
    /// Neither installed nor in the sources of a package.
    Elsewhere,
    /// An installed library, or the sources of a package.
    Package,
}

/// Tells where an OCaml module is from its file. Compilers are run in the directory of a package, so that only files with
/// whole paths, and copies of packages within a program's sources, tell.
pub(crate) fn module_place(file: &str) -> ModulePlace {
    const PACKAGES: &[&str] = &[
        "/.opam/",
        "/_opam/",
        "/.opam-switch/",
        "/lib/ocaml/",
        "/_build/_private/",
        "/vendor/",
        "/duniverse/",
        "/nix/store/",
    ];
    // Builds of packages, where the program may have been built as well; and dune's name for any workspace.
    const BUILDS: &[&str] = &["/build/", "/builddir/", "/workspace_root/", "/tmp/"];
    // Paths may be relative: `vendor/lwt/src/lwt.ml`.
    let is_in = |folder: &&str| file.contains(folder) || file.starts_with(&folder[1..]);
    if PACKAGES.iter().any(is_in) {
        ModulePlace::Package
    } else if file.starts_with('/') && !BUILDS.iter().any(|build| file.starts_with(build)) {
        ModulePlace::Elsewhere
    } else {
        ModulePlace::Unknown
    }
}

/// Returns true for the versions of packages: `1.0.219`, `0.15.0-alpha.2`.
fn is_version(text: &str) -> bool {
    let numbers = text.split(['-', '+']).next().unwrap_or(text);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numbers.split('.').count() == 3 && numbers.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_with_their_crate() {
        for (function, expected) in [
            ("alloc::vec::Vec<T,A>::push", Some("alloc")),
            ("jaq::main", Some("jaq")),
            ("jaq::run::{{closure}}", Some("jaq")),
            ("jaq::run::{closure#0}::{closure#1}", Some("jaq")),
            ("jaq[1f2e3d4c]::run", Some("jaq")),
            ("core::ptr::drop_in_place<jaq::Filter>", Some("core")),
            ("<jaq::Filter>::new", Some("jaq")),
            (
                "<jaq::Filter<alloc::vec::Vec<u8> as a::B>>::new",
                Some("jaq"),
            ),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
                Some("core"),
            ),
            // Nothing tells.
            ("main", None),
            ("malloc", None),
            ("prog+0x55d6a", None),
            ("0x55d6a", None),
            ("<deeper calls>", None),
            ("{closure#0}", None),
            ("src/cache.rs::new:17", None),
            ("<T as", None),
            ("<", None),
            ("", None),
        ] {
            assert_eq!(
                crate_of(function, "src/main.rs").as_deref(),
                expected,
                "{function}"
            );
        }
    }

    #[test]
    fn implementations_are_in_the_crate_of_the_type_or_of_the_trait() {
        let vec = "<alloc::vec::Vec<T> as serde::ser::Serialize>::serialize";
        for (function, file, expected) in [
            (
                "<jaq::Val as core::clone::Clone>::clone",
                "src/val.rs",
                "jaq",
            ),
            (
                "<jaq::Val as serde::ser::Serialize>::serialize",
                "src/val.rs",
                "jaq",
            ),
            (
                "<jaq::Val as serde::ser::Serialize>::serialize",
                "serde-1.0.219/src/ser/impls.rs",
                "serde",
            ),
            (vec, "src/main.rs", "serde"),
            (vec, "library/alloc/src/vec/mod.rs", "alloc"),
            ("<u8 as jaq::Size>::size", "src/lib.rs", "jaq"),
            ("<&mut jaq::Val as core::fmt::Debug>::fmt", "", "jaq"),
            (
                "<[jaq::Val] as alloc::borrow::ToOwned>::to_owned",
                "",
                "jaq",
            ),
            ("<dyn core::any::Any as core::fmt::Debug>::fmt", "", "core"),
            ("<fn(u8) -> jaq::Val as jaq::Run>::run", "", "jaq"),
            ("<T as core::convert::Into<U>>::into", "", "core"),
            (
                "<alloc::vec::Vec<T> as alloc::vec::spec_extend::SpecExtend<T,I>>::f",
                "",
                "alloc",
            ),
        ] {
            assert_eq!(
                crate_of(function, file).as_deref(),
                Some(expected),
                "{function}"
            );
        }
    }

    #[test]
    fn packages_are_directories_with_a_version() {
        let registry = "/home/me/.cargo/registry/src/index.crates.io-6f17d22bba15001f";
        for (file, expected) in [
            (
                format!("{registry}/tokio-util-0.7.1/src/lib.rs"),
                Some("tokio_util"),
            ),
            (
                format!("{registry}/rand-0.9.0-alpha.2/src/lib.rs"),
                Some("rand"),
            ),
            ("sha-1-0.10.1/src/lib.rs".to_owned(), Some("sha_1")),
            (
                "/rustc/9fc6b431/library/std/src/io/mod.rs".to_owned(),
                Some("std"),
            ),
            (
                "/x/lib/rustlib/src/rust/library/core/src/str.rs".to_owned(),
                Some("core"),
            ),
            (
                "/rust/deps/hashbrown-0.15.2/src/raw/mod.rs".to_owned(),
                Some("hashbrown"),
            ),
            ("src/main.rs".to_owned(), None),
            ("my-project/src/main.rs".to_owned(), None),
            ("/home/me/x-1.0/src/main.rs".to_owned(), None),
            ("library.rs".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(package_of(&file).as_deref(), expected, "{file}");
        }
        // Functions without a path are in the package of their file.
        let found = crate_of("serde-1.0.219/src/de.rs::new:17", "serde-1.0.219/src/de.rs");
        assert_eq!(found.as_deref(), Some("serde"));
    }

    #[test]
    fn dependencies_are_known_by_their_files() {
        let registry = "/home/me/.cargo/registry/src/index.crates.io-6f17d22bba15001f";
        let checkout = "/home/me/.cargo/git/checkouts/tokio-1f2e3d4c/5a6b7c8/tokio-util/src/lib.rs";
        for (name, file, expected) in [
            (
                "serde",
                &*format!("{registry}/serde-1.0.219/src/lib.rs"),
                true,
            ),
            ("serde", "serde-1.0.219/src/lib.rs", true),
            (
                "alloc",
                "/rustc/9fc6b431/library/alloc/src/vec/mod.rs",
                true,
            ),
            ("tokio_util", checkout, true),
            ("serde", "vendor/serde/src/lib.rs", true),
            // A generic function of a dependency, with a type of the program.
            ("jaq", checkout, false),
            (
                "jaq",
                &*format!("{registry}/serde-1.0.219/src/lib.rs"),
                false,
            ),
            ("jaq", "src/main.rs", false),
            ("jaq", "", false),
        ] {
            assert_eq!(is_dependency(name, file), expected, "{name} {file}");
        }
    }

    #[test]
    fn libraries_of_ocaml_are_top_level_modules() {
        for (function, expected) in [
            ("Stdlib.Map.Make.add", Some("Stdlib")),
            ("Mix", Some("Mix")),
            ("Mix.words.(fun)", Some("Mix")),
            ("caml_alloc", None),
        ] {
            assert_eq!(
                crate_of(function, "mix.ml").as_deref(),
                expected,
                "{function}"
            );
        }
    }
}
