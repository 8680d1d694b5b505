//! Heap traces and profiles in other tools' formats.
//!
//! - [`dump`]: the events of a trace as text: as memtrace's `dump_trace` and ocaml-alloc-stats
//!   print them, byte for byte, as CSV, or as lines of JSON.
//! - [`identify()`]: the summary that memtrace's `identify` prints, byte for byte.

pub mod dump;
mod identify;
mod text;

pub use identify::identify;
