//! Programs for arm64 are recorded in an emulator, with an agent that was built for it. The trace is read here.
//!
//! Traces and snapshots do not depend on the processor, and neither does the socket of a program that waits for `heapline
//! attach`. The emulator has no ptrace: what attaching does by that has unit tests in `heapline-attach`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::attach::said;
use crate::run::{Program, heapline};
use crate::snapshot;
use crate::stacks::equal_stacks;
use crate::support_table;
use crate::toolchain::Compiler;
use crate::trace::Trace;

/// `ocamlopt` programs that compile for arm64, as a list like that of `PATH`, and the agent. `cargo xtask test arm64` sets both.
const COMPILERS: &str = "HEAPLINE_ARM64_OCAMLOPT";
const AGENT: &str = "HEAPLINE_ARM64_AGENT";

/// The compilers; none where they are not set up.
fn compilers(test: &str) -> &'static [Compiler] {
    static ALL: OnceLock<Vec<Compiler>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        std::env::split_paths(&std::env::var_os(COMPILERS).unwrap_or_default())
            .filter(|path| !path.as_os_str().is_empty())
            .map(Compiler::for_arm64)
            .collect()
    });
    if all.is_empty() {
        heapline_testkit::missing(&format!(
            "{test}: {COMPILERS} names no OCaml compilers; `cargo xtask test arm64` sets them up"
        ));
    }
    all
}

/// The directory with the packages of a compiler, which has its `ocamlopt` in `tools`.
fn root(compiler: &Compiler) -> &Path {
    compiler.path.ancestors().nth(2).unwrap()
}

/// A program of a compiler in the emulator, with variables that only the program gets, not the emulator.
fn emulated(compiler: &Compiler, program: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new("qemu-aarch64");
    command.arg("-L").arg(root(compiler));
    for (name, value) in variables {
        command.arg("-E").arg(format!("{name}={value}"));
    }
    command.arg(program);
    command
}

/// The words that the runtime itself has counted.
fn words(compiler: &Compiler, program: &Path, arguments: &[&str], folder: &Path) -> f64 {
    let root = root(compiler).to_str().unwrap();
    Program::new("qemu-aarch64")
        .args(&["-L", root, program.to_str().unwrap()])
        .args(arguments)
        .folder(folder)
        .words()
}

fn agent() -> String {
    std::env::var(AGENT).unwrap_or_else(|_| panic!("{AGENT} is set where {COMPILERS} is"))
}

/// A recording: the trace, the stacks that were compared, and what the program printed.
fn record(
    compiler: &Compiler,
    program: &Path,
    arguments: &[&str],
    folder: &Path,
    settings: &[(&str, &str)],
) -> (Trace, u64, String) {
    // A trace is not overwritten.
    let place = tempfile::tempdir_in(folder).unwrap();
    let trace = place.path().join("trace.ctf");
    let agent = agent();
    let variables = [
        ("LD_PRELOAD", agent.as_str()),
        // The agent looks for a prefix to see whether it is to record.
        ("HEAPLINE_PREFIX", trace.to_str().unwrap()),
        ("HEAPLINE_TRACE", trace.to_str().unwrap()),
        ("HEAPLINE_STACKS", "check"),
    ];
    let output = emulated(compiler, program, &[&variables, settings].concat())
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let what = format!(
        "{} {}: {}",
        compiler.version,
        program.display(),
        said(&output)
    );
    assert!(output.status.success(), "{what}");
    let stacks = equal_stacks(&String::from_utf8_lossy(&output.stderr));
    (
        Trace::strict(&trace),
        stacks,
        String::from_utf8(output.stdout).unwrap(),
    )
}

/// Attaching to programs that were not started for it needs ptrace, which the emulator does not have.
#[test]
fn the_readme_says_what_works() {
    let checks = [
        Some(check_recording as fn(&Compiler)),
        None,
        Some(check_attaching),
        None,
        Some(check_end),
    ];
    support_table::check_rows(
        "arm64 Linux",
        compilers("the_readme_says_what_works"),
        checks,
    );
}

