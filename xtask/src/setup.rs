//! What the tests need and a fresh machine may not have.

use crate::command::{Outcome, exists, program};

/// Installs a Debian package unless `command` is there.
pub(crate) fn debian(command: &str, package: &str) -> Outcome {
    debian_unless(exists(command), package)
}

/// Installs a Debian package unless what it has is there.
pub(crate) fn debian_unless(is_there: bool, package: &str) -> Outcome {
    if is_there {
        return Ok(());
    }
    println!("{package} is missing: installing it");
    let install = "apt-get update -q && apt-get install -qy --no-install-recommends";
    let sudo = if is_root() { "" } else { "sudo " };
    program("sh", &["-c", &format!("{sudo}sh -c '{install} {package}'")])
        .run()
        .map_err(|problem| format!("{problem}\nInstall {package} by hand, please, and try again."))
}

/// Installs a component of the Rust toolchain unless `command` is there.
pub(crate) fn rust_component(command: &str, component: &str) -> Outcome {
    if exists(command) {
        return Ok(());
    }
    program("rustup", &["component", "add", component])
        .run()
        .map_err(|problem| {
            format!("{problem}\nInstall {component} by hand, please, and try again.")
        })
}

fn is_root() -> bool {
    program("id", &["-u"])
        .output()
        .is_ok_and(|id| id.trim() == "0")
}
