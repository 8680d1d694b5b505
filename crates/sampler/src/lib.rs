//! A sampling heap profiler for Rust programs: two lines of code, about one percent overhead, figures
//! with error bars.
//!
//! ```
//! #[global_allocator]
//! static ALLOC: heapline::Alloc = heapline::Alloc::system();
//!
//! fn main() {
//!     heapline::trace_if_requested();
//!     // The rest of the program is unchanged.
//! }
//! ```
//!
//! `heapline record -- target/release/program` then writes a trace for `heapline summary`, `leaks`, `view`
//! and all other commands. The overhead is negligible while the program is not being recorded.
//!
//! # How it works
//!
//! A small part of the program's blocks is *sampled*, each byte of memory with the same probability.
//! Sampled blocks are tracked completely: stack, time, size, and when they are freed. From them follow
//! unbiased estimates for the whole program, with known errors.
//!
//! For blocks that are not sampled, an allocation costs a countdown, and a free a comparison: sampled
//! blocks have an address range of their own. The sampler's own memory is there too, and never in the
//! profiled heap. See `docs/sampling.md` in the repository for details and measured overhead.
//!
//! # Features
//!
//! | | |
//! | --- | --- |
//! | [`trace_if_requested`], [`trace_to`] | write a trace for `heapline` |
//! | [`Profiler::watch`] | get the live heap profile inside the program, for a server that shows it |
//! | [`Profiler::start`] | call closures for sampled blocks, and attach data to each |
//! | [`testing`] | assert exactly how much memory something uses, in tests |
//! | [`Alloc::new`] | wrap jemalloc, mimalloc or any other allocator |
//!
//! # Names
//!
//! Functions and lines come from the program's debug information, which release builds do not have by
//! default. `debug = 1` does not make the program slower:
//!
//! ```toml
//! [profile.release]
//! debug = 1
//! ```
//!
//! With `debug = "line-tables-only"`, the names of inlined functions are without their paths.
//!
//! # Limits
//!
//! - x86-64 and arm64 Linux.
//! - Memory that C code gets from `malloc`, and mapped memory, is not recorded.
//! - A `cdylib` that the program loads, such as a plugin, has its own copy of Rust's allocator. What it
//!   allocates is not recorded, unless it has this one too, and starts its own session.
//! - Forked children are not sampled, unless they execute another program.
//! - With `panic = "abort"`, a panic in a closure of a [`Tracker`] ends the program.

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "aarch64", target_arch = "x86_64")
)))]
compile_error!("heapline only supports x86-64 and arm64 Linux");

mod alloc;
mod fork;
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

/// The reason why sampling could not be started.
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
            Self::Running => f.write_str("the program is already being sampled; stop that first"),
            Self::Rate(rate) => write!(
                f,
                "invalid sampling rate {rate}; it must be above 0 and at most 1"
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
