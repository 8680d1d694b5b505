//! A trace that becomes a run.

use std::path::{Path, PathBuf};

use heapline_formats::Options;
use heapline_profile::{Profile, StoreOptions};
use heapline_trace::Snapshot;

use crate::{Error, RunId};

/// A trace file, as it is at one moment: it is read twice, and may still be written.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    snapshot: Snapshot,
}

impl TraceFile {
    /// Opens a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let metadata = path.metadata().map_err(Error::io("open", path))?;
        if !metadata.is_file() {
            let error = std::io::Error::other(
                "it is not a regular file; give a trace, usually named *.ctf",
            );
            return Err(Error::io("open", path)(error));
        }
        Ok(Self {
            path: path.to_owned(),
            snapshot: Snapshot::open(path).map_err(Error::io("open", path))?,
        })
    }

    /// The name of the file, without its folder.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Bytes of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.snapshot.size()
    }

    /// The id of the run: a hash of the file.
    pub fn id(&self) -> Result<RunId, Error> {
        RunId::of(self.snapshot.reader()).map_err(Error::io("read", &self.path))
    }

    /// Reads the trace. What is intact of a damaged one is used; the profile tells what is lost.
    pub fn profile(&self) -> Result<Profile, Error> {
        let memory = heapline_index::default_memory();
        let file = heapline_index::TraceFile::new(&self.path, memory);
        let bytes = || Ok(self.snapshot.reader());
        heapline_index::load(
            Some(&file),
            memory,
            Options::default(),
            StoreOptions::default(),
            bytes,
            Error::from,
        )
    }
}
