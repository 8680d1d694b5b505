//! Files as storages of profiles.

#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
#[cfg(not(unix))]
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use heapline_profile::Storage;
use tempfile::NamedTempFile;

/// A file that is appended to, and read at any place.
#[derive(Debug)]
pub(crate) struct FileStorage {
    file: File,
    /// Also the lock of those who append.
    len: Mutex<u64>,
}

impl FileStorage {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self {
            len: Mutex::new(file.metadata()?.len()),
            file,
        })
    }
}

impl Storage for FileStorage {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut len = self.len.lock().unwrap_or_else(PoisonError::into_inner);
        let place = *len;
        write_at(&self.file, place, bytes)?;
        *len += bytes.len() as u64;
        Ok(place)
    }

    fn read_at(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        // Elsewhere a file has one position for all.
        #[cfg(not(unix))]
        let _lock = self.len.lock().unwrap_or_else(PoisonError::into_inner);
        read_at(&self.file, place, bytes)
    }
}

#[cfg(unix)]
fn read_at(file: &File, place: u64, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, place)
}

#[cfg(unix)]
fn write_at(file: &File, place: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, place)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, place: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(bytes)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, place: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(place))?;
    file.write_all(bytes)
}

/// A file that gets its name when it is complete. If the process is killed before that, nothing is left, where the file system can
/// have files without names; elsewhere a file with a temporary name.
#[derive(Debug)]
pub(crate) enum NewFile {
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Named(NamedTempFile),
}

impl NewFile {
    /// Creates a file in a directory.
    pub(crate) fn create(directory: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, Mode, OFlags, openat};
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            if let Ok(file) = openat(CWD, directory, flags, mode) {
                return Ok(Self::Unnamed(file.into()));
            }
        }
        let named = tempfile::Builder::new()
            .prefix(".heapline-index-")
            .tempfile_in(directory)?;
        Ok(Self::Named(named))
    }

    /// Another handle to the file.
    pub(crate) fn open(&self) -> io::Result<File> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => file.try_clone(),
            Self::Named(file) => file.as_file().try_clone(),
        }
    }

    /// Gives it its name. It replaces a file with that name, at once. Those who may read the trace may read it: it tells the same.
    pub(crate) fn persist(self, path: &Path, trace: &Metadata) -> io::Result<()> {
        let file = self.open()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let readers = trace.permissions().mode() & 0o444;
            file.set_permissions(Permissions::from_mode(readers | 0o600))?;
        }
        #[cfg(not(unix))]
        let _ = trace;
        file.sync_all()?;
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => persist_unnamed(&file, path),
            Self::Named(file) => {
                file.persist(path)?;
                Ok(())
            }
        }
    }
}

/// Links a file without a name under a temporary one, which is moved then: a link does not replace a file.
#[cfg(target_os = "linux")]
fn persist_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};

    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let temporary = directory.join(name);
    linkat(CWD, &source, CWD, &temporary, AtFlags::SYMLINK_FOLLOW)?;
    let renamed = std::fs::rename(&temporary, path);
    if renamed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    renamed
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}
