//! Builds the agent, for `heapline record` to embed: cargo cannot make a binary depend on a shared
//! library.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    for source in ["agent", "recorder", "trace"] {
        for part in ["src", "Cargo.toml"] {
            let path = root.join("crates").join(source).join(part);
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    for file in ["Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(file).display());
    }

    let target = variable("TARGET");
    // A folder of its own: the one of the build that we are part of is locked.
    let folder = PathBuf::from(variable("OUT_DIR")).join("agent");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["build", "--locked", "--package", "heapline-agent"])
        .args(["--profile", "agent", "--target", &target, "--target-dir"])
        .arg(&folder)
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"));
    // Those of the build that we are part of: a linter in the compiler's place, and flags such as
    // coverage, which are not for other people's programs.
    for name in [
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
    ] {
        cargo.env_remove(name);
    }
    let output = cargo
        .output()
        .unwrap_or_else(|error| panic!("cannot run cargo to build the agent: {error}"));
    assert!(
        output.status.success(),
        "the agent (crates/agent) could not be built:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let library = folder
        .join(&target)
        .join("agent")
        .join("libheapline_agent.so");
    println!("cargo::rustc-env=HEAPLINE_AGENT={}", library.display());
}
