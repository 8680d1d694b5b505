//! The program that wrote a profile, for names that the profile does not have.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An executable in memory, so that decoders need no input of their own.
#[derive(Clone, PartialEq, Eq)]
pub struct Executable {
    path: PathBuf,
    bytes: Arc<[u8]>,
}

impl Executable {
    /// Reads an executable.
    pub fn read(path: impl Into<PathBuf>) -> std::io::Result<Self> {
        let path = path.into();
        let bytes = std::fs::read(&path)?.into();
        Ok(Self { path, bytes })
    }

    /// Where it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Executable").field(&self.path).finish()
    }
}
