//! Heap traces and profiles in other tools' formats.
//!
//! Of a trace:
//!
//! - [`dump`]: the events of a trace as text: in the formats of memtrace's `dump_trace` and
//!   ocaml-alloc-stats, byte for byte, as CSV, or as JSON lines.
//! - [`cut`]: smaller traces.
//! - [`identify()`]: the output of memtrace's `identify`, byte for byte.
//!
//! Of a profile, that is of a [`Scope`](heapline_profile::Scope):
//!
//! - [`pprof()`]: for `go tool pprof` and compatible tools.
//! - [`collapsed()`]: folded stacks, one per line, for flame graph tools.
//! - [`svg()`]: a flame graph.
//! - [`speedscope()`]: for <https://www.speedscope.app>.
//! - [`firefox()`]: for <https://profiler.firefox.com>, with times.
//! - [`perfetto()`]: the garbage collector and memory over time, for <https://ui.perfetto.dev>.
//! - [`parquet`]: tables of sampled blocks and their stacks.
//! - [`csv()`]: the table of blocks as text.
//!
//! Of a heap snapshot: see [`heap`].
//!
//! Those of profiles consist of estimates. Output is deterministic, and streamed if the format allows it.

mod collapsed;
mod csv;
mod curve;
pub mod cut;
pub mod dump;
mod firefox;
mod fold;
pub mod heap;
mod identify;
mod names;
pub mod parquet;
mod perfetto;
pub mod pprof;
mod provenance;
mod spans;
mod speedscope;
mod stacks;
mod svg;
mod text;

pub use collapsed::collapsed;
pub use csv::csv;
pub use firefox::firefox;
pub use fold::Leaf;
pub use identify::identify;
pub use perfetto::perfetto;
pub use pprof::pprof;
pub use speedscope::speedscope;
pub use stacks::{StackFormat, StackOptions};
pub use svg::{SvgOptions, svg};
pub use text::is_formula;
