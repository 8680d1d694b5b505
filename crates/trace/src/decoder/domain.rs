//! The decoder's state of each domain: the format encodes every stack as a difference to the
//! domain's previous one, using a cache that reader and writer keep in sync.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::clock::Clock;
use super::names::NameTables;
use crate::LocationId;
use crate::format::{BUCKET_MASK, BUCKETS, CacheCheck};

/// Deeper stacks are taken for damage. OCaml's largest default stack, 1 GiB, can hold more, but no
/// program has been seen that comes near.
pub(super) const MAX_DEPTH: usize = 1 << 23;

/// Frames that all domains together may keep before the other domains' are given up.
const MAX_FRAMES: usize = 2 * MAX_DEPTH;

/// Caches that are kept ready for use. OCaml runs few domains more at a time than the machine has
/// cores, even where it allows 4,096.
const MAX_UNPACKED: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) location: LocationId,
    pub(super) next: u16,
}

type Cache = Box<[Bucket; BUCKETS]>;

#[derive(Debug)]
pub(super) struct Domain {
    /// Empty while it is packed.
    pub(super) cache: Option<Cache>,
    /// The buckets in use, while the cache is packed.
    packed: Vec<(u16, Bucket)>,
    /// The last stack is `stack[..depth]`; what follows is scratch.
    pub(super) stack: Vec<LocationId>,
    pub(super) depth: usize,
    /// True if there was a stack before, which the next one may share frames with.
    pub(super) has_stack: bool,
    /// True if the cache or the stack may differ from the writer's.
    pub(super) stacks_uncertain: bool,
    pub(super) names: NameTables,
    pub(super) names_uncertain: bool,
    pub(super) clock: Clock,
    /// One past the last allocation id seen.
    pub(super) next_id: u64,
    /// The number of losses of unknown packets that this domain has taken into account.
    pub(super) losses_seen: u64,
}

impl Domain {
    fn new(start_time: u64, losses: u64) -> Self {
        Self {
            cache: None,
            packed: Vec::new(),
            stack: Vec::new(),
            depth: 0,
            has_stack: false,
            stacks_uncertain: false,
            names: NameTables::default(),
            names_uncertain: false,
            clock: Clock::new(start_time),
            next_id: 0,
            losses_seen: losses,
        }
    }

    /// Returns true if the cache agrees with the writer's check. The location is that of the
    /// check's code, if there is one.
    pub(super) fn agrees_with(&self, check: CacheCheck, location: Option<LocationId>) -> bool {
        let bucket = self
            .cache
            .as_ref()
            .and_then(|cache| cache.get(usize::from(check.bucket)));
        bucket.is_some_and(|bucket| bucket.next == check.next && Some(bucket.location) == location)
    }

    /// Makes the cache have it.
    pub(super) fn correct(&mut self, check: CacheCheck, location: LocationId) {
        let bucket = self
            .cache
            .as_mut()
            .and_then(|cache| cache.get_mut(usize::from(check.bucket)));
        if let Some(bucket) = bucket {
            bucket.next = check.next & BUCKET_MASK;
            bucket.location = location;
        }
    }

    fn unpack(&mut self) {
        let cache: Box<[Bucket]> = vec![Bucket::default(); BUCKETS].into_boxed_slice();
        let mut cache: Cache = cache
            .try_into()
            .unwrap_or_else(|_| unreachable!("the length is BUCKETS"));
        for (number, bucket) in std::mem::take(&mut self.packed) {
            cache[usize::from(number & BUCKET_MASK)] = bucket;
        }
        self.cache = Some(cache);
    }

    fn pack(&mut self) {
        if let Some(cache) = self.cache.take() {
            let used = (0..).zip(cache.iter().copied());
            self.packed = used
                .filter(|(_, bucket)| *bucket != Bucket::default())
                .collect();
        }
    }
}

/// All domains seen. What they take grows with the data, not with the numbers it makes up.
#[derive(Debug, Default)]
pub(super) struct Domains {
    by_number: HashMap<u16, Domain>,
    /// Domains whose cache is ready for use, that used last at the end.
    unpacked: VecDeque<u16>,
    /// Frames that all domains together have room for.
    frames: usize,
}

impl Domains {
    /// The state of a domain, with its cache if that is going to be needed.
    pub(super) fn get(
        &mut self,
        number: u16,
        start_time: u64,
        losses: u64,
        with_cache: bool,
    ) -> &mut Domain {
        if with_cache && self.unpacked.back() != Some(&number) {
            self.unpacked.retain(|&other| other != number);
            if self.unpacked.len() >= MAX_UNPACKED
                && let Some(oldest) = self.unpacked.pop_front()
                && let Some(domain) = self.by_number.get_mut(&oldest)
            {
                domain.pack();
            }
            self.unpacked.push_back(number);
        }
        let domain = self
            .by_number
            .entry(number)
            .or_insert_with(|| Domain::new(start_time, losses));
        if with_cache && domain.cache.is_none() {
            domain.unpack();
        }
        domain
    }

    /// Keeps the memory for stacks within bounds after a domain was decoded that had room for so
    /// many frames before.
    pub(super) fn limit_stacks(&mut self, number: u16, before: usize) {
        let after = self
            .by_number
            .get(&number)
            .map_or(0, |domain| domain.stack.capacity());
        self.frames = (self.frames + after).saturating_sub(before);
        if self.frames <= MAX_FRAMES {
            return;
        }
        self.frames = after;
        for (&other, domain) in &mut self.by_number {
            if other != number && domain.depth > 0 {
                domain.stack = Vec::new();
                domain.depth = 0;
                domain.stacks_uncertain = true;
            }
        }
    }
}
