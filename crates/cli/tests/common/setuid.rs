//! Setuid programs, as users without rights start them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A user without rights.
const NOBODY: u32 = 65534;

/// Makes a copy of a program that runs as root, and returns a command that starts it as a user without rights; `None`
/// where there is no way to do so.
pub(crate) fn setuid(test: &str, program: &Path, folder: &Path) -> Option<Command> {
    let start = |program: &Path| {
        let copy = folder.join(program.file_name().unwrap());
        heapline_testkit::copy_program(program, &copy);
        fs::set_permissions(&copy, Permissions::from_mode(0o4755)).unwrap();
        let mut command = Command::new(copy);
        command.uid(NOBODY).gid(NOBODY);
        command
    };
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    let who = start(Path::new("/usr/bin/id")).output();
    let is_root =
        |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).contains("euid=0(");
    if !who.as_ref().is_ok_and(is_root) {
        heapline_testkit::missing(&format!(
            "{test}: needs root, and setuid programs in {}",
            folder.display()
        ));
        return None;
    }
    Some(start(program))
}
