//! Files that are being written: they have another name until they are complete, and are gone if
//! that never happens, be it because the user stopped the program.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// What is to be removed if a signal ends the program.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file under a name of its own, beside the one that it is to have.
pub(crate) struct File {
    file: fs::File,
    path: PathBuf,
}

impl File {
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        remove_on_signals();
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.heapline-{}", std::process::id()));
        let file = fs::File::options()
            .write(true)
            .create_new(true)
            .open(&path)?;
        unfinished().push(path.clone());
        Ok(Self { file, path })
    }

    pub(crate) fn set_permissions(&self, permissions: fs::Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    /// Gives the file its name, which must be free.
    pub(crate) fn rename(self, target: &Path) -> io::Result<()> {
        match fs::hard_link(&self.path, target) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Not every file system has links.
            Err(_) => self.rename_over(target),
        }
    }

    /// Gives the file its name, whatever had it before.
    pub(crate) fn rename_over(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // It has its name, or nobody wants it.
        let _ = fs::remove_file(&self.path);
        unfinished().retain(|path| *path != self.path);
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove_on_signals() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // With a handler, a file that grows too large is an error like a full disk.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGXFSZ]) else {
            return;
        };
        std::thread::spawn(move || {
            for signal in signals.forever().filter(|&signal| signal != SIGXFSZ) {
                for path in unfinished().drain(..) {
                    let _ = fs::remove_file(path);
                }
                let _ = emulate_default_handler(signal);
            }
        });
    });
}
