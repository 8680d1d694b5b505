//! Table of large sampled blocks, which stay in the program's allocator.
//!
//! Only frees of large blocks look up the table; they are rare and slow anyway.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::Lock;

/// Blocks of this size are large.
pub(crate) const LARGE: usize = 1 << 16;

const SHARDS: usize = 64;

static TABLE: [Shard; SHARDS] = [const { Shard::new() }; SHARDS];

/// A part of the table.
struct Shard {
    /// The number of entries, for a check without the lock. A thread that frees a block got it from
    /// the thread that inserted it here, and so sees at least that entry.
    count: AtomicUsize,
    blocks: Lock<Blocks>,
}

/// By address, what is known about the blocks.
type Blocks = HashMap<usize, usize, BuildHasherDefault<AddressHasher>>;

/// Large blocks differ in the number of their page at least.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, _: &[u8]) {}

    fn write_usize(&mut self, address: usize) {
        self.0 = spread(address) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn spread(address: usize) -> usize {
    let hash = (address >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}

impl Shard {
    const fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            blocks: Lock::new(Blocks::with_hasher(BuildHasherDefault::new())),
        }
    }
}

fn shard(address: usize) -> &'static Shard {
    &TABLE[spread(address) / 97 % SHARDS]
}

/// Takes note of a block, unless `known` is null. The sampler must be at work, so that the table is
/// memory of its own.
pub(crate) fn insert<T>(block: *mut u8, known: *mut T) {
    if known.is_null() {
        return;
    }
    let shard = shard(block.addr());
    let mut blocks = shard.blocks.lock();
    blocks.insert(block.addr(), known.expose_provenance());
    shard.count.store(blocks.len(), Ordering::Relaxed);
}

/// Removes and returns the metadata of a block that is freed, if it was sampled.
#[inline]
pub(crate) fn remove<T>(block: *mut u8) -> Option<*mut T> {
    let shard = shard(block.addr());
    if shard.count.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut blocks = shard.blocks.lock();
    let known = blocks.remove(&block.addr())?;
    shard.count.store(blocks.len(), Ordering::Relaxed);
    Some(std::ptr::with_exposed_provenance_mut(known))
}

/// Before a fork.
pub(crate) fn hold() {
    for shard in &TABLE {
        shard.blocks.hold();
    }
}

/// After a fork.
pub(crate) fn release() {
    for shard in &TABLE {
        shard.blocks.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_once() {
        let address = |n: usize| std::ptr::without_provenance_mut::<u8>((n + 1) << 16);
        for n in 0..1000 {
            insert(address(n), address(n + 5));
        }
        for n in (0..1000).rev() {
            assert_eq!(remove(address(n)), Some(address(n + 5)));
            assert_eq!(remove::<u8>(address(n)), None);
        }
        assert_eq!(remove::<u8>(address(2000)), None);
    }
}
