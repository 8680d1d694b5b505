//! Running commands where other processes cannot be seen.

use std::process::Command;
use std::sync::OnceLock;

/// A command that runs a program in a pid namespace of its own, and ends with it.
///
/// # Panics
///
/// If there are no pid namespaces here: a test that needs them cannot pass without.
pub(crate) fn unshare(program: &str) -> Command {
    static PRIVILEGE: OnceLock<&[&str]> = OnceLock::new();
    let privilege = PRIVILEGE.get_or_init(|| {
        let ways: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
        let works = |way: &&[&str]| {
            let status = command(way, "true").output();
            status.is_ok_and(|output| output.status.success())
        };
        ways.into_iter().find(works).expect(
            "this test needs pid namespaces: `unshare --pid --fork --mount-proc true` must work, as \
             root or with --user --map-root-user",
        )
    });
    command(privilege, program)
}

fn command(privilege: &[&str], program: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(privilege)
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", program]);
    command
}
