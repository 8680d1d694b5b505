//! `cargo xtask test`: all checks of CI.

use crate::command::{Outcome, cargo, root};
use crate::{browser, consumers, fleet, fuzz, licenses, ocaml, package, setup, workspace};

/// Enough to notice a target that is broken, not enough to find what is rare.
const FUZZ_SECONDS: u32 = 5;

/// All tests of the workspace, with all features: each further set of them would build most dependencies
/// again. It leaves its programs in `target/debug`.
pub(crate) const TESTS: [&str; 4] = ["test", "--locked", "--workspace", "--all-features"];

pub(crate) fn run() -> Outcome {
    setup::debian("cc", "build-essential")?;
    setup::debian("c++", "build-essential")?;
    setup::debian("emacs", "emacs-nox")?;
    browser::setup()?;
    ocaml::install()?;
    setup::debian("tmux", "tmux")?;
    setup::rust_component("rustfmt", "rustfmt")?;
    setup::rust_component("cargo-clippy", "clippy")?;

    // Other people's compilers are built while ours is at its checks, and has a core to spare.
    let compilers = std::thread::spawn(ocaml::build);

    cargo(&["fmt", "--all", "--check"]).run()?;
    for apart in ["fuzz/Cargo.toml", "crates/sampler/bench/Cargo.toml"] {
        cargo(&["fmt", "--manifest-path", apart, "--check"]).run()?;
    }
    licenses::check(false)?;
    let lint = [
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--all-features",
    ];
    cargo(&[&lint[..], &["--", "-D", "warnings"]].concat()).run()?;
    // The recorder of OCaml programs takes the trace library without its extras.
    let bare = [
        "clippy",
        "--locked",
        "--package",
        "heapline-trace",
        "--no-default-features",
    ];
    cargo(&[&bare[..], &["--", "-D", "warnings"]].concat()).run()?;
    portable()?;
    without_recording()?;
    let compilers = compilers
        .join()
        .map_err(|_| "building OCaml ended in a panic")??;
    // What is missing is a failure here, not a test less.
    cargo(&[&TESTS[..], &["--no-fail-fast"]].concat())
        .env(ocaml::COMPILERS, &compilers)
        .env("HEAPLINE_REQUIRE", "1")
        .run()?;
    let references = reference_tests()?;
    package::check()?;
    consumers::check()?;
    browser::check()?;
    fleet::check()?;
    cargo(&[
        "doc",
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ])
    .env("RUSTDOCFLAGS", "-D warnings")
    .run()?;
    fuzz::run(FUZZ_SECONDS, Some(1))?;
    // The first of the README's two commands; this is the second.
    cargo(&["build", "--locked", "--release"]).run()?;
    browser::demo()?;
    println!("\nAll is well.{references}");
    Ok(())
}

/// Lints and tests the program for platforms where programs cannot be recorded. To be called before the other tests: those leave
/// the program with all features behind, which is tried next.
fn without_recording() -> Outcome {
    // All other features are on, so that the other packages are those that all tests use.
    let features =
        workspace::features_without(&["heapline-cli/default", "heapline-cli/record"])?.join(",");
    let workspace = [
        "--locked",
        "--workspace",
        "--no-default-features",
        "--features",
        &features,
    ];
    let lint = [&["clippy", "--all-targets"][..], &workspace].concat();
    cargo(&[&lint[..], &["--", "-D", "warnings"]].concat()).run()?;
    // Help, errors and reports.
    let tests = ["--no-fail-fast", "--bin=heapline", "--test=cmd"];
    cargo(&[&["test"][..], &workspace, &tests].concat()).run()
}

/// Runs the tests that need the reference traces, if these are here. Returns what to say if not.
fn reference_tests() -> Outcome<&'static str> {
    if !root().join("../shared/traces").is_dir() {
        return Ok(
            " Not run: tests marked \"needs the reference traces\", because these are not here.",
        );
    }
    let ignored = ["--no-fail-fast", "--tests", "--", "--ignored"];
    cargo(&[&TESTS[..], &ignored].concat())
        .env("HEAPLINE_REQUIRE", "1")
        .run()?;
    Ok("")
}

/// Checks that dependencies for x86-64 Linux only are not dependencies of `heapline` on other
/// platforms.
fn portable() -> Outcome {
    for target in [
        "aarch64-apple-darwin",
        "aarch64-unknown-linux-gnu",
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
