//! Notices that a file is not the one that was loaded any more.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::trace::{Subjects, Trace};

/// The properties of a file that change when another one is written in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    len: u64,
    modified: Option<SystemTime>,
    /// The device and the number of the file on it.
    #[cfg(unix)]
    inode: (u64, u64),
}

impl FileStamp {
    /// The state of a trace's file now; `None` for pipes, and for files that are gone.
    fn of(trace: &Trace) -> Option<Self> {
        trace.size?;
        let metadata = fs::metadata(&trace.path).ok()?;
        Some(Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino())
            },
        })
    }
}

/// The state of the files that were loaded.
#[derive(Debug, Default)]
pub(crate) struct LoadedFiles(Mutex<Vec<(String, FileStamp)>>);

impl LoadedFiles {
    /// Remembers the files as they are now.
    pub(crate) fn note(&self, subjects: &Subjects) {
        let traces = [Some(&subjects.trace), subjects.against.as_ref()];
        let stamps = traces.into_iter().flatten();
        let stamps = stamps.filter_map(|trace| Some((trace.path.clone(), FileStamp::of(trace)?)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stamps.collect();
    }

    /// Returns true if there is another file in the place of one that was loaded, or if one was written to. What was loaded
    /// from a file that is gone is still all there is.
    pub(crate) fn are_overwritten(&self, subjects: &Subjects) -> bool {
        let loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let traces = [Some(&subjects.trace), subjects.against.as_ref()];
        traces.into_iter().flatten().any(|trace| {
            let before = loaded.iter().find(|(path, _)| *path == trace.path);
            before.is_some_and(|(_, before)| FileStamp::of(trace).is_some_and(|now| now != *before))
        })
    }
}
