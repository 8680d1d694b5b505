//! Programs as Debian ships them: large, stripped, and built by somebody else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::Program;
use crate::toolchain::{compilers, root};

/// A program, its arguments, and what it leaves behind that must be the same.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const CASES: [Case; 6] = [
    ("coqc", &["proofs.v"], &["proofs.vo", "proofs.glob"]),
    ("why3", &["prove", "-D", "why3", "tasks.mlw"], &[]),
    ("frama-c", &["-eva", "-print", "values.c"], &[]),
    ("menhir", &["--list-errors", "grammar.mly"], &[]),
    (
        "ocamlopt.opt",
        &["-c", "-dlambda", "large.ml"],
        &["large.cmx", "large.o"],
    ),
    ("dune", &["rules", "--root", "project"], &[]),
];

#[test]
fn programs_of_debian_do_the_same_and_are_estimated_right() {
    if compilers("programs_of_debian_do_the_same_and_are_estimated_right").is_empty() {
        return;
    }
    for (name, arguments, files) in CASES {
        let prepare = || {
            let folder = tempfile::tempdir().unwrap();
            copy(&root().join("tests/ocaml/debian"), folder.path());
            let program = Program::new(in_path(name))
                .args(arguments)
                .folder(folder.path());
            (folder, program)
        };
        let left_in = |folder: &Path| -> BTreeMap<&str, Vec<u8>> {
            let read = |file| fs::read(folder.join(file)).unwrap();
            files.iter().map(|file| (*file, read(file))).collect()
        };
        let (folder, program) = prepare();
        let (plain, _) = program.plain();
        assert_eq!(plain.status, 0, "{name}: {plain:?}");
        let left = left_in(folder.path());
        let (_folder, program) = prepare();
        let truth = program.words();
        // The first is the rate that users get; smaller programs need a higher one to say much.
        for rate in ["1e-4", "1e-2"] {
            let (folder, program) = prepare();
            let recording = program.record(&["--rate", rate]);
            assert_eq!(
                recording.ended, plain,
                "{name} at {rate}: {}",
                recording.said
            );
            assert_eq!(left_in(folder.path()), left, "{name} at {rate}");
            let trace = recording.read();
            // They do not all allocate exactly the same in every run.
            let slack = truth * 2e-3;
            let words = trace.heap_words();
            let words = if words > truth {
                (words - slack).max(truth)
            } else {
                (words + slack).min(truth)
            };
            trace.assert_near(words, truth, &format!("{name} at {rate}"));
        }
    }
}

fn in_path(name: &str) -> PathBuf {
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is not installed; `cargo xtask ocaml` does that"))
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
