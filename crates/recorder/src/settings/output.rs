//! The files that a recording writes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::file::create_new;

/// The files that a recording writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// This file, which is overwritten.
    File {
        /// The file.
        path: PathBuf,
        /// True if another process completes it.
        is_supervised: bool,
    },
    /// New files only, one for each process. Another process completes them.
    New {
        /// The file of the first process.
        first: Option<PathBuf>,
        /// The beginning of the names of others.
        prefix: OsString,
    },
}

/// A file for a trace.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) path: PathBuf,
    /// True if another process completes it.
    pub(super) is_supervised: bool,
}

impl Output {
    /// A file that is overwritten, as with memtrace.
    #[must_use]
    pub fn overwrite(path: impl AsRef<OsStr>) -> Self {
        Self::File {
            path: path.as_ref().into(),
            is_supervised: false,
        }
    }

    /// A file that is overwritten, and that another process completes.
    #[must_use]
    pub fn supervised(path: impl AsRef<OsStr>) -> Self {
        Self::File {
            path: path.as_ref().into(),
            is_supervised: true,
        }
    }

    /// The path of the trace, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } => path,
            Self::New { first, prefix } => first.as_deref().unwrap_or(Path::new(prefix)),
        }
    }

    /// Finds a file for the trace of this process. Several processes may do so at once.
    pub(super) fn claim(&self) -> io::Result<Claimed> {
        let (first, prefix) = match self {
            Self::File {
                path,
                is_supervised,
            } => {
                return Ok(Claimed {
                    path: path.clone(),
                    is_supervised: *is_supervised,
                });
            }
            Self::New { first, prefix } => (first, prefix),
        };
        let pid = std::process::id();
        let numbered = (1_u32..1000).map(|n| {
            let mut name = prefix.clone();
            if n == 1 {
                name.push(format!(".{pid}.ctf"));
            } else {
                name.push(format!(".{pid}-{n}.ctf"));
            }
            PathBuf::from(name)
        });
        let mut result = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        for path in first.clone().into_iter().chain(numbered) {
            result = create_new(&path).map(|_| Claimed {
                path,
                is_supervised: true,
            });
            match &result {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_find_files_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let first = directory.path().join("first.ctf");
        let output = Output::New {
            first: Some(first.clone()),
            prefix: directory.path().join("trace").into(),
        };
        let pid = std::process::id();
        let names: Vec<PathBuf> = (0..3).map(|_| output.claim().unwrap().path).collect();
        assert_eq!(
            names,
            [
                first,
                directory.path().join(format!("trace.{pid}.ctf")),
                directory.path().join(format!("trace.{pid}-2.ctf")),
            ]
        );
    }
}
