//! The Emacs package in `emacs`, in a real Emacs, with this build of the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use heapline_testkit::missing;

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../emacs")
}

/// Runs Emacs without the user's settings; the result is what it printed if it failed. `None` if
/// there is no Emacs.
fn emacs(arguments: &[&str]) -> Option<Result<(), String>> {
    let mut command = Command::new("emacs");
    command
        .args(["-Q", "--batch", "-L", ".", "-L", "test"])
        .args(arguments)
        .current_dir(package())
        .env("HEAPLINE", env!("CARGO_BIN_EXE_heapline"))
        .env("HEAPLINE_FIXTURES", package().join("../fixtures"))
        .env("LC_ALL", "C.UTF-8");
    if cfg!(recording) {
        command.env("HEAPLINE_TEST_RECORDING", "1");
    }
    let Ok(output) = command.output() else {
        missing("there is no emacs (Debian: emacs-nox)");
        return None;
    };
    let printed = [output.stdout, output.stderr].concat();
    Some(if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&printed).into_owned())
    })
}

#[test]
fn compiles_without_warnings_and_is_documented() {
    if let Some(Err(problems)) = emacs(&["-l", "heapline-lint"]) {
        panic!("{problems}");
    }
}

#[test]
fn works_in_emacs() {
    let tests = [
        "-l",
        "heapline-figures-test",
        "-l",
        "heapline-tree-test",
        "-l",
        "heapline-commands-test",
    ];
    let run = ["-f", "ert-run-tests-batch-and-exit"];
    if let Some(Err(problems)) = emacs(&[&tests[..], &run].concat()) {
        panic!("{problems}");
    }
}
