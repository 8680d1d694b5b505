//! Slab allocator in the [range](crate::range): slots for sampled blocks, and the sampler's own memory.
//!
//! Sizes are powers of two, a chunk has slots of one size, and free slots are in a free list. Each slot
//! is aligned to its size. For each sampled block, a word at the start of its chunk points to its
//! metadata.
//!
//! While the sampler runs, all allocations by it or by libraries it uses are served from its own memory,
//! so the heap of the profiled program is unaffected.

use std::alloc::Layout;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::lock::{Guard, Lock};
use crate::range::{CHUNK, range};

const SMALLEST: usize = 16;
const CLASSES: usize = 16;
/// Larger places are chunks.
const LARGEST: usize = SMALLEST << (CLASSES - 1);

/// A use of chunks: slots for sampled blocks of a class.
const SAMPLED: u8 = 1;
/// Memory of our own, of a class.
const OWN: u8 = 0x40;
/// Memory of our own: this chunk and some that follow, by the logarithm of their number.
const OWN_RUN: u8 = 0x80;

static PLACES: [Lock<Slab>; CLASSES] = [const { Lock::new(Slab::new()) }; CLASSES];
static PIECES: [Lock<Slab>; CLASSES] = [const { Lock::new(Slab::new()) }; CLASSES];

/// The free slots of a class.
struct Slab {
    /// Free list of slots that were used before; each begins with a pointer to the next.
    free: *mut u8,
    /// The unused slots in the last chunk.
    fresh: *mut u8,
    left: usize,
}

// SAFETY: what is free is nobody's.
unsafe impl Send for Slab {}

impl Slab {
    const fn new() -> Self {
        Self {
            free: null_mut(),
            fresh: null_mut(),
            left: 0,
        }
    }

    /// Takes a place. `header` is what the beginning of a chunk is needed for.
    fn take(&mut self, class: usize, kind: u8, header: usize, zeroed: bool) -> *mut u8 {
        let size = SMALLEST << class;
        if !self.free.is_null() {
            let place = self.free;
            // SAFETY: a free place begins with the next one.
            self.free = unsafe { place.cast::<*mut u8>().read() };
            if zeroed {
                // SAFETY: it is as large, and nobody's.
                unsafe { place.write_bytes(0, size) };
            }
            return place;
        }
        if self.left == 0 {
            let Some(chunk) = range().take(0, kind) else {
                return null_mut();
            };
            // SAFETY: the header is less than a chunk.
            self.fresh = unsafe { chunk.add(header) };
            self.left = (CHUNK - header) / size;
        }
        let place = self.fresh;
        self.left -= 1;
        // SAFETY: it is in the chunk, or its end.
        self.fresh = unsafe { place.add(size) };
        place
    }

    fn give_back(&mut self, place: *mut u8) {
        // SAFETY: it is free, and as large and as aligned as a pointer at least.
        unsafe { place.cast::<*mut u8>().write(self.free) };
        self.free = place;
    }
}

/// The class of places that are so large and so aligned.
fn class_of(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST);
    (size <= LARGEST).then(|| (size.next_power_of_two() / SMALLEST).trailing_zeros() as usize)
}

/// The room for the words about places, at the beginning of a chunk: places are aligned to their
/// size, so that is a multiple of it.
fn header(class: usize) -> usize {
    let size = SMALLEST << class;
    (CHUNK / size * size_of::<usize>()).next_multiple_of(size)
}

/// A place for a sampled block, with what is known about it; null if there is none.
pub(crate) fn place<T>(layout: Layout, known: *mut T, zeroed: bool) -> *mut u8 {
    let Some(class) = class_of(layout) else {
        return null_mut();
    };
    let kind = SAMPLED + class_byte(class);
    let place = lock(&PLACES, class).take(class, kind, header(class), zeroed);
    if !place.is_null() {
        let (_, chunk) = range().chunk_of(place);
        word(chunk, class, place).store(known.cast(), Ordering::Relaxed);
    }
    place
}

/// The metadata of the block at a pointer into the range; `None` if it is the sampler's own memory.
pub(crate) fn known<T>(place: *mut u8) -> Option<*mut T> {
    let (kind, chunk) = range().chunk_of(place);
    let class = sampled_class(kind)?;
    let known = word(chunk, class, place).load(Ordering::Relaxed);
    Some(known.cast())
}

/// Changes what is known about a sampled block.
pub(crate) fn set_known<T>(place: *mut u8, known: *mut T) {
    let (kind, chunk) = range().chunk_of(place);
    if let Some(class) = sampled_class(kind) {
        word(chunk, class, place).store(known.cast(), Ordering::Relaxed);
    }
}

/// Takes back the place of a sampled block.
pub(crate) fn give_back_place(place: *mut u8) {
    let (kind, _) = range().chunk_of(place);
    if let Some(class) = sampled_class(kind) {
        lock(&PLACES, class).give_back(place);
    }
}

fn sampled_class(kind: u8) -> Option<usize> {
    (SAMPLED..OWN)
        .contains(&kind)
        .then(|| usize::from(kind - SAMPLED))
}

/// The word about a place.
fn word(chunk: *mut u8, class: usize, place: *mut u8) -> &'static AtomicPtr<u8> {
    let offset = place.addr() - chunk.addr() - header(class);
    let index = offset / (SMALLEST << class);
    // SAFETY: a chunk begins with a word for each of its places, and stays what it is for good.
    unsafe { &*chunk.cast::<AtomicPtr<u8>>().add(index) }
}

