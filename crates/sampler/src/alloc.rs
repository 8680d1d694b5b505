//! The global allocator, which every allocation of the program goes through.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::large::{self, LARGE};
use crate::local::{self, Decision, Inside};
use crate::malloc::Malloc;
use crate::range::range;
use crate::session::{self, Known};
use crate::slab;

/// A global allocator that samples what it allocates.
///
/// Memory comes from another allocator. Until somebody [starts](crate::Profiler::start) sampling or
/// [tracing](crate::trace_to), and for all blocks that are not sampled afterwards, all that is added
/// is counting down a number that belongs to the thread, and a comparison when a block is freed.
///
/// ```
/// #[global_allocator]
/// static ALLOC: heapline::Alloc = heapline::Alloc::system();
/// # fn main() {}
/// ```
///
/// Around another allocator:
///
/// ```
/// # use std::alloc::System as Jemalloc;
/// #[global_allocator]
/// static ALLOC: heapline::Alloc<Jemalloc> = heapline::Alloc::new(Jemalloc);
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Alloc<A = Malloc> {
    inner: A,
    /// Below this, nothing is ours. Here and not in a static of this crate, since whoever has the
    /// allocator knows its address, which saves an instruction.
    limit: AtomicUsize,
}

impl Alloc {
    /// With the allocator of the system, as programs have that choose none.
    #[must_use]
    pub const fn system() -> Self {
        Self::new(Malloc)
    }
}

impl<A> Alloc<A> {
    /// With any other allocator.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self {
            inner,
            limit: AtomicUsize::new(usize::MAX),
        }
    }

    /// From now on blocks of ours may be freed.
    fn set_limit(&self) {
        self.limit.store(range().base(), Ordering::Relaxed);
    }

    /// Returns true if a block may have to be looked up when it is freed.
    #[inline]
    fn may_be_ours(&self, block: *mut u8, size: usize) -> bool {
        block.addr() >= self.limit.load(Ordering::Relaxed) || size >= LARGE
    }
}

/// A block that is freed or gets another size.
enum Old {
    /// One of the other allocator that was not sampled.
    Ordinary,
    /// One of the other allocator that was.
    Large(*mut Known),
    /// One in a place of ours.
    Placed(*mut Known),
    /// The sampler's own.
    Own,
}

impl Old {
    /// Finds out. If it is large and was sampled, it is not in the table afterwards.
    fn look(block: *mut u8, size: usize) -> Self {
        if range().contains(block) {
            return slab::known(block).map_or(Self::Own, Self::Placed);
        }
        if size >= LARGE {
            return large::remove(block).map_or(Self::Ordinary, Self::Large);
        }
        Self::Ordinary
    }
}

impl<A: GlobalAlloc> Alloc<A> {
    #[inline]
    unsafe fn inner_alloc(&self, layout: Layout, zeroed: bool) -> *mut u8 {
        // SAFETY: as the caller's.
        unsafe {
            if zeroed {
                self.inner.alloc_zeroed(layout)
            } else {
                self.inner.alloc(layout)
            }
        }
    }

    // What follows takes its arguments in the order in which the program gives them, and the allocator
    // last: so they need not be moved for it on the way of ordinary blocks.

    #[cold]
    #[inline(never)]
    unsafe fn alloc_slowly(size: usize, align: usize, zeroed: bool, this: &Self) -> *mut u8 {
        // SAFETY: they are of a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        // SAFETY: as the caller's.
        unsafe { this.alloc_or_sample(layout, zeroed) }
    }

    unsafe fn alloc_or_sample(&self, layout: Layout, zeroed: bool) -> *mut u8 {
        match local::trip(layout.size()) {
            // SAFETY: as the caller's.
            Decision::Ordinary => unsafe { self.inner_alloc(layout, zeroed) },
            Decision::Own => {
                let block = slab::own(layout, zeroed);
                if block.is_null() {
                    // Better in the profiled heap than not at all.
                    // SAFETY: as the caller's.
                    return unsafe { self.inner_alloc(layout, zeroed) };
                }
                self.set_limit();
                block
            }
            Decision::Sampled(hits) => {
                let _inside = Inside::enter();
                // SAFETY: as the caller's.
                unsafe { self.put(layout, hits, null_mut(), zeroed) }
            }
        }
    }

    /// Makes a block that is sampled. `before` is what is known about the one that it replaces, and
    /// stays valid if there is no memory for a large block. The sampler must be at work.
    unsafe fn put(&self, layout: Layout, hits: usize, before: *mut Known, zeroed: bool) -> *mut u8 {
        if layout.size() >= LARGE {
            // SAFETY: as the caller's.
            let block = unsafe { self.inner_alloc(layout, zeroed) };
            // A request that fails is no allocation, and may be for any size.
            if !block.is_null() {
                let known = session::born(layout.size(), hits, before);
                large::insert(block, known);
            }
            return block;
        }
        let known = session::born(layout.size(), hits, before);
        if known.is_null() {
            // SAFETY: as the caller's.
            return unsafe { self.inner_alloc(layout, zeroed) };
        }
        let block = slab::place(layout, known, zeroed);
        if block.is_null() {
            // There is no room for more: what cannot be recognised is not followed.
            session::freed(known);
            // SAFETY: as the caller's.
            return unsafe { self.inner_alloc(layout, zeroed) };
        }
        self.set_limit();
        block
    }

