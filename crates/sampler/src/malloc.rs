//! The allocator of the C library.

use std::alloc::{GlobalAlloc, Layout, System};

/// Every `malloc` aligns to this, whatever the size: that of glibc and musl to twice as much.
const ALIGNED: usize = 8;

/// The allocator of the C library, as [`System`] is; but with fewer instructions on the way to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Malloc;

// SAFETY: as `System`, whose blocks come from the same functions.
unsafe impl GlobalAlloc for Malloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: it has no conditions.
            unsafe { libc::malloc(layout.size()).cast() }
        } else {
            // SAFETY: as the caller's.
            unsafe { alloc_aligned(layout) }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: blocks of `System` come from `malloc`, or from functions whose blocks are freed
        // alike.
        unsafe { libc::free(block.cast()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: it has no conditions.
            unsafe { libc::calloc(layout.size(), 1).cast() }
        } else {
            // SAFETY: as the caller's.
            unsafe { alloc_zeroed_aligned(layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= ALIGNED {
            // SAFETY: the block comes from `malloc` or the like.
            unsafe { libc::realloc(block.cast(), new_size).cast() }
        } else {
            // SAFETY: as the caller's.
            unsafe { realloc_aligned(block, layout, new_size) }
        }
    }
}

// What is rare is out of the way, so that the rest does not have to prepare for it.

#[cold]
#[inline(never)]
unsafe fn alloc_aligned(layout: Layout) -> *mut u8 {
    // SAFETY: as the caller's.
    unsafe { System.alloc(layout) }
}

#[cold]
#[inline(never)]
unsafe fn alloc_zeroed_aligned(layout: Layout) -> *mut u8 {
    // SAFETY: as the caller's.
    unsafe { System.alloc_zeroed(layout) }
}

#[cold]
#[inline(never)]
unsafe fn realloc_aligned(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    // SAFETY: as the caller's.
    unsafe { System.realloc(block, layout, new_size) }
}
