//! Output files while they are written: a temporary file in the same directory, renamed when it is
//! complete, and removed on errors and when a signal ends the program.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

/// Temporary files to remove if a signal ends the program.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary file beside the one that it becomes.
pub(crate) struct File {
    file: NamedTempFile,
    _removal: Removal,
}

impl File {
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        #[cfg(unix)]
        signals::remove_files();
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        // Locked before the file exists, so that a signal in between removes it.
        let mut unfinished = unfinished();
        let file = tempfile::Builder::new()
            .prefix(&format!(".{name}.heapline-"))
            // With the usual permissions instead of tempfile's.
            .make_in(target.parent().unwrap_or(Path::new("")), |path| {
                fs::File::options().write(true).create_new(true).open(path)
            })?;
        let path = file.path().to_owned();
        unfinished.push(path.clone());
        Ok(Self {
            file,
            _removal: Removal(path),
        })
    }

    pub(crate) fn set_permissions(&self, permissions: fs::Permissions) -> io::Result<()> {
        self.file.as_file().set_permissions(permissions)
    }

    /// Renames the file to `target`, which must not exist.
    pub(crate) fn rename(self, target: &Path) -> io::Result<()> {
        let Err(error) = self.file.persist_noclobber(target) else {
            return Ok(());
        };
        if error.error.kind() == io::ErrorKind::AlreadyExists {
            return Err(error.error);
        }
        // Not every file system can refuse to overwrite.
        Ok(error.file.persist(target).map(drop)?)
    }

    /// Renames the file to `target`, which is overwritten.
    pub(crate) fn rename_over(self, target: &Path) -> io::Result<()> {
        Ok(self.file.persist(target).map(drop)?)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

/// Removes a path from the list when its file has been renamed or removed.
struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
mod signals {
    use std::sync::Once;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Starts a thread that removes unfinished files when a signal ends the program.
    pub(super) fn remove_files() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            // With a handler for SIGXFSZ, exceeding the file size limit is an IO error.
            let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGXFSZ]) else {
                return;
            };
            std::thread::spawn(move || {
                for signal in signals.forever().filter(|&signal| signal != SIGXFSZ) {
                    for path in super::unfinished().drain(..) {
                        let _ = std::fs::remove_file(path);
                    }
                    let _ = emulate_default_handler(signal);
                }
            });
        });
    }
}
