//! The memory mappings of the process, read from the kernel.
//!
//! The dynamic linker could be asked too, but not without its lock, which whoever is loading a
//! library holds while it allocates memory: that is how profilers deadlock.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A part of the address space.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mapping<'a> {
    pub(super) addresses: Range<u64>,
    pub(super) is_executable: bool,
    pub(super) is_readable: bool,
    /// The offset in the file.
    pub(super) offset: u64,
    /// Absolute, or empty if it is no file.
    pub(super) path: &'a str,
}

/// A line of `/proc/self/maps`.
pub(super) fn parse(line: &str) -> Option<Mapping<'_>> {
    let mut rest = line;
    let mut word = || {
        let trimmed = rest.trim_start();
        let (word, more) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        rest = more;
        word
    };
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word().split_once('-')?;
    let access = word();
    let offset = number(word())?;
    let (_device, _inode) = (word(), word());
    let path = rest.trim_start();
    Some(Mapping {
        addresses: number(start)?..number(end)?,
        is_executable: access.as_bytes().get(2) == Some(&b'x'),
        is_readable: access.starts_with('r'),
        offset,
        path: if path.starts_with('/') { path } else { "" },
    })
}

/// Copies memory of this process that may not be there any more. Whether it was.
pub(super) fn read_memory(address: u64, into: &mut [u8]) -> bool {
    let Ok(address) = usize::try_from(address) else {
        return false;
    };
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(address),
        iov_len: into.len(),
    };
    // SAFETY: the kernel writes into the buffer, and checks the address itself.
    let read = unsafe {
        let pid = libc::getpid();
        libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0)
    };
    read.cast_unsigned() == into.len() || read < 0 && read_from_file(address, into)
}

/// Reads memory from procfs, where sandboxes do not allow `process_vm_readv`.
fn read_from_file(address: usize, into: &mut [u8]) -> bool {
    let memory = File::open("/proc/self/mem");
    memory.is_ok_and(|memory| memory.read_exact_at(into, address as u64).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let line = "7f1c2e600000-7f1c2e628000 r-xp 00002000 fe:01 1234   /usr/lib/a b.so (deleted)";
        let expected = Mapping {
            addresses: 0x7f1c_2e60_0000..0x7f1c_2e62_8000,
            is_executable: true,
            is_readable: true,
            offset: 0x2000,
            path: "/usr/lib/a b.so (deleted)",
        };
        assert_eq!(parse(line), Some(expected));
        let stack = parse("7ffd0-7ffe0 rw-p 00000000 00:00 0   [stack]").unwrap();
        assert!(!stack.is_executable && stack.path.is_empty());
        assert_eq!(parse("what?"), None);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(maps.lines().all(|line| parse(line).is_some()));
    }

    #[test]
    fn memory_that_is_not_there_is_no_crash() {
        let value = 0x1234_u64;
        let mut bytes = [0; 8];
        let address = (&raw const value).expose_provenance() as u64;
        assert!(read_memory(address, &mut bytes));
        assert_eq!(u64::from_ne_bytes(bytes), value);
        assert!(!read_memory(8, &mut bytes));
        let from_file = &mut [0; 8];
        assert!(read_from_file((&raw const value).addr(), from_file));
        assert_eq!(*from_file, 0x1234_u64.to_ne_bytes());
    }
}
