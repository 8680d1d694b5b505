//! Memory-mapped files.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::file::check_size_limit;

/// Makes a part of a file exist, on the disk: writing to it through memory must not fail, since
/// that would be a signal that kills the program.
pub(crate) fn reserve(file: &File, offset: u64, len: usize) -> io::Result<()> {
    check_size_limit(offset, len)?;
    match fallocate(file.as_fd(), FallocateFlags::empty(), offset, len as u64) {
        // File systems that cannot reserve get the bytes written.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            std::os::unix::fs::FileExt::write_all_at(file, &vec![0; len], offset)
        }
        result => result.map_err(Into::into),
    }
}

/// Maps a part of a file that was [reserved](reserve), shared with the file, until it is
/// [unmapped](unmap), if ever: a recorder cannot know when the last thread of the program has left it.
pub(crate) fn map(file: &File, offset: u64, len: usize) -> io::Result<&'static mut [u8]> {
    // SAFETY: the kernel chooses the address, so that no memory of anybody is replaced.
    let start = unsafe {
        mmap(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::POPULATE,
            file.as_fd(),
            offset,
        )
    }?;
    // SAFETY: `len` bytes were mapped, nobody else has their address, they are never unmapped, and
    // every pattern is a valid byte. Other processes only read the file, by system calls.
    Ok(unsafe { std::slice::from_raw_parts_mut(start.cast(), len) })
}

/// Ends a [mapping](map).
///
/// # Safety
///
/// `start` and `len` are those of a whole mapping, and nobody uses it any more.
pub(crate) unsafe fn unmap(start: *const u8, len: usize) {
    // SAFETY: as the caller's.
    let _ = unsafe { munmap(start.cast_mut().cast(), len) };
}