/// Estimates and stacks are right.
fn check_recording(compiler: &Compiler) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["exceptions", "deep"] {
        let program = compiler.program(name);
        let truth = words(compiler, &program, &[], folder.path());
        let rate = [("HEAPLINE_RATE", "1e-2")];
        let (trace, stacks, _) = record(compiler, &program, &[], folder.path(), &rate);
        let what = format!("{name} (OCaml {})", compiler.version);
        trace.assert_near(trace.heap_words(), truth, &what);
        assert_eq!(trace.without_stack, 0, "{what}");
        assert!(stacks > 500, "{what}: {stacks}");
    }
}

#[test]
fn a_large_program_is_recorded() {
    for compiler in compilers("a_large_program_is_recorded") {
        let folder = tempfile::tempdir().unwrap();
        let source = compiler.program("sites").with_extension("ml");
        fs::copy(source, folder.path().join("sites.ml")).unwrap();
        let program = root(compiler).join("usr/bin/ocamlopt.opt");
        let library = ["-nostdlib", "-I", &compiler.libraries()].map(str::to_owned);
        let mut arguments: Vec<&str> = library.iter().map(String::as_str).collect();
        arguments.extend(["-g", "-c", "sites.ml"]);
        let truth = words(compiler, &program, &arguments, folder.path());
        let rate = [("HEAPLINE_RATE", "1e-2")];
        let (trace, stacks, _) = record(compiler, &program, &arguments, folder.path(), &rate);
        trace.assert_near(trace.heap_words(), truth, &compiler.version);
        assert!(stacks > 10_000, "{}: {stacks}", compiler.version);
    }
}

#[test]
fn stacks_of_domains_and_fibers_are_right() {
    let all = compilers("stacks_of_domains_and_fibers_are_right");
    for compiler in all.iter().filter(|compiler| compiler.is_5()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["effects", "domains", "short"] {
            let program = compiler.program(&format!("ocaml5/{name}"));
            let rate = [("HEAPLINE_RATE", "1e-2")];
            let (trace, stacks, _) = record(compiler, &program, &[], folder.path(), &rate);
            let what = format!("{name} (OCaml {})", compiler.version);
            assert_eq!(trace.without_stack, 0, "{what}");
            assert!(stacks > 100, "{what}: {stacks}");
        }
    }
}

/// The snapshot of the end of a program has what it reaches.
fn check_end(compiler: &Compiler) {
    let folder = tempfile::tempdir().unwrap();
    let [stop, file] = ["stop", "end.heap"].map(|name| {
        let path = folder.path().join(name);
        path.to_str().unwrap().to_owned()
    });
    File::create(&stop).unwrap();
    let settings = [
        ("HEAPLINE_RATE", "1e-3"),
        ("HEAPLINE_EXIT_SNAPSHOT", file.as_str()),
    ];
    let program = compiler.program("heap");
    let arguments = [stop.as_str(), "10000"];
    let (_, _, said) = record(compiler, &program, &arguments, folder.path(), &settings);
    let graph = snapshot::read(Path::new(&file));
    snapshot::check_graph(&graph, &said, compiler);
}

/// A program that waits is attached to, and a snapshot of it is taken.
fn check_attaching(compiler: &Compiler) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let agent = agent();
    let variables = [("LD_PRELOAD", agent.as_str()), ("HEAPLINE_WAIT", "1")];
    let child = emulated(compiler, &compiler.program("heap"), &variables)
        .arg(path("stop"))
        .arg("1000")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    heapline_testkit::wait("the program to say what it reaches", || {
        path("stop.ready").exists()
    });
    let run = |arguments: &[&str], file: &Path| {
        let output = heapline()
            .args(arguments)
            .arg(child.id().to_string())
            .arg("-o")
            .arg(file)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            compiler.version,
            said(&output)
        );
    };
    // What is attached by a socket of the program needs no ptrace.
    run(
        &["attach", "--rate", "1e-3", "--for", "1s"],
        &path("trace.ctf"),
    );
    run(&["snapshot", "--in-place"], &path("now.heap"));
    File::create(path("stop")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(!Trace::strict(&path("trace.ctf")).allocations.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    snapshot::check_graph(&snapshot::read(&path("now.heap")), &text, compiler);
}
