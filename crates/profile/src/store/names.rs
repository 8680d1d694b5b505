//! OCaml's names as people write them.

/// Stands for a file that is not known.
pub(crate) const UNKNOWN_FILE: &str = "(unknown file)";
/// The module of functions whose names do not tell.
pub(crate) const NO_MODULE: &str = "(no module)";

/// A function's name with the modules that the build system mangled taken apart:
/// `Stdlib__List.map` is `Stdlib.List.map`.
///
/// Only names of modules are mangled, and they begin with a capital letter. Modules of executables that dune builds are named without
/// the module `Dune.exe`, which all of them are in.
pub(crate) fn readable(raw: &str) -> String {
    let name = separated(raw);
    match name
        .strip_prefix(DUNE_EXECUTABLE)
        .and_then(|rest| rest.strip_prefix('.'))
    {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => name,
    }
}

/// The module that dune puts those of an executable into.
pub(crate) const DUNE_EXECUTABLE: &str = "Dune.exe";

/// Returns true if a function with this raw name is in an executable that dune has built.
pub(crate) fn is_of_dune_executable(raw: &str) -> bool {
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with('.') || rest.starts_with("__");
    ["Dune__exe", DUNE_EXECUTABLE]
        .iter()
        .any(|prefix| raw.strip_prefix(prefix).is_some_and(is_end))
}

/// A function's name with its modules taken apart.
fn separated(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for (i, part) in raw.split('.').enumerate() {
        if i > 0 {
            out.push('.');
        }
        if !part.starts_with(|c: char| c.is_ascii_uppercase()) {
            out.push_str(part);
            continue;
        }
        let mut rest = part;
        // A leading or trailing `__` belongs to the name: `Foo__` is the alias module of a library.
        while let Some(at) = rest.find("__").filter(|&at| at > 0 && at + 2 < rest.len()) {
            push_module(&mut out, &rest[..at]);
            out.push('.');
            rest = rest[at..].trim_start_matches('_');
        }
        push_module(&mut out, rest);
    }
    out
}

/// Modules are named after their files, whose names may be in lower case: `Stdlib__list`. Only
/// dune's `exe` is not the name of a module.
fn push_module(out: &mut String, name: &str) {
    let mut rest = name.chars();
    match rest.next() {
        Some(first) if name != "exe" => {
            out.push(first.to_ascii_uppercase());
            out.push_str(rest.as_str());
        }
        _ => out.push_str(name),
    }
}

/// The module of a function with a readable name: all of it up to the first part that is not a
/// module; for the names of other languages, what comes before the last `::`. What runs when a
/// module is loaded has the name of the module.
pub(crate) fn module(name: &str) -> Option<&str> {
    let mut end = 0;
    for part in name.split('.') {
        if !part.starts_with(|c: char| c.is_ascii_uppercase()) && part != "exe" {
            break;
        }
        end += part.len() + 1;
    }
    if end > 0 {
        return Some(&name[..end - 1]);
    }
    // Generic arguments have paths of their own.
    let path = name.split('<').next().unwrap_or(name);
    path.rsplit_once("::").map(|(module, _)| module)
}

/// Returns true if a function has no name of its own, so that others share the one it is given.
pub(crate) fn is_anonymous(name: &str) -> bool {
    name.contains("(fun)") || name.contains("{{closure}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_modules_are_taken_apart() {
        for (raw, expected) in [
            ("Stdlib__List.map", "Stdlib.List.map"),
            ("Stdlib__list.map", "Stdlib.List.map"),
            ("Dune__exe__Main.run", "Main.run"),
            ("Dune__exe.Main.run", "Main.run"),
            ("Dune__exe", "Dune.exe"),
            ("Dune__exercise__Main.run", "Dune.Exercise.Main.run"),
            ("Foo__.bar", "Foo__.bar"),
            ("Parser.my__helper", "Parser.my__helper"),
            ("A__B.Make.f.(fun)", "A.B.Make.f.(fun)"),
            ("Coq___Lib.f", "Coq.Lib.f"),
            ("__.f", "__.f"),
            ("??", "??"),
            ("", ""),
        ] {
            assert_eq!(readable(raw), expected);
        }
    }

    #[test]
    fn functions_of_dune_executables_are_known_by_their_raw_name() {
        for (raw, expected) in [
            ("Dune__exe__Main.run", true),
            ("Dune__exe", true),
            ("Dune.exe.Main.run", true),
            ("Dune__exercise__Main.run", false),
            ("Main.run", false),
        ] {
            assert_eq!(is_of_dune_executable(raw), expected, "{raw}");
        }
    }

    #[test]
    fn modules_are_what_functions_are_in() {
        for (name, expected) in [
            ("Stdlib.List.map", Some("Stdlib.List")),
            ("M.Make.f.(fun)", Some("M.Make")),
            ("Main.entry", Some("Main")),
            ("Main", Some("Main")),
            ("A.B", Some("A.B")),
            ("caml_alloc", None),
            ("alloc::vec::Vec<T>::push", Some("alloc::vec")),
            ("??", None),
            ("", None),
        ] {
            assert_eq!(module(name), expected, "{name}");
        }
    }
}
