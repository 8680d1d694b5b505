//! The examples of the sampler, which are Rust programs to record.
#![cfg(recording)]

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// An example of the sampler. All are built, with the features of `cargo xtask test`: there, that has been done, and other
/// features would have their dependencies compiled again.
pub(crate) fn example(name: &str) -> String {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--workspace", "--all-features"])
            .arg("--examples")
            .status()
            .unwrap();
        assert!(built.success());
    });
    let folder = Path::new(env!("CARGO_BIN_EXE_heapline")).parent().unwrap();
    let path = folder.join("examples").join(name);
    path.into_os_string().into_string().unwrap()
}
