//! Heap traces and profiles in other tools' formats.
//!
//! Of a trace:
//!
//! - [`dump`]: the events of a trace as text: as memtrace's `dump_trace` and ocaml-alloc-stats
//!   print them, byte for byte, as CSV, or as lines of JSON.
//! - [`cut`]: smaller traces out of larger ones.
//! - [`identify()`]: the summary that memtrace's `identify` prints, byte for byte.
//!
//! Of a profile, that is of a [`Scope`](heapline_profile::Scope):
//!
//! - [`pprof()`]: for `go tool pprof` and whatever else reads its format.
//! - [`collapsed()`]: one line a stack, as flame graph programs take them.
//! - [`svg()`]: a flame graph as a picture.
//! - [`speedscope()`]: for <https://www.speedscope.app>.
//! - [`firefox()`]: for <https://profiler.firefox.com>, with times.
//! - [`parquet`]: tables of sampled blocks and their stacks.
//! - [`csv()`]: the table of blocks as text.
//!
//! All of them are made of estimates, are the same for the same trace, and are written as they
//! are made wherever the format allows that.

mod collapsed;
mod csv;
pub mod cut;
pub mod dump;
mod firefox;
mod fold;
mod identify;
mod names;
pub mod parquet;
pub mod pprof;
mod provenance;
mod speedscope;
mod svg;
mod text;

pub use collapsed::collapsed;
pub use csv::csv;
pub use firefox::firefox;
pub use fold::Leaf;
pub use identify::identify;
pub use pprof::pprof;
pub use speedscope::speedscope;
pub use svg::{SvgOptions, svg};
