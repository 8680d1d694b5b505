//! Errors of datasets.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// The reason why a trace was not added, or a dataset cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// `read`, `write` or the like.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a trace that can be read.
    #[error(transparent)]
    Trace(#[from] heapline_model::Error),
    /// The profile has sums in place of single blocks.
    #[error(
        "a Spacetime profile has no single blocks, which a dataset consists of; use summary, tree or export"
    )]
    NoBlocks,
    /// The folder has files, but is not a dataset.
    #[error(
        "{} is not a dataset, and not empty; give a new folder, or one with {}",
        .0.display(),
        crate::MANIFEST
    )]
    NotEmpty(PathBuf),
    /// The folder is not a dataset.
    #[error("{} is not a dataset: it has no {}", .0.display(), crate::MANIFEST)]
    NotADataset(PathBuf),
    /// The manifest is not one that this version reads.
    #[error("cannot use {}: {reason}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A table of the dataset cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Table {
        /// The table.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
}

impl Error {
    /// Makes an error of an action on a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn table(path: &Path, reason: impl Into<String>) -> Self {
        Self::Table {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn parquet(path: &Path) -> impl Fn(ParquetError) -> Self {
        let path = path.to_owned();
        move |error| Self::table(&path, error.to_string())
    }
}
