//! Traces for Heapline's tests and benchmarks, and an independent reader.
//!
//! - [`generate`]: traces of programs that never ran, from a seed.
//! - [`plain`]: the format's description transcribed in the plainest way, with every check that
//!   memtrace's own reader makes. What it accepts, memtrace accepts; what the real reader
//!   returns must be the same.
//! - [`lives`]: traces of blocks whose sizes, lives and stacks are given.
//! - [`long_run`]: traces of a server that runs for hours, of any size, as a stream.
//! - [`fleet`]: traces of many runs of several services.
//! - [`heap`]: heap snapshots of programs that never ran.
//! - [`harm`]: ways to damage a trace.
//! - [`fixtures`]: where traces are.
//! - [`collections`]: programs with the work of their garbage collector.
//! - [`collector`]: a server that profiles are pushed to.

use std::io::Write;

pub mod collections;
pub mod collector;
pub mod fixtures;
pub mod fleet;
pub mod generate;
pub mod harm;
pub mod heap;
mod killed;
pub mod lives;
pub mod long_run;
mod owned;
pub mod plain;
mod programs;
mod properties;
mod waiting;

pub use killed::Killed;
pub use owned::{OwnedEvent, OwnedFrame, OwnedTrace};
pub use programs::{copy_program, write_program};
pub use properties::property_config;
pub use waiting::{DEADLINE, pass_time, wait, wait_for};

/// Says that a test is not run because something is missing on this machine. In `cargo xtask test`,
/// which sets up all that tests need, that is a failure.
///
/// # Panics
///
/// If the environment has `HEAPLINE_REQUIRE`.
pub fn missing(reason: &str) {
    assert!(
        std::env::var_os("HEAPLINE_REQUIRE").is_none(),
        "{reason}; a test that is not run is a failure, because HEAPLINE_REQUIRE is set"
    );
    // Past the harness, which hides what tests that pass print.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
}

/// The address and port in a line that says where pages are served.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn served_address(line: &str) -> &str {
    let address = line.split_once("http://").map(|(_, address)| address);
    let address = address.and_then(|address| address.split_once('/'));
    address.expect("a line with a URL").0
}

/// The most memory that this process has had so far, in MiB. `None` where the system does not tell.
#[must_use]
pub fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024)
}
