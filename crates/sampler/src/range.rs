//! The address range of the sampler.
//!
//! It holds sampled blocks and the sampler's own memory, so that `dealloc` can recognise them by
//! address. Reserving addresses takes no memory.
//!
//! Ordinary memory is below: the range is placed between the stack and the system's mappings, where
//! there is nearly always space for it, so that a comparison with [`Range::base`] decides for most
//! blocks. If there is no space, it is placed elsewhere, and some blocks need a second comparison.

use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use crate::lock::Lock;

/// The range is given out in pieces of this size, each for one kind of thing.
pub(crate) const CHUNK: usize = 1 << 20;

const GIB: usize = 1 << 30;

/// Lengths to try: less where the system or the user limits a program's addresses.
const LENGTHS: [usize; 5] = [32 * GIB, 8 * GIB, 2 * GIB, GIB / 2, GIB / 8];

/// The preferred end of the range: the stack of a process begins in the 16 GiB below 2^47 (x86-64) or 2^48 (arm64),
/// and has 4 GiB below that.
const END: usize = if cfg!(target_arch = "aarch64") {
    0xfffb_0000_0000
} else {
    0x7ffb_0000_0000
};

/// The most chunks that go together: 2 to the power of one less than this.
const RUNS: usize = 15;

static RANGE: Range = Range {
    base: AtomicPtr::new(null_mut()),
    len: AtomicUsize::new(0),
    kinds: AtomicPtr::new(null_mut()),
    chunks: Lock::new(Chunks {
        used: 0,
        free: [None; RUNS],
    }),
};

/// The range.
#[derive(Debug)]
pub(crate) struct Range {
    base: AtomicPtr<u8>,
    len: AtomicUsize,
    /// The use of each chunk.
    kinds: AtomicPtr<AtomicU8>,
    chunks: Lock<Chunks>,
}

#[derive(Debug)]
struct Chunks {
    /// Chunks that were given out.
    used: usize,
    /// Freed runs by the logarithm of their length. Each begins with the next one, plus one.
    free: [Option<usize>; RUNS],
}

/// The range of this process.
#[inline]
pub(crate) fn range() -> &'static Range {
    &RANGE
}

impl Range {
    /// Reserves the addresses, if that is not done yet.
    pub(crate) fn reserve(&self) -> io::Result<()> {
        let chunks = self.chunks.lock();
        if self.len.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        let mut found = Err(io::Error::from_raw_os_error(libc::ENOMEM));
        for len in LENGTHS {
            found = map_near(END - len, len).map(|base| (base, len));
            if found.is_ok() {
                break;
            }
        }
        let (base, len) = found?;
        let kinds = map(
            null_mut(),
            len / CHUNK,
            libc::PROT_READ | libc::PROT_WRITE,
            0,
        )?;
        self.kinds.store(kinds.cast(), Ordering::Relaxed);
        self.base.store(base, Ordering::Relaxed);
        self.len.store(len, Ordering::Release);
        drop(chunks);
        Ok(())
    }

    /// The start of the range.
    pub(crate) fn base(&self) -> usize {
        self.base.load(Ordering::Relaxed).addr()
    }

    /// Returns true if an address is in the range.
    #[inline]
    pub(crate) fn contains(&self, address: *const u8) -> bool {
        let base = self.base.load(Ordering::Relaxed).addr();
        address.addr().wrapping_sub(base) < self.len.load(Ordering::Relaxed)
    }

    /// The use and the start of the chunk that a pointer into the range is in.
    #[inline]
    pub(crate) fn chunk_of(&self, pointer: *mut u8) -> (u8, *mut u8) {
        let offset = pointer.addr() - self.base();
        // SAFETY: the chunk is in the same range, before the pointer.
        let start = unsafe { pointer.sub(offset % CHUNK) };
        let kind = self.kind(offset / CHUNK).load(Ordering::Relaxed);
        (kind, start)
    }

    fn kind(&self, chunk: usize) -> &AtomicU8 {
        // SAFETY: there is one for each chunk of the range, zero at first, and for good.
        unsafe { &*self.kinds.load(Ordering::Relaxed).add(chunk) }
    }

    /// Takes 2 to the power of `log` chunks, and makes them usable. They are zeroed, without taking
    /// memory.
    pub(crate) fn take(&self, log: usize, kind: u8) -> Option<*mut u8> {
        let mut chunks = self.chunks.lock();
        let len = CHUNK << log;
        let first = match *chunks.free.get(log)? {
            Some(first) => {
                // SAFETY: a freed run begins with the number of the next one.
                let next = unsafe { self.start(first).cast::<usize>().replace(0) };
                chunks.free[log] = next.checked_sub(1);
                first
            }
            None => {
                let first = chunks.used;
                if (first + (1 << log)) * CHUNK > self.len.load(Ordering::Relaxed) {
                    return None;
                }
                let access = libc::PROT_READ | libc::PROT_WRITE;
                // SAFETY: these are addresses of ours that nobody uses.
                if unsafe { libc::mprotect(self.start(first).cast(), len, access) } != 0 {
                    return None;
                }
                chunks.used += 1 << log;
                first
            }
        };
        self.kind(first).store(kind, Ordering::Relaxed);
        Some(self.start(first))
    }

    /// Takes back what was taken with this `log`.
    pub(crate) fn give_back(&self, start: *mut u8, log: usize) {
        let len = CHUNK << log;
        // SAFETY: nobody uses it any more.
        if unsafe { libc::madvise(start.cast(), len, libc::MADV_DONTNEED) } != 0 {
            // SAFETY: as above.
            unsafe { start.write_bytes(0, len) };
        }
        let mut chunks = self.chunks.lock();
        let next = chunks.free[log].map_or(0, |next| next + 1);
        // SAFETY: it is a run of ours that nobody uses.
        unsafe { start.cast::<usize>().write(next) };
        chunks.free[log] = Some((start.addr() - self.base()) / CHUNK);
    }

    fn start(&self, chunk: usize) -> *mut u8 {
        // SAFETY: callers give chunks of the range.
        unsafe { self.base.load(Ordering::Relaxed).add(chunk * CHUNK) }
    }

    /// Before a fork.
    pub(crate) fn hold(&self) {
        self.chunks.hold();
    }

    /// After a fork.
    pub(crate) fn release(&self) {
        self.chunks.release();
    }
}

/// Reserves addresses at a place, or anywhere.
fn map_near(place: usize, len: usize) -> io::Result<*mut u8> {
    let wish = std::ptr::without_provenance_mut(place);
    map(wish, len, libc::PROT_NONE, libc::MAP_FIXED_NOREPLACE).or_else(|_| {
        // Chunks must be aligned: what is too much at the ends is a loss of addresses only.
        let start = map(null_mut(), len + CHUNK, libc::PROT_NONE, 0)?;
        // SAFETY: there is a chunk more than needed.
        Ok(unsafe { start.add(start.align_offset(CHUNK)) })
    })
}

fn map(wish: *mut u8, len: usize, access: i32, flags: i32) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags;
    // SAFETY: nothing that is there is replaced.
    let start = unsafe { libc::mmap(wish.cast(), len, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start: *mut u8 = start.cast();
    if !wish.is_null() && start != wish {
        // Kernels before 4.17 take the place as a wish.
        // SAFETY: it was mapped just now.
        unsafe { libc::munmap(start.cast(), len) };
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(start)
}
