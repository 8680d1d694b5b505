//! The agent's own allocator. It never uses the program's allocator, which may be the one that is
//! recorded, or not initialised yet.
//!
//! Allocations are few: growing tables, and cached names. So it is simple: sizes are powers of two,
//! freed blocks are kept in a free list per size, and large blocks are mapped and unmapped.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

const SMALLEST: usize = 16;
/// Pieces larger than this have pages of their own.
const LARGEST: usize = 1 << 14;
/// Size of the mappings requested from the system.
const CHUNK: usize = 1 << 18;
const PAGE: usize = 4096;

const CLASSES: usize = (LARGEST / SMALLEST).trailing_zeros() as usize + 1;

/// The allocator.
pub(crate) struct Memory {
    locked: AtomicBool,
    pieces: UnsafeCell<Pieces>,
}

struct Pieces {
    /// Freed pieces by size; each begins with the address of the next.
    free: [*mut u8; CLASSES],
    /// The unused part of the last chunk.
    rest: *mut u8,
    rest_len: usize,
}

// SAFETY: `pieces` is only reached while `locked` is held.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) const fn new() -> Self {
        Self {
            locked: AtomicBool::new(false),
            pieces: UnsafeCell::new(Pieces {
                free: [null_mut(); CLASSES],
                rest: null_mut(),
                rest_len: 0,
            }),
        }
    }

    fn lock(&self) {
        // Nobody holds it for long, and a lock of the system's might want memory.
        while self.locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
    }

    /// Calls a function that copies this process and allocates nothing: the copy can allocate, since no
    /// other thread is at it.
    pub(crate) fn while_unused<R>(&self, f: impl FnOnce() -> R) -> R {
        self.lock();
        let result = f();
        self.locked.store(false, Ordering::Release);
        result
    }

    fn with_pieces<R>(&self, f: impl FnOnce(&mut Pieces) -> R) -> R {
        self.lock();
        // SAFETY: the lock is held.
        let result = f(unsafe { &mut *self.pieces.get() });
        self.locked.store(false, Ordering::Release);
        result
    }
}

/// The size that is really used, and its class if it is small.
fn size_of(layout: Layout) -> (usize, Option<usize>) {
    let size = layout.size().max(layout.align()).max(SMALLEST);
    if size > LARGEST {
        return (size.next_multiple_of(PAGE), None);
    }
    let size = size.next_power_of_two();
    let class = (size / SMALLEST).trailing_zeros() as usize;
    (size, Some(class))
}

impl Pieces {
    fn take(&mut self, size: usize, class: usize) -> *mut u8 {
        let piece = self.free[class];
        if !piece.is_null() {
            // SAFETY: a freed piece holds the address of the next one, or null.
            self.free[class] = unsafe { piece.cast::<*mut u8>().read_unaligned() };
            return piece;
        }
        // Pieces are aligned to their size: what is before that is lost, less than as much again.
        let skip = self.rest.align_offset(size);
        if self.rest.is_null() || self.rest_len < skip.saturating_add(size) {
            let chunk = map(CHUNK);
            if chunk.is_null() {
                return chunk;
            }
            (self.rest, self.rest_len) = (chunk, CHUNK);
            return self.take(size, class);
        }
        // SAFETY: both are within the chunk, as was just checked.
        let piece = unsafe { self.rest.add(skip) };
        // SAFETY: as above.
        self.rest = unsafe { piece.add(size) };
        self.rest_len -= skip + size;
        piece
    }

    fn give_back(&mut self, piece: *mut u8, class: usize) {
        // SAFETY: the piece is free, and large and aligned enough for an address.
        unsafe { piece.cast::<*mut u8>().write_unaligned(self.free[class]) };
        self.free[class] = piece;
    }
}

