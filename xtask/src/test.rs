//! `cargo xtask test`: all checks of CI, in stages.

use std::time::{Duration, Instant, SystemTime};

use crate::command::{Outcome, cargo, lint, root};
use crate::{
    arm64, browser, consumers, fleet, licenses, ocaml, package, programs, reproduce, setup, unit,
    workspace,
};

/// A part of the checks.
struct Stage {
    name: &'static str,
    about: &'static str,
    run: fn() -> Outcome,
}

/// All stages, in an order in which later ones reuse what earlier ones build.
const STAGES: &[Stage] = &[
    stage("setup", "install missing tools", set_up),
    stage(
        "format",
        "format, licences, dependencies by platform",
        format,
    ),
    stage(
        "build",
        "lint and build the workspace with its tests; OCaml compilers meanwhile",
        build,
    ),
    stage(
        "unit",
        "tests of all crates, and examples in documentation",
        unit::run,
    ),
    stage("arm64", "recording on arm64, emulated", arm64::check),
    stage("references", "tests on the reference traces", references),
    stage(
        "package",
        "packages, and a program installed from them",
        package::check,
    ),
    stage(
        "consumers",
        "exports and datasets in other programs",
        consumers::check,
    ),
    stage("browser", "the viewer in a browser", browser::check),
    stage(
        "fleet",
        "heapline-fleet with DuckDB, S3 and a cluster",
        fleet::check,
    ),
    // It replaces the program that other stages try.
    stage("portable", "the program without recording", portable),
    stage("docs", "documentation of the code", docs),
    stage("demo", "the release build, and its demo", demo),
];

const fn stage(name: &'static str, about: &'static str, run: fn() -> Outcome) -> Stage {
    Stage { name, about, run }
}

/// All tests of the workspace, with all features: each further set of them would build most dependencies
/// again. It leaves its programs in `target/debug`.
pub(crate) const TESTS: [&str; 4] = ["test", "--locked", "--workspace", "--all-features"];

/// Runs the named stages, or all, and prints how long each took.
pub(crate) fn run(names: &[&str]) -> Outcome {
    for name in names {
        if !STAGES.iter().any(|stage| stage.name == *name) {
            return Err(format!(
                "there is no stage {name}; the stages are:\n{}",
                list()
            ));
        }
    }
    let mut times = Vec::new();
    let mut outcome = Ok(());
    for stage in STAGES {
        if !names.is_empty() && !names.contains(&stage.name) {
            continue;
        }
        println!("\n==> {}: {}", stage.name, stage.about);
        let started = Instant::now();
        outcome = (stage.run)().map_err(|problem| format!("stage {}: {problem}", stage.name));
        times.push((stage, started.elapsed()));
        if outcome.is_err() {
            break;
        }
    }
    print_times(&times, outcome.is_ok());
    outcome
}

/// The stages with what they check, a line each.
pub(crate) fn list() -> String {
    let line = |stage: &Stage| format!("  {:<10}  {}\n", stage.name, stage.about);
    let lines: Vec<String> = STAGES.iter().map(line).collect();
    lines.concat()
}

fn print_times(times: &[(&Stage, Duration)], passed: bool) {
    println!("\nStage       Time    Checks");
    for (number, (stage, time)) in times.iter().enumerate() {
        let is_failed = !passed && number + 1 == times.len();
        let note = if is_failed { " (failed)" } else { "" };
        println!(
            "{:<10} {}  {}{note}",
            stage.name,
            minutes(*time),
            stage.about
        );
    }
    println!(
        "{:<10} {}",
        "total",
        minutes(times.iter().map(|(_, time)| *time).sum())
    );
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:>3}:{:02}", seconds / 60, seconds % 60)
}

fn set_up() -> Outcome {
    setup::debian_all(&[
        ("cc", "build-essential"),
        ("c++", "build-essential"),
        ("emacs", "emacs-nox"),
        ("tmux", "tmux"),
        ("npm", "npm"),
        ("chromium", "chromium"),
        ("go", "golang-go"),
        ("python3", "python3"),
    ])?;
    setup::rust_component("rustfmt", "rustfmt")?;
    setup::rust_component("cargo-clippy", "clippy")?;
    ocaml::install()
}

