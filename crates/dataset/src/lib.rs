//! Datasets: the profiles of many runs as Parquet tables that SQL engines query.
//!
//! A dataset is a folder with a folder for each run, `service=.../day=.../run=...`, which has the
//! [`FILES`]: five tables and their checksums. `docs/dataset.md` describes their columns.
//!
//! - [`Dataset`]: a dataset in a local folder: add traces, list runs, check it.
//! - [`TraceFile`] and [`Run`]: the files of a run in any folder, for programs that store them elsewhere.
//! - [`Labels`]: what the user says of a run.
//!
//! ```
//! use heapline_dataset::{Added, Dataset, Labels};
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("profiles");
//! # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
//! let dataset = Dataset::create(&folder)?;
//! let labels = Labels::parse(["version=1.4.2"])?;
//! assert!(matches!(dataset.add(trace, &labels)?, Added::New(_)));
//! assert!(matches!(dataset.add(trace, &labels)?, Added::Known(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod checksums;
mod dataset;
mod error;
mod hash;
mod info;
mod labels;
mod lock;
mod names;
mod path;
mod read;
mod run;
mod tables;
pub mod text;
mod totals;
mod trace_file;

pub use check::{Problem, Verdict};
pub use dataset::{Added, Dataset};
pub use error::Error;
pub use hash::RunId;
pub use info::{RunInfo, RunList};
pub use labels::{LabelError, Labels};
pub use path::RunFolder;
pub use run::Run;
pub use totals::{Total, Totals};
pub use trace_file::TraceFile;

/// The version of the layout and of the columns. Readers refuse later ones.
pub const VERSION: u32 = 1;

/// The file that makes a folder a dataset.
pub const MANIFEST: &str = "heapline-dataset.json";

/// The key of the version in the metadata of every table.
pub const VERSION_KEY: &str = "heapline.dataset.version";

/// The file with the checksums of the others.
pub const CHECKSUMS: &str = "checksums.sfv";

/// The files of a run, in the order in which they are to be stored: a run without the last one is not
/// complete.
pub const FILES: [&str; 6] = [
    "frames.parquet",
    "stacks.parquet",
    "blocks.parquet",
    "sites.parquet",
    CHECKSUMS,
    "runs.parquet",
];
