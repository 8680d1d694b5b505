//! Large programs that somebody else built: stripped ones of Debian, and the compiler of OCaml 5.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::Program;
use crate::toolchain::{compilers, root, with_domains};

/// A program, its arguments, and what it leaves behind that must be the same.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const COMPILER: Case = (
    "ocamlopt.opt",
    &["-c", "-dlambda", "large.ml"],
    &["large.cmx", "large.o"],
);

const CASES: [Case; 6] = [
    ("coqc", &["proofs.v"], &["proofs.vo", "proofs.glob"]),
    ("why3", &["prove", "-D", "why3", "tasks.mlw"], &[]),
    ("frama-c", &["-eva", "-print", "values.c"], &[]),
    ("menhir", &["--list-errors", "grammar.mly"], &[]),
    ("dune", &["rules", "--root", "project"], &[]),
    COMPILER,
];

#[test]
fn programs_of_debian_do_the_same_and_are_estimated_right() {
    if compilers("programs_of_debian_do_the_same_and_are_estimated_right").is_empty() {
        return;
    }
    for case in CASES {
        check(&Program::new(in_path(case.0)), case);
    }
}

#[test]
fn a_large_program_of_ocaml_5_does_the_same_and_is_estimated_right() {
    for compiler in with_domains("a_large_program_of_ocaml_5_does_the_same") {
        let program = Program::new(compiler.native()).env("OCAMLLIB", &compiler.libraries());
        check(&program, COMPILER);
    }
}

fn check(program: &Program, (name, arguments, files): Case) {
    // In the same folder each time, which some print, with what is in it as it was.
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("work");
    let run = |what: &mut dyn FnMut(Program)| -> BTreeMap<&str, Vec<u8>> {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        copy(&root().join("tests/ocaml/debian"), &folder);
        what(program.clone().args(arguments).folder(&folder));
        let read = |file| fs::read(folder.join(file)).unwrap();
        files.iter().map(|file| (*file, read(file))).collect()
    };
    let (mut plain, mut truth) = (None, 0.0);
    let left = run(&mut |program| plain = Some(program.plain().0));
    run(&mut |program| truth = program.words());
    let plain = plain.unwrap();
    assert_eq!(plain.status, 0, "{name}: {plain:?}");
    // The first is the rate that users get; smaller programs need a higher one to say much.
    for rate in ["1e-4", "1e-2"] {
        let left_now = run(&mut |program| {
            let what = format!("{name} at {rate}");
            let recording = program.record(&["--rate", rate]);
            assert_eq!(recording.ended, plain, "{what}: {}", recording.said);
            let trace = recording.read();
            // They do not all allocate exactly the same in every run.
            let slack = truth * 2e-3;
            let miss = trace.heap_words() - truth;
            let miss = miss.signum() * (miss.abs() - slack).max(0.0);
            trace.assert_near(truth + miss, truth, &what);
        });
        assert_eq!(left_now, left, "{name} at {rate}");
    }
    run(&mut |program| {
        let recording = program.with_checked_stacks().record(&["--rate", "1e-3"]);
        assert_eq!(recording.ended, plain, "{name}: {}", recording.said);
        assert!(recording.equal_stacks() > 0, "{name}");
    });
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
