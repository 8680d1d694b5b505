//! Writes the trace of a running program.
//!
//! It is shared by the agent, which is preloaded into OCaml programs, the OCaml library, which is linked
//! into them, and the sampler of Rust programs. It is independent of OCaml: the sampler passes
//! allocations, promotions and collections to a [`Recorder`].
//!
//! - Each domain of the program has its own lane: recording an event shares no data, allocates nothing
//!   once tables have their final size, and the only system calls are one for the time and one for every
//!   32 KiB of trace.
//! - The trace always consists of complete packets. Packets that are being filled are in a memory-mapped
//!   file beside it, the [`tail`], and are consistent there too. Readers [read both](heapline_trace::open)
//!   at any time; `heapline record` [appends the tail](tail::finish) when the program has ended.
//! - A full disk, a size limit or a bug ends the recording, never the program.
//!
//! # From C
//!
//! With the feature `c-api` the functions in `capi.rs` are exported, and
//! `cargo rustc -p heapline-recorder --profile agent --features c-api --crate-type staticlib`
//! makes a library of them.

#[cfg(feature = "launch")]
pub mod allocator;
mod beginning;
#[cfg(feature = "c-api")]
pub mod capi;
#[cfg(feature = "c-api")]
pub mod capi_listen;
mod clock;
mod collector;
#[cfg(feature = "listen")]
pub mod control;
mod file;
mod free;
pub mod gaps;
#[cfg(feature = "launch")]
pub mod inherited;
mod lane;
#[cfg(feature = "listen")]
pub mod listener;
mod map;
mod recorder;
pub mod seed;
pub mod settings;
pub mod tail;

pub use clock::{Reading, thread_cpu_time};
pub use collector::Work as CollectorWork;
pub use file::check_size_limit;
pub use heapline_trace::{
    Block, CollectionKind, CollectorCounters, DEEPER_CALLS, Frame, FrameSink, Frames,
    OMITTED_FRAMES, Phase, Source, TaggedCode,
};
pub use lane::{Lane, PendingBlock};
pub use recorder::{Options, Recorder, contained};
