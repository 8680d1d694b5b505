//! Programs that tests make.
//!
//! A program cannot be run while it is open for writing. Another thread of the tests may start a process at any moment, which
//! has all open files until it runs its own program. So other processes write the programs that tests run.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program, with its permissions.
///
/// # Panics
///
/// If that is not possible.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("--").args([from, to]).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "cannot copy {} to {}",
        from.display(),
        to.display()
    );
}

/// Writes a program that everybody may run.
///
/// # Panics
///
/// If that is not possible.
pub fn write_program(path: &Path, contents: impl AsRef<[u8]>) {
    let mut shell = Command::new("sh")
        .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh can be run");
    let mut stdin = shell.stdin.take().expect("it is piped");
    let written = stdin.write_all(contents.as_ref());
    drop(stdin);
    let status = shell.wait();
    assert!(
        written.is_ok() && status.is_ok_and(|status| status.success()),
        "cannot write {}",
        path.display()
    );
}
