//! Writes the trace of a running program.
//!
//! This is what the agent, which is preloaded into OCaml programs, and the OCaml library, which is
//! linked into them, have in common. It knows nothing of OCaml: whoever samples the program tells a
//! [`Recorder`] what was allocated, where, and what became of it.
//!
//! - Each domain of the program has a lane of its own: nothing is shared on the way of an
//!   event, nothing is allocated once tables have their size, and the only system calls are one
//!   for the time and one for every 32 KiB of trace.
//! - The trace is whole packets at any time. Those that are being filled are in a mapped file beside
//!   it, the [`tail`], and are whole there too. Readers [lay it over the trace](heapline_trace::open) at
//!   any time; `heapline record` [moves it there](tail::finish) when the program has ended.
//! - A full disk, a limit or a mistake of ours ends the recording, never the program.
//!
//! # From C
//!
//! With the feature `c-api` the functions in `capi.rs` are exported, and
//! `cargo rustc -p heapline-recorder --profile agent --features c-api --crate-type staticlib`
//! makes a library of them.

#[cfg(feature = "c-api")]
pub mod capi;
mod clock;
mod file;
pub mod gaps;
mod lane;
mod map;
mod recorder;
pub mod settings;
pub mod tail;

pub use clock::Reading;
pub use heapline_trace::{Block, Frame, FrameSink, Source, TaggedCode};
pub use lane::{Lane, PendingBlock};
pub use recorder::{Options, Recorder, contained};