    #[cold]
    #[inline(never)]
    unsafe fn dealloc_slowly(block: *mut u8, size: usize, align: usize, this: &Self) {
        // SAFETY: they are of a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        match Old::look(block, layout.size()) {
            Old::Own => slab::give_back_own(block),
            Old::Placed(known) => {
                slab::give_back_place(block);
                session::died(known);
            }
            Old::Large(known) => {
                session::died(known);
                // SAFETY: as the caller's.
                unsafe { this.inner.dealloc(block, layout) };
            }
            // SAFETY: as the caller's.
            Old::Ordinary => unsafe { this.inner.dealloc(block, layout) },
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn realloc_slowly(
        block: *mut u8,
        size: usize,
        align: usize,
        new_size: usize,
        used_up: bool,
        this: &Self,
    ) -> *mut u8 {
        // SAFETY: they are of a layout.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        // SAFETY: as the caller's.
        unsafe { this.realloc_or_sample(block, layout, new_size, used_up) }
    }

    /// A block that gets another size dies, and one of that size is born: it is sampled, or not, as
    /// any other. What was known of it is known of the new one if both are.
    unsafe fn realloc_or_sample(
        &self,
        block: *mut u8,
        layout: Layout,
        new_size: usize,
        used_up: bool,
    ) -> *mut u8 {
        let decision = if used_up {
            local::trip(new_size)
        } else {
            Decision::Ordinary
        };
        // SAFETY: the caller promises that the size fits.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let old = Old::look(block, layout.size());
        let known = match old {
            Old::Own => return own_realloc(block, layout, new_layout),
            Old::Large(known) | Old::Placed(known) => known,
            Old::Ordinary => null_mut(),
        };
        let is_placed = matches!(old, Old::Placed(_));
        let Decision::Sampled(hits) = decision else {
            // SAFETY: as the caller's.
            let new = unsafe {
                if is_placed {
                    copied(block, layout, self.inner.alloc(new_layout), new_size)
                } else {
                    self.inner.realloc(block, layout, new_size)
                }
            };
            match (new.is_null(), is_placed) {
                (false, true) => slab::give_back_place(block),
                (true, false) => {
                    let _inside = Inside::enter();
                    large::insert(block, known);
                }
                _ => {}
            }
            if !new.is_null() {
                session::died(known);
            }
            return new;
        };
        let _inside = Inside::enter();
        if !is_placed && new_size >= LARGE {
            // It stays where the other allocator has it.
            // SAFETY: as the caller's.
            let new = unsafe { self.inner.realloc(block, layout, new_size) };
            if new.is_null() {
                large::insert(block, known);
            } else {
                large::insert(new, session::born(new_size, hits, known));
            }
            return new;
        }
        // SAFETY: as the caller's.
        let new = unsafe {
            let new = self.put(new_layout, hits, known, false);
            copied(block, layout, new, new_size)
        };
        if is_placed {
            if new.is_null() && new_size < LARGE {
                slab::set_known::<Known>(block, null_mut());
            } else if !new.is_null() {
                slab::give_back_place(block);
            }
        } else if !new.is_null() {
            // SAFETY: it is not used any more.
            unsafe { self.inner.dealloc(block, layout) };
        }
        new
    }
}

/// Copies a block's content to a new one, if there is one, and returns that.
///
/// # Safety
///
/// `block` is of that layout, and `new` of that size, or null.
unsafe fn copied(block: *mut u8, layout: Layout, new: *mut u8, new_size: usize) -> *mut u8 {
    if !new.is_null() {
        let len = layout.size().min(new_size);
        // SAFETY: both have that many bytes, and are not the same.
        unsafe { std::ptr::copy_nonoverlapping(block, new, len) };
    }
    new
}

/// Gives memory of our own another size.
fn own_realloc(block: *mut u8, layout: Layout, new_layout: Layout) -> *mut u8 {
    if new_layout.size() <= slab::capacity(block) {
        return block;
    }
    // SAFETY: the new one is larger than the old one.
    let new = unsafe {
        copied(
            block,
            layout,
            slab::own(new_layout, false),
            new_layout.size(),
        )
    };
    if !new.is_null() {
        slab::give_back_own(block);
    }
    new
}

// SAFETY: blocks come from the other allocator, or from places of ours that are as large and as
// aligned as asked for; each is given back to where it came from.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Alloc<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if local::count(layout.size()) {
            // SAFETY: as the caller's.
            return unsafe { Self::alloc_slowly(layout.size(), layout.align(), false, self) };
        }
        // SAFETY: as the caller's.
        unsafe { self.inner.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.may_be_ours(block, layout.size()) {
            // SAFETY: as the caller's.
            return unsafe { Self::dealloc_slowly(block, layout.size(), layout.align(), self) };
        }
        // SAFETY: as the caller's: it is not ours.
        unsafe { self.inner.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if local::count(layout.size()) {
            // SAFETY: as the caller's.
            return unsafe { Self::alloc_slowly(layout.size(), layout.align(), true, self) };
        }
        // SAFETY: as the caller's.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let used_up = local::count(new_size);
        if used_up || self.may_be_ours(block, layout.size()) {
            let (size, align) = (layout.size(), layout.align());
            // SAFETY: as the caller's.
            return unsafe { Self::realloc_slowly(block, size, align, new_size, used_up, self) };
        }
        // SAFETY: as the caller's: it is not ours.
        unsafe { self.inner.realloc(block, layout, new_size) }
    }
}
