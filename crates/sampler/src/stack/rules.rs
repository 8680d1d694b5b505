//! The cache of unwind rules, shared by all threads.
//!
//! Decoding the rule of an address takes thousands of instructions, so how fast stacks are unwound depends
//! on how many rules are cached. A cache of framehop has 509 slots and scratch memory of 30 KB: too few slots
//! for a large program, and too much memory for each of thousands of threads, which would also have to
//! decode the same rules again. So there are several caches, each for a part of the addresses.

use framehop::MustNotAllocateDuringUnwind;

use crate::lock::Lock;

/// A cache of framehop.
#[cfg(target_arch = "aarch64")]
pub(super) type Cache = framehop::aarch64::CacheAarch64<MustNotAllocateDuringUnwind>;
#[cfg(target_arch = "x86_64")]
pub(super) type Cache = framehop::x86_64::CacheX86_64<MustNotAllocateDuringUnwind>;

/// 32,576 slots in all, which take 1.3 MB.
const SHARDS: usize = 64;

static CACHES: [Lock<Option<Cache>>; SHARDS] = [const { Lock::new(None) }; SHARDS];

/// Makes the caches. Not when they are used first, which may be on the small stack of a coroutine. The
/// sampler must be at work.
pub(super) fn prepare() {
    for cache in &CACHES {
        cache.lock().get_or_insert_with(Cache::new_in);
    }
}

/// Does something with the cache for an address, if it was made.
#[inline]
pub(super) fn with_cache<R>(address: u64, f: impl FnOnce(&mut Cache) -> R) -> Option<R> {
    let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let shard = usize::try_from(hash).unwrap_or(0) % SHARDS;
    CACHES[shard].lock().as_mut().map(f)
}

/// Before a fork.
pub(super) fn hold() {
    CACHES.iter().for_each(Lock::hold);
}

/// After a fork.
pub(super) fn release() {
    CACHES.iter().for_each(Lock::release);
}
