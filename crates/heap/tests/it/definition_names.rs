//! Names of definitions are the same from the source and from all versions of the compiler.

use std::fs;
use std::path::PathBuf;

use heapline_heap::{Bindings, CmtError};

/// The lines of `cache.ml` with a definition, and its name.
const NAMES: [(u64, &str); 13] = [
    (3, "size"),
    (5, "table"),
    (8, "table"),
    (10, "Nested"),
    (13, "Nested.names"),
    (15, "Nested.Inner"),
    (16, "Nested.Inner.count"),
    (18, "Nested"),
    (20, "Make"),
    (24, "Ten"),
    (26, "Ten"),
    (33, "(first, second)"),
    (35, ""),
];

/// Lines without any.
const NONE: [u64; 4] = [1, 4, 9, 36];

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/cmt"))
}

/// The `.cmt` files, by name.
fn files() -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder()).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cmt"))
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    files.sort_unstable();
    assert!(!files.is_empty());
    files
}

#[track_caller]
fn check(bindings: &Bindings, file: &str, of: &str) {
    for (line, name) in NAMES {
        let found = bindings.at(file, line).map(|found| found.name.as_str());
        assert_eq!(found, Some(name), "{of}, line {line}");
    }
    for line in NONE {
        assert_eq!(bindings.at(file, line), None, "{of}, line {line}");
    }
    assert_eq!(bindings.at(file, 8).map(|found| found.first_line), Some(5));
}

#[test]
fn compilers_say_what_is_where() {
    for (name, file) in files() {
        let bindings = Bindings::of_cmt(&file).unwrap();
        assert_eq!(bindings.unit(), Some("Cache"), "{name}");
        check(&bindings, "src/cache.ml", &name);
        // Only the compiler looks into what is included.
        let included = bindings.at("cache.ml", 29);
        assert_eq!(included.map(|found| found.name.as_str()), Some("included"));
        assert_eq!(bindings.at("other.ml", 5), None);
    }
}

#[test]
fn sources_say_what_is_where() {
    let text = fs::read_to_string(folder().join("cache.ml")).unwrap();
    let bindings = Bindings::of_source(&text);
    assert_eq!(bindings.unit(), None);
    check(&bindings, "cache.ml", "source");
}

#[test]
fn damaged_files_are_refused_or_understood() {
    assert_eq!(Bindings::of_cmt(b""), Err(CmtError::NotCmt));
    assert_eq!(Bindings::of_cmt(b"Caml1999T"), Err(CmtError::NotCmt));
    for (name, file) in files() {
        for len in (0..file.len()).step_by(97) {
            assert!(Bindings::of_cmt(&file[..len]).is_err(), "{name}: {len}");
        }
        for at in (0..file.len()).step_by(13) {
            for byte in [0, 4, 0x90, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                if let Ok(bindings) = Bindings::of_cmt(&damaged) {
                    let _ = bindings.at("cache.ml", 5);
                }
            }
        }
    }
}
