//! Processes of tests.

use std::process::Child;

/// A process that does not outlive a test, also if that fails.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
