//! The writer's half of the backtrace cache: what the reader is going to have, and which entries
//! can be thrown away.

use crate::format::{BUCKET_MASK, BUCKETS, CacheCheck, tag};

/// Buckets that are used at first: a domain that does little takes little memory.
const FIRST_BUCKETS: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    code: u64,
    /// The bucket that followed this one last time.
    next: u16,
    /// When it was last used, in stacks.
    used: u32,
}

#[derive(Debug)]
pub(super) struct StackCache {
    /// Those in use. The reader has all of them, empty.
    buckets: Vec<Bucket>,
    /// Codes that had to be put into a bucket.
    misses: usize,
    now: u32,
    /// The bucket that the next packet lets the reader check.
    check: u16,
}

impl StackCache {
    pub(super) fn new() -> Self {
        Self {
            buckets: vec![Bucket::default(); FIRST_BUCKETS],
            misses: 0,
            now: 0,
            check: 4242,
        }
    }

    /// The check for a packet that begins now.
    pub(super) fn check(&self) -> CacheCheck {
        let bucket = self
            .buckets
            .get(usize::from(self.check))
            .copied()
            .unwrap_or_default();
        CacheCheck {
            bucket: self.check,
            next: bucket.next,
            code: bucket.code,
        }
    }

    /// Another bucket's turn to be checked. The step is odd, so that each comes round.
    pub(super) fn next_check(&mut self) {
        self.check = (self.check + 5413) & BUCKET_MASK;
    }

    /// Starts the code words of a stack.
    pub(super) fn begin(&mut self) -> Coding<'_> {
        self.now = self.now.wrapping_add(1);
        // Codes are not looked for in the same places then; they are put there again.
        if self.misses > self.buckets.len() / 2 && self.buckets.len() < BUCKETS {
            self.buckets
                .resize(self.buckets.len() * 4, Bucket::default());
        }
        Coding {
            cache: self,
            last: 0,
            words: 0,
            hit: None,
        }
    }

    /// Two places where a code may be.
    fn places(&self, code: u64) -> [u16; 2] {
        // At most 2^14, so that it fits.
        let mask = u16::try_from(self.buckets.len() - 1).unwrap_or(BUCKET_MASK);
        let place = |factor: u64| ((code.wrapping_mul(factor) >> 50) as u16) & mask;
        [place(0x9e37_79b9_7f4a_7c15), place(0xc2b2_ae3d_27d4_eb4f)]
    }
}

/// A stack that is being coded, frame by frame.
#[derive(Debug)]
pub(super) struct Coding<'a> {
    cache: &'a mut StackCache,
    /// The bucket of the frame before.
    last: u16,
    words: u16,
    /// A hit that is not written yet, and how many right predictions follow it.
    hit: Option<(u16, u8)>,
}

impl Coding<'_> {
    /// Appends a frame. True if the cache did not have its code.
    pub(super) fn push(&mut self, code: u64, out: &mut Vec<u8>) -> bool {
        let cache = &mut *self.cache;
        if let Some((_, predicted)) = &mut self.hit {
            let next = cache.buckets[usize::from(self.last)].next;
            if cache.buckets[usize::from(next)].code == code && *predicted < u8::MAX {
                *predicted += 1;
                self.last = next;
                return false;
            }
        }
        self.flush(out);
        let cache = &mut *self.cache;
        let [a, b] = cache.places(code);
        let used = |bucket: u16| {
            cache
                .now
                .wrapping_sub(cache.buckets[usize::from(bucket)].used)
        };
        let (bucket, missed) = if cache.buckets[usize::from(a)].code == code {
            (a, false)
        } else if cache.buckets[usize::from(b)].code == code {
            (b, false)
        } else {
            (if used(a) > used(b) { a } else { b }, true)
        };
        cache.buckets[usize::from(self.last)].next = bucket;
        let entry = &mut cache.buckets[usize::from(bucket)];
        entry.used = cache.now;
        self.last = bucket;
        if missed {
            cache.misses += 1;
            entry.code = code;
            self.word(bucket, tag::MISS, out);
            out.extend_from_slice(&code.to_le_bytes());
        } else {
            self.hit = Some((bucket, 0));
        }
        missed
    }

    /// Ends the stack; returns how many code words it took.
    pub(super) fn end(mut self, out: &mut Vec<u8>) -> u16 {
        self.flush(out);
        self.words
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        match self.hit.take() {
            None => {}
            Some((bucket, 0)) => self.word(bucket, tag::HIT, out),
            Some((bucket, 1)) => self.word(bucket, tag::HIT_1, out),
            Some((bucket, predicted)) => {
                self.word(bucket, tag::HIT_N, out);
                out.push(predicted);
            }
        }
    }

    fn word(&mut self, bucket: u16, tag: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&(bucket << 2 | tag).to_le_bytes());
        self.words += 1;
    }
}
