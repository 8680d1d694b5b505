//! Installs the tools that the tests need.

use std::path::PathBuf;

use crate::command::{Outcome, exists, program};

/// Installs a Debian package unless `command` is there.
pub(crate) fn debian(command: &str, package: &str) -> Outcome {
    debian_unless(path_of(command).is_ok(), package)
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

/// Installs the packages of those commands that are not there, all at once.
pub(crate) fn debian_all(commands_and_packages: &[(&str, &str)]) -> Outcome {
    let missing: Vec<&str> = commands_and_packages
        .iter()
        .filter(|(command, _)| path_of(command).is_err())
        .map(|&(_, package)| package)
        .collect();
    debian_unless(missing.is_empty(), &missing.join(" "))
}

/// The path of a command.
pub(crate) fn path_of(command: &str) -> Outcome<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join(command))
        .find(|path| path.is_file())
        .ok_or_else(|| format!("there is no {command} in PATH"))
}

/// A folder outside of the checkout, which survives it.
pub(crate) fn cache() -> Outcome<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(base) => PathBuf::from(base),
        None => PathBuf::from(std::env::var_os("HOME").ok_or("there is no HOME")?).join(".cache"),
    };
    let cache = base.join("heapline");
    std::fs::create_dir_all(&cache)
        .map_err(|error| format!("cannot make {}: {error}", cache.display()))?;
    Ok(cache)
}

/// A directory like [`cache`], for what other users run in tests as root: they cannot read root's home directory.
pub(crate) fn shared_cache() -> Outcome<PathBuf> {
    if !is_root() {
        return cache();
    }
    let shared = PathBuf::from("/var/cache/heapline");
    std::fs::create_dir_all(&shared)
        .map_err(|error| format!("cannot make {}: {error}", shared.display()))?;
    Ok(shared)
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