/// Zeroed memory from the system; null if it has none.
fn map(len: usize) -> *mut u8 {
    // SAFETY: the system chooses an address that is not in use.
    let start = unsafe {
        libc::mmap(
            null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        null_mut()
    } else {
        start.cast()
    }
}

// SAFETY: pieces are as large and as aligned as asked for (nothing asks for more than a page's
// alignment beyond `LARGEST`), and nobody gets one that is in use.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match size_of(layout) {
            (size, Some(class)) => self.with_pieces(|pieces| pieces.take(size, class)),
            (size, None) if layout.align() <= PAGE => map(size),
            _ => null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        let piece = unsafe { self.alloc(layout) };
        // What comes from the system is zeroed, and takes memory only where it is used.
        if let (_, Some(_)) = size_of(layout)
            && !piece.is_null()
        {
            // SAFETY: it has this many bytes.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match size_of(layout) {
            (_, Some(class)) => self.with_pieces(|pieces| pieces.give_back(piece, class)),
            (size, None) => {
                // SAFETY: it was mapped with this size.
                unsafe { libc::munmap(piece.cast(), size) };
            }
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Ok(new_layout) = Layout::from_size_align(new_size, layout.align()) else {
            return null_mut();
        };
        match (size_of(layout), size_of(new_layout)) {
            (old, new) if old == new => piece,
            ((old, None), (new, None)) => {
                // SAFETY: it was mapped with the old size.
                let moved = unsafe { libc::mremap(piece.cast(), old, new, libc::MREMAP_MAYMOVE) };
                if moved == libc::MAP_FAILED {
                    null_mut()
                } else {
                    moved.cast()
                }
            }
            _ => {
                // SAFETY: as the caller's.
                let new = unsafe { self.alloc(new_layout) };
                if !new.is_null() {
                    let len = layout.size().min(new_size);
                    // SAFETY: both have this many bytes and are different.
                    unsafe { std::ptr::copy_nonoverlapping(piece, new, len) };
                    // SAFETY: it is not used any more.
                    unsafe { self.dealloc(piece, layout) };
                }
                new
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The tests of this crate run on this allocator, so it has been used a good deal already.
    #[test]
    fn pieces_do_not_overlap_and_are_aligned() {
        let memory = Memory::new();
        let mut held: HashMap<usize, (Layout, u8)> = HashMap::new();
        let mut random = 1_u64;
        for round in 0..20_000_u32 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let size = 1_usize << (random >> 60);
            let size = size * 8 + (random >> 40) as usize % 61;
            let layout = Layout::from_size_align(size, 1 << (random >> 20 & 7)).unwrap();
            // SAFETY: the size is not 0.
            let piece = unsafe { memory.alloc(layout) };
            assert!(!piece.is_null());
            assert_eq!(piece.addr() % layout.align(), 0);
            let mark = round.to_le_bytes()[0];
            // SAFETY: it has that many bytes.
            unsafe { piece.write_bytes(mark, size) };
            assert!(
                held.insert(piece.expose_provenance(), (layout, mark))
                    .is_none()
            );
            if held.len() > 100 {
                let (&address, &(layout, mark)) = held.iter().next().unwrap();
                held.remove(&address);
                let piece = std::ptr::with_exposed_provenance_mut::<u8>(address);
                // SAFETY: it is ours, of that size, and is not used after it is freed.
                unsafe {
                    let bytes = std::slice::from_raw_parts(piece, layout.size());
                    assert!(bytes.iter().all(|byte| *byte == mark), "overwritten");
                    memory.dealloc(piece, layout);
                }
            }
        }
    }

    #[test]
    fn growing_keeps_what_is_there() {
        let memory = Memory::new();
        let mut layout = Layout::from_size_align(8, 8).unwrap();
        // SAFETY: pieces are used with the size that they were asked for with.
        unsafe {
            let mut piece = memory.alloc(layout);
            piece.write_bytes(7, 8);
            for size in [
                16,
                24,
                1000,
                30_000,
                40_000,
                1 << 20,
                1 << 22,
                50_000,
                100,
                8,
            ] {
                piece = memory.realloc(piece, layout, size);
                assert!(!piece.is_null());
                layout = Layout::from_size_align(size, 8).unwrap();
                assert_eq!(std::slice::from_raw_parts(piece, 8), [7; 8], "{size}");
                piece.add(8).write_bytes(9, size - 8);
            }
            memory.dealloc(piece, layout);
        }
    }

    #[test]
    fn freed_pieces_are_used_again() {
        let memory = Memory::new();
        let layout = Layout::from_size_align(100, 8).unwrap();
        // SAFETY: as above.
        unsafe {
            let first = memory.alloc(layout);
            memory.dealloc(first, layout);
            assert_eq!(memory.alloc(layout), first);
        }
    }
}
