//! Questions to many runs: SQL on a dataset of Heapline, and reports made of SQL.
//!
//! A dataset has a folder for each run, with Parquet files. [`Engine`] runs statements on them, in this
//! process with `DataFusion` or on a Ballista cluster. The reports [`top`], [`trend`], [`diff`] and
//! [`regressions`] are made of statements of `question.rs`, which reduce a dataset to a row for each
//! group; what is left, the significance of differences, is computed here.
#![allow(
    clippy::print_stderr,
    reason = "it is a program that talks to its user"
)]

mod bucket;
mod bucket_runs;
mod cluster;
mod compare;
mod condition;
mod dataset;
pub mod diff;
mod engine;
mod groups;
mod keys;
mod output;
mod progress;
mod question;
pub mod regressions;
mod shell;
mod statements;
mod statistics;
pub mod text;
pub mod top;
pub mod trend;

pub use bucket::{Added, Bucket};
pub use compare::{ChangeRow, Comparing, Comparison, FALSE_DISCOVERY_RATE, Pair};
pub use dataset::{Dataset, TABLES};
pub use engine::{Engine, Place};
pub use groups::{Group, RunGroup, groups, run_groups};
pub use keys::Named;
pub use output::{Format, OutputOptions};
pub use progress::with_progress;
pub use question::{By, Measure, Question, Subject};
pub use shell::shell;
pub use statistics::{Change, Present, Sample, benjamini_hochberg};

/// The message of an error: of those of DataFusion, without the names of its types.
#[must_use]
pub fn message(error: &anyhow::Error) -> String {
    heapline_text::sanitize_lines(&format!("{error:#}")).into_owned()
}
