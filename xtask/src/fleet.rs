//! `cargo xtask test fleet`: checks `heapline-fleet`, which is a workspace of its own.
//!
//! Most of the time goes into building DataFusion and Ballista, once: results are kept in a folder
//! outside of the checkout, and lints, tests and the programs of the cluster share them.

use crate::command::{Outcome, cargo, lint};
use crate::test::build_workspace;
use crate::{browser, consumers, setup};

const MANIFEST: [&str; 3] = ["--locked", "--manifest-path", "fleet/Cargo.toml"];

/// Checks format, lints and tests, the latter with a cluster of Ballista's published programs, with DuckDB,
/// and with the viewer in a browser.
pub(crate) fn check() -> Outcome {
    setup::debian("cc", "build-essential")?;
    setup::rust_component("rustfmt", "rustfmt")?;
    setup::rust_component("cargo-clippy", "clippy")?;
    let format = [
        "fmt",
        "--all",
        "--check",
        "--manifest-path",
        "fleet/Cargo.toml",
    ];
    cargo(&format).run()?;

    let target = setup::cache()?.join("fleet").display().to_string();
    let build = |arguments: &[&str]| {
        let run = lint(&[&arguments[..1], &MANIFEST, &arguments[1..]].concat());
        run.env("CARGO_TARGET_DIR", &target)
    };
    // Feature sets depend on what is built together: always all of it.
    let everything = [
        "--package=heapline-fleet",
        "--package=heapline-fleet-cluster",
        "--package=ballista-scheduler",
        "--package=ballista-executor",
    ];
    build(&[&["build"][..], &everything].concat()).run()?;
    build(&["test", "--workspace", "--no-fail-fast"])
        .env("HEAPLINE_BALLISTA", &format!("{target}/debug"))
        .env("HEAPLINE_PYTHON", &consumers::python()?)
        .reproducible()
        .run()?;
    // The viewer, and the program that makes runs for it.
    build_workspace()?;
    browser::check_fleet(&format!("{target}/debug"))
}
