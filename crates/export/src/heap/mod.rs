//! Heap snapshots in other tools' formats.
//!
//! - [`devtools()`]: `.heapsnapshot` for Chrome DevTools.
//! - [`pprof()`]: retaining paths for `go tool pprof` and compatible tools.
//! - [`nodes()`] and [`edges()`]: Parquet tables.
//! - [`dot()`]: paths for Graphviz.

mod devtools;
mod dot;

pub use devtools::devtools;
pub use dot::{dot, dot_of_path};

pub use crate::parquet::{edges, nodes};
pub use crate::pprof::paths as pprof;