/// Memory of our own; null if there is none. Memory that was never used is not written to if it shall
/// be zeroed: large tables take memory only where they are used.
pub(crate) fn own(layout: Layout, zeroed: bool) -> *mut u8 {
    match class_of(layout) {
        Some(class) => lock(&PIECES, class).take(class, OWN + class_byte(class), 0, zeroed),
        None if layout.align() <= CHUNK => {
            let log = layout.size().div_ceil(CHUNK).next_power_of_two();
            let log = log.trailing_zeros() as usize;
            let kind = OWN_RUN + class_byte(log);
            range().take(log, kind).unwrap_or(null_mut())
        }
        None => null_mut(),
    }
}

/// Takes back memory of our own.
pub(crate) fn give_back_own(piece: *mut u8) {
    let (kind, _) = range().chunk_of(piece);
    if kind >= OWN_RUN {
        range().give_back(piece, usize::from(kind - OWN_RUN));
    } else {
        lock(&PIECES, usize::from(kind - OWN)).give_back(piece);
    }
}

/// The capacity of the slot at a pointer into the range.
pub(crate) fn capacity(pointer: *mut u8) -> usize {
    let (kind, _) = range().chunk_of(pointer);
    match kind {
        OWN_RUN.. => CHUNK << (kind - OWN_RUN),
        OWN.. => SMALLEST << (kind - OWN),
        _ => SMALLEST << (kind - SAMPLED),
    }
}

fn lock(slabs: &'static [Lock<Slab>; CLASSES], class: usize) -> Guard<'static, Slab> {
    slabs[class].lock()
}

#[expect(clippy::cast_possible_truncation, reason = "there are few classes")]
fn class_byte(class: usize) -> u8 {
    class as u8
}

/// Before a fork.
pub(crate) fn hold() {
    PLACES.iter().chain(&PIECES).for_each(Lock::hold);
    range().hold();
}

/// After a fork.
pub(crate) fn release() {
    range().release();
    PLACES.iter().chain(&PIECES).for_each(Lock::release);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn pieces_and_places_do_not_overlap_are_aligned_and_are_known_by_their_address() {
        range().reserve().unwrap();
        let mut held: HashMap<usize, (*mut u8, Layout, u8)> = HashMap::new();
        let mut random = 1;
        for round in 0..20_000_usize {
            let bits = heapline_recorder::gaps::split_mix(&mut random);
            let size = (1_usize << (bits >> 60)) * 8 + (bits >> 40) as usize % 61;
            let layout = layout(size, 1 << (bits >> 20 & 15));
            let is_place = bits & 1 == 0;
            let known = std::ptr::without_provenance_mut::<u8>(round + 1);
            let pointer = if is_place {
                place(layout, known, false)
            } else {
                own(layout, false)
            };
            assert!(!pointer.is_null());
            assert!(range().contains(pointer) && capacity(pointer) >= size);
            assert_eq!(pointer.addr() % layout.align(), 0);
            assert_eq!(super::known(pointer), is_place.then_some(known));
            let mark = round.to_le_bytes()[0];
            // SAFETY: it has that many bytes.
            unsafe { pointer.write_bytes(mark, size) };
            assert!(
                held.insert(pointer.addr(), (pointer, layout, mark))
                    .is_none()
            );
            if held.len() > 100 {
                let (&address, &(pointer, layout, mark)) = held.iter().next().unwrap();
                held.remove(&address);
                // SAFETY: it was written to just so.
                let bytes = unsafe { std::slice::from_raw_parts(pointer, layout.size()) };
                assert!(bytes.iter().all(|byte| *byte == mark), "overwritten");
                match super::known::<u8>(pointer) {
                    Some(_) => give_back_place(pointer),
                    None => give_back_own(pointer),
                }
            }
        }
    }

    #[test]
    fn large_pieces_are_used_again() {
        range().reserve().unwrap();
        let layout = layout(5 << 20, 4096);
        let first = own(layout, false);
        assert_eq!(capacity(first), 8 << 20);
        give_back_own(first);
        assert_eq!(own(layout, false), first);
    }

    /// Threads have tables of a megabyte each, and use few parts of them.
    #[test]
    fn zeroed_memory_is_zero_and_takes_memory_where_it_is_used() {
        range().reserve().unwrap();
        for size in [100, 10_000, 400_000, 3 << 20] {
            let layout = layout(size, 8);
            for is_used_again in [false, true] {
                let memory = own(layout, true);
                let mut resident = vec![0_u8; size / 4096];
                if size > CHUNK {
                    let len = resident.len() * 4096;
                    // SAFETY: there is a byte for each page.
                    unsafe { libc::mincore(memory.cast(), len, resident.as_mut_ptr()) };
                    let used = resident.iter().filter(|page| **page & 1 == 1).count();
                    // A run that was free began with the next one.
                    assert!(used <= usize::from(is_used_again), "{used} pages");
                }
                // SAFETY: it has that many bytes.
                let bytes = unsafe { std::slice::from_raw_parts_mut(memory, size) };
                assert!(bytes.iter().all(|byte| *byte == 0), "{size}");
                bytes.fill(1);
                give_back_own(memory);
            }
        }
    }

    #[test]
    fn ordinary_memory_is_not_in_the_range() {
        range().reserve().unwrap();
        let local = 0_u8;
        assert!(!range().contains(&raw const local));
        assert!(!range().contains(Box::new(0_u8).as_ref()));
        assert!(!range().contains(std::ptr::null()));
    }
}
