//! Locks between processes that use the same dataset.
//!
//! They are of the operating system, so that they end with their process however that ends. Where there are none, as
//! on some network file systems, adds are still atomic; only the same trace may be added twice, under
//! different names of services and at the same moment, which a check reports.

use std::io;
use std::path::Path;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    #[cfg(unix)]
    _file: std::fs::File,
}

#[cfg(unix)]
impl Lock {
    /// Waits for the lock of a file or a folder.
    pub(crate) fn wait(path: &Path) -> io::Result<Self> {
        use rustix::fs::{FlockOperation, flock};

        let file = std::fs::File::open(path)?;
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) | Err(rustix::io::Errno::NOLCK | rustix::io::Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { _file: file })
    }

    /// Returns true if another process, or another part of this one, holds the lock.
    pub(crate) fn is_held(path: &Path) -> io::Result<bool> {
        use rustix::fs::{FlockOperation, flock};

        let file = std::fs::File::open(path)?;
        let result = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(result == Err(rustix::io::Errno::WOULDBLOCK))
    }
}

#[cfg(not(unix))]
impl Lock {
    #[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
    pub(crate) fn wait(_: &Path) -> io::Result<Self> {
        Ok(Self {})
    }

    /// Nobody adds a trace for more than a day.
    pub(crate) fn is_held(path: &Path) -> io::Result<bool> {
        let age = path.metadata()?.modified()?.elapsed();
        Ok(age.is_ok_and(|age| age < std::time::Duration::from_secs(24 * 60 * 60)))
    }
}
