//! Large programs that somebody else built: stripped ones of Debian, the compiler of OCaml 5, and programs built with OCaml 5.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::attach::{Running, assert_undisturbed, attach_until, is_any};
use crate::run::{Program, heapline};
use crate::toolchain::{compilers, root, with_domains};
use crate::trace::Trace;

/// The directory of programs that were built with OCaml 5. `cargo xtask ocaml` prints it.
const PROGRAMS: &str = "HEAPLINE_OCAML_PROGRAMS";

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

/// The programs built with OCaml 5, and what each does.
const CASES_OF_OCAML_5: [Case; 5] = [
    // Eio, io_uring, and a domain that does nearly all of the work.
    (
        "semgrep-core",
        &[
            "-rules",
            "rules.yml",
            "-lang",
            "ocaml",
            "-j",
            "1",
            "large.ml",
        ],
        &[],
    ),
    // The prover itself, which `coqc` executes since Rocq 9: effects, much unmarshalling, plug-ins.
    (
        "rocqworker",
        &["--kind=compile", "-q", "-w", "none", "proofs.v"],
        &["proofs.vo", "proofs.glob"],
    ),
    ("haxe", &["-main", "Main", "-js", "main.js"], &["main.js"]),
    // Servers with clients of their own: in two domains, and in one.
    ("eio_server", &["10", "100"], &[]),
    ("lwt_server", &["10", "100"], &[]),
];

/// The directory of programs built with OCaml 5; `None` where they are not set up.
fn programs_of_ocaml_5(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(PROGRAMS).map(PathBuf::from);
    if folder.is_none() {
        heapline_testkit::missing(&format!(
            "{test}: {PROGRAMS} is not set; `cargo xtask ocaml` sets them up"
        ));
    }
    folder
}

#[test]
fn programs_built_with_ocaml_5_do_the_same_and_are_estimated_right() {
    let test = "programs_built_with_ocaml_5_do_the_same_and_are_estimated_right";
    let Some(folder) = programs_of_ocaml_5(test) else {
        return;
    };
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    for case in CASES_OF_OCAML_5 {
        let program = Program::new(folder.join(case.0).canonicalize().unwrap())
            .env("ROCQLIB", &path("rocq"))
            .env("HAXE_STD_PATH", &path("haxe-std"));
        check(&program, case);
    }
}

#[test]
fn servers_on_eio_and_lwt_are_attached_to_and_have_snapshots() {
    let Some(folder) = programs_of_ocaml_5("servers_on_eio_and_lwt_are_attached_to") else {
        return;
    };
    for (name, clients, domains) in [("eio_server", 8, 2), ("lwt_server", 4, 1)] {
        let program = folder.join(name);
        let running = Running::start(&program, &[]);
        let trace = running.folder.path().join("trace.ctf");
        let options = ["--rate", "1e-3", "--force", "-o", trace.to_str().unwrap()];
        for _ in 0..3 {
            let has_all = |trace: &Trace| trace.words_by_domain().len() == domains;
            attach_until(
                &trace,
                |trace| is_any(trace) && has_all(trace),
                |period| running.attach(&[&["--for", period], &options[..]].concat()),
            );
            let file = running.folder.path().join("snapshot.heap");
            let output = heapline()
                .args(["snapshot", &running.pid().to_string(), "--force", "-o"])
                .arg(&file)
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: {output:?}");
            let file = fs::File::open(file).unwrap();
            let graph = heapline_heap::Graph::read(std::io::BufReader::new(file)).unwrap();
            assert_eq!(graph.damage().total(), 0, "{name}");
            // The parts of a server, and of its clients, are closures.
            let closures = (0..graph.blocks()).filter(|node| graph.tag(*node) == Some(247));
            assert!(closures.count() > 100, "{name}");
        }
        assert_undisturbed(&program, &running.finish(), clients);
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
            // They do not all allocate exactly the same in every run. Domains that have ended are not in what the
            // runtime tells.
            let slack = truth * 2e-3;
            let miss = trace.words_of_domain(0) - truth;
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
