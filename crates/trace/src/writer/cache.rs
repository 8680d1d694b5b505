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
            now: self.now,
            // At most 2^14 buckets, so that it fits.
            mask: u16::try_from(self.buckets.len() - 1).unwrap_or(BUCKET_MASK),
            misses: &mut self.misses,
            buckets: &mut self.buckets,
            last: 0,
            words: 0,
            hit: 0,
            predicted: NO_HIT,
        }
    }
}

/// What codes are multiplied by for the two places where they may be.
const PLACES: [u64; 2] = [0xc2b2_ae3d_27d4_eb4f, 0x9e37_79b9_7f4a_7c15];

/// There is no hit that is not written yet.
const NO_HIT: u16 = u16::MAX;

/// The most predictions that a code word can tell of.
const MAX_PREDICTED: u16 = 255;

/// A stack that is being coded, frame by frame.
#[derive(Debug)]
pub(super) struct Coding<'a> {
    buckets: &'a mut [Bucket],
    misses: &'a mut usize,
    now: u32,
    mask: u16,
    /// The bucket of the frame before.
    last: u16,
    words: u16,
    /// The bucket of a hit that is not written yet.
    hit: u16,
    /// How many right predictions follow it, or [`NO_HIT`].
    predicted: u16,
}

impl Coding<'_> {
    /// Appends a frame. True if the cache did not have its code.
    #[expect(clippy::inline_always, reason = "its state belongs into registers")]
    #[inline(always)]
    pub(super) fn push(&mut self, code: u64, out: &mut Vec<u8>) -> bool {
        if self.predicted != NO_HIT {
            let next = self.buckets[usize::from(self.last)].next;
            if self.buckets[usize::from(next)].code == code && self.predicted < MAX_PREDICTED {
                self.predicted += 1;
                self.last = next;
                return false;
            }
            self.write_hit(out);
        }
        let bucket = self.place(code, PLACES[0]);
        if self.buckets[usize::from(bucket)].code != code {
            return self.push_elsewhere(code, bucket, out);
        }
        self.follow(bucket);
        self.hit = bucket;
        self.predicted = 0;
        false
    }

    #[inline]
    fn place(&self, code: u64, factor: u64) -> u16 {
        ((code.wrapping_mul(factor) >> 50) as u16) & self.mask
    }

    /// Appends a frame that is not in its first place.
    fn push_elsewhere(&mut self, code: u64, first: u16, out: &mut Vec<u8>) -> bool {
        let second = self.place(code, PLACES[1]);
        if self.buckets[usize::from(second)].code == code {
            self.follow(second);
            self.hit = second;
            self.predicted = 0;
            return false;
        }
        let unused = |bucket: u16| {
            self.now
                .wrapping_sub(self.buckets[usize::from(bucket)].used)
        };
        let bucket = if unused(first) >= unused(second) {
            first
        } else {
            second
        };
        self.follow(bucket);
        *self.misses += 1;
        self.buckets[usize::from(bucket)].code = code;
        self.predicted = NO_HIT;
        self.word(bucket, tag::MISS, out);
        out.extend_from_slice(&code.to_le_bytes());
        true
    }

    /// Goes to the bucket of the next frame.
    #[inline]
    fn follow(&mut self, bucket: u16) {
        self.buckets[usize::from(self.last)].next = bucket;
        self.buckets[usize::from(bucket)].used = self.now;
        self.last = bucket;
    }

    /// Ends the stack; returns how many code words it took.
    pub(super) fn end(mut self, out: &mut Vec<u8>) -> u16 {
        if self.predicted != NO_HIT {
            self.write_hit(out);
        }
        self.words
    }

    #[inline]
    fn write_hit(&mut self, out: &mut Vec<u8>) {
        match self.predicted {
            0 => self.word(self.hit, tag::HIT, out),
            1 => self.word(self.hit, tag::HIT_1, out),
            predicted => {
                self.word(self.hit, tag::HIT_N, out);
                out.push(predicted.to_le_bytes()[0]);
            }
        }
    }

    #[inline]
    fn word(&mut self, bucket: u16, tag: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&(bucket << 2 | tag).to_le_bytes());
        self.words += 1;
    }
}
