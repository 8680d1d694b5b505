//! A sampling memory profiler for Rust programs.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("heapline samples programs for x86-64 Linux only, so far");

mod alloc;
mod fork;
mod gaps;
mod large;
mod local;
mod lock;
mod malloc;
mod range;
mod session;
mod slab;
mod stack;
pub mod testing;
mod thread;
mod trace;
mod tracker;

use std::fmt;
use std::io;

pub use alloc::Alloc;
pub use malloc::Malloc;
pub use stack::Frame;
pub use trace::{Trace, trace_if_requested, trace_to, trace_with};
pub use tracker::{Block, Options, Profiler, Site, Stack, Tracker};

/// Why sampling could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The program's global allocator is not [`Alloc`].
    NotTheAllocator,
    /// Sampling was started before, and goes on.
    Running,
    /// This is no rate: it must be above 0 and not above 1.
    Rate(f64),
    /// There are no addresses left, or a trace cannot be written.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTheAllocator => f.write_str(
                "the program's allocator is not heapline's; add `#[global_allocator] \
                 static ALLOC: heapline::Alloc = heapline::Alloc::system();` to its main.rs",
            ),
            Self::Running => f.write_str("the program is being sampled already; stop that first"),
            Self::Rate(rate) => write!(
                f,
                "{rate} is no sampling rate; it must be above 0 and not above 1"
            ),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(error) => Some(error),
            _ => None,
        }
    }
}