fn format() -> Outcome {
    cargo(&["fmt", "--all", "--check"]).run()?;
    for apart in ["fuzz/Cargo.toml", "crates/sampler/bench/Cargo.toml"] {
        cargo(&["fmt", "--manifest-path", apart, "--check"]).run()?;
    }
    licenses::check(false)?;
    dependencies_by_platform()
}

/// Compiles everything once, as the tests use it, with clippy's lints as errors. What else tests need is mostly downloaded,
/// and takes little from the compiler.
fn build() -> Outcome {
    let others = std::thread::spawn(|| {
        ocaml::compilers()?;
        programs::set_up()?;
        consumers::python()
    });
    compile()?;
    match others.join() {
        Ok(outcome) => outcome.map(drop),
        Err(_) => Err("setting up OCaml compilers ended in a panic".into()),
    }
}

/// Builds the workspace and its tests, with the programs in `target/debug`; it does nothing if they are there.
pub(crate) fn build_workspace() -> Outcome {
    lint(&[&TESTS[..], &["--no-run"]].concat()).run()
}

fn compile() -> Outcome {
    build_workspace()?;
    // The recorder of OCaml programs takes the trace library without its extras.
    lint(&[
        "check",
        "--locked",
        "--package=heapline-trace",
        "--no-default-features",
    ])
    .run()
}

/// Attaches and snapshots at random moments, more than the ordinary tests do.
pub(crate) fn stress(attaches: &str, snapshots: &str, seed: Option<&str>) -> Outcome {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since_1970.map_or(0, |time| time.as_secs()).to_string();
    let only = ["--test=record", "--", "stress::", "--nocapture"];
    lint(&[&TESTS[..], &only].concat())
        .env(ocaml::COMPILERS, &ocaml::compilers()?)
        .reproducible()
        .env("HEAPLINE_STRESS", &format!("{attaches},{snapshots}"))
        .env("HEAPLINE_STRESS_SEED", seed.unwrap_or(&seconds))
        .run()
}

/// Runs the tests that need the reference traces, if these are here.
fn references() -> Outcome {
    if !root().join("../shared/traces").is_dir() {
        println!(
            "Not run: tests marked \"needs the reference traces\", because these are not here."
        );
        return Ok(());
    }
    let ignored = ["--no-fail-fast", "--tests", "--", "--ignored"];
    lint(&[&TESTS[..], &ignored].concat()).reproducible().run()
}

/// Lints and tests the program as it is on platforms where programs cannot be recorded.
fn portable() -> Outcome {
    // All other features are on, so that the other packages are those that all tests use.
    let features =
        workspace::features_without(&["heapline-cli/default", "heapline-cli/record"])?.join(",");
    let workspace = [
        "test",
        "--locked",
        "--workspace",
        "--no-default-features",
        "--features",
        &features,
        "--no-fail-fast",
    ];
    lint(&[&workspace[..], &["--bin=heapline"]].concat()).run()?;
    // Help, errors and reports.
    lint(&[&workspace[..], &["--test=it", "cmd::"]].concat()).run()
}

fn docs() -> Outcome {
    cargo(&[
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ])
    .env("RUSTDOCFLAGS", "-D warnings")
    .run()
}

/// The first of the README's two commands; this is the second.
fn demo() -> Outcome {
    cargo(&["build", "--locked", "--release"]).run()?;
    reproduce::check_paths(&root().join("target/release/heapline"))?;
    browser::demo()
}

/// Checks that dependencies for the platforms on which programs can be recorded are not dependencies of `heapline` on
/// others.
fn dependencies_by_platform() -> Outcome {
    for target in [
        "aarch64-apple-darwin",
        "aarch64-unknown-linux-musl",
        "x86_64-pc-windows-msvc",
        "x86_64-unknown-linux-musl",
    ] {
        let tree = [
            "tree",
            "--locked",
            "--package=heapline-cli",
            "--prefix=none",
        ];
        let options = ["--edges=normal", "--target", target];
        let tree = cargo(&[&tree[..], &options].concat()).output()?;
        for package in ["heapline-agent", "heapline-recorder"] {
            if tree.contains(package) {
                return Err(format!("heapline depends on {package} on {target}"));
            }
        }
    }
    Ok(())
}
