//! The trace file, which all domains append their packets to.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heapline_trace::EarlyEnd;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The mode of new files: only their user can read what a trace tells, such as names and command lines.
const OWN: u32 = 0o600;

/// Creates a file that does not exist.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(OWN)
        .open(path)
}

thread_local! {
    /// True in a thread whose descriptors are not those of the program.
    pub(crate) static HAS_OWN_DESCRIPTORS: Cell<bool> = const { Cell::new(false) };
}

/// Whole packets, one after the other.
#[derive(Debug)]
pub(crate) struct TraceFile {
    writer: Mutex<Writer>,
    path: PathBuf,
    /// Device and inode of the file: if the descriptor was reused, nothing must be written to it.
    identity: (u64, u64),
    /// Bytes that are written.
    len: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    /// Replaced when the program has closed it, as daemons do with files they do not know.
    file: File,
    /// True if a packet could not be written: nothing may follow it.
    failed: bool,
}

impl TraceFile {
    /// Creates a trace. An existing file is replaced, not truncated: another process may have it
    /// open.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let existing = std::fs::symlink_metadata(path);
        if existing.is_ok_and(|data| data.is_file() && data.len() > 0) {
            std::fs::remove_file(path)?;
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(OWN)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        let identity = identity(&metadata);
        Ok(Self {
            writer: Mutex::new(Writer {
                file: out_of_the_way(file),
                failed: false,
            }),
            path: std::path::absolute(path)?,
            identity,
            len: AtomicU64::new(0),
        })
    }

    /// Closes the file, unless the program has closed it: then its descriptor may be another file.
    pub(crate) fn close(self) {
        let writer = self.writer.into_inner();
        let file = writer.unwrap_or_else(PoisonError::into_inner).file;
        let data = file.metadata();
        if data.is_ok_and(|data| identity(&data) == self.identity) {
            drop(file);
        } else {
            std::mem::forget(file);
        }
    }

    /// Bytes that are written.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Bytes that the file takes on disk.
    pub(crate) fn allocated(&self) -> io::Result<u64> {
        let mut end = self.end();
        end.with_file(|file| Ok(file.metadata()?.blocks() * 512))
    }

    /// Marks the trace as ended early, as far as it can be written.
    pub(crate) fn mark(&self, end: EarlyEnd) {
        let mut file = self.end();
        if self.len() > 0 {
            let _ = file.with_file(|file| {
                for (offset, bytes) in end.marks() {
                    file.write_all_at(&bytes, offset)?;
                }
                Ok(())
            });
        }
    }

    /// The end of the file, where nobody else writes meanwhile.
    pub(crate) fn end(&self) -> FileEnd<'_> {
        FileEnd {
            writer: self.writer.lock().unwrap_or_else(PoisonError::into_inner),
            trace: self,
        }
    }
}

/// The exclusive right to append packets.
#[derive(Debug)]
pub(crate) struct FileEnd<'a> {
    writer: MutexGuard<'a, Writer>,
    trace: &'a TraceFile,
}

impl FileEnd<'_> {
    /// The offset of the next packet.
    pub(crate) fn offset(&self) -> u64 {
        self.trace.len()
    }

    /// Writes a packet.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.writer.failed {
            return Err(io::Error::other("an earlier packet could not be written"));
        }
        let result = self.try_write(bytes);
        self.writer.failed = result.is_err();
        result
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let offset = self.offset();
        check_size_limit(offset, bytes.len())?;
        self.with_file(|file| file.write_all_at(bytes, offset))?;
        let len = offset + bytes.len() as u64;
        self.trace.len.store(len, Ordering::Relaxed);
        Ok(())
    }

    /// Calls a function with the file, which is opened again if the program has closed it.
    fn with_file<T>(&mut self, f: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let file = &mut self.writer.file;
        let is_ours = |file: &File| {
            file.metadata()
                .is_ok_and(|data| identity(&data) == self.trace.identity)
        };
        if is_ours(file) {
            return f(file);
        }
        let again = File::options().write(true).open(&self.trace.path)?;
        if !is_ours(&again) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the program closed the trace's file descriptor",
            ));
        }
        if HAS_OWN_DESCRIPTORS.try_with(Cell::get).unwrap_or(false) {
            // The program has it still.
            return f(&again);
        }
        // What has its number now belongs to the program.
        let old = std::mem::replace(file, out_of_the_way(again));
        std::mem::forget(old);
        f(file)
    }
}

/// An error if a file may not be so large. The system would not only say so, but also send a signal
/// that ends the program.
pub fn check_size_limit(place: u64, len: usize) -> io::Result<()> {
    let limit = getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| place + len as u64 > limit) {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(())
}

pub(crate) fn identity(data: &Metadata) -> (u64, u64) {
    (data.dev(), data.ino())
}

/// Gives a file a number that programs do not see: above those that they may have, where there are
/// any.
pub(crate) fn out_of_the_way(file: File) -> File {
    let limits = getrlimit(Resource::Nofile);
    let (Some(soft), hard) = (limits.current, limits.maximum.unwrap_or(1 << 20)) else {
        return file;
    };
    let room = (hard > soft + 16).then_some(Rlimit {
        current: Some(hard.min(soft + 4096)),
        maximum: limits.maximum,
    });
    let raised = room.is_some_and(|room| setrlimit(Resource::Nofile, room).is_ok());
    let from = if raised {
        soft
    } else {
        soft.saturating_sub(64)
    };
    let moved = i32::try_from(from)
        .ok()
        .and_then(|from| rustix::io::fcntl_dupfd_cloexec(&file, from).ok());
    if raised {
        // It was so before, and what is open stays open.
        let _ = setrlimit(Resource::Nofile, limits);
    }
    moved.map_or(file, |moved: OwnedFd| moved.into())
}
