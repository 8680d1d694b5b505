//! The writer's half of the backtrace cache: what the reader is going to have, and which entries
//! can be thrown away.

use super::stack::TaggedCode;
use crate::format::{BUCKET_MASK, BUCKETS, CacheCheck, tag};

/// Buckets that are used at first: a domain that does little touches little memory.
const FIRST_BUCKETS: u16 = 256;

/// The most frames that can be coded at once: a frame that is found and as many predictions as a
/// code word can tell of.
pub(super) const MAX_FRAMES: usize = 1 + u8::MAX as usize;

/// The most that a frame takes.
pub(super) const MAX_FRAME: usize = 10;

/// What codes are multiplied by for the two places where they may be.
const PLACES: [u64; 2] = [0xc2b2_ae3d_27d4_eb4f, 0x9e37_79b9_7f4a_7c15];

#[derive(Debug)]
pub(super) struct StackCache {
    /// What is in each bucket: 0, which is no tagged code, if nothing is.
    words: Box<[u64; BUCKETS]>,
    /// The bucket that followed each last time.
    next: Box<[u16; BUCKETS]>,
    /// When each was last used, in stacks.
    used: Box<[u32; BUCKETS]>,
    now: u32,
    /// One less than the number of buckets in use, a power of two.
    mask: u16,
    /// Codes that had to be put into a bucket.
    misses: usize,
    /// Those of them that nobody asked for yet.
    missed: Vec<TaggedCode>,
    /// The bucket that the next packet lets the reader check.
    check: u16,
}

impl StackCache {
    pub(super) fn new() -> Self {
        Self {
            words: zeros(),
            next: zeros(),
            used: zeros(),
            now: 0,
            mask: FIRST_BUCKETS - 1,
            misses: 0,
            missed: Vec::new(),
            check: 4242,
        }
    }

    /// The check for a packet that begins now.
    pub(super) fn check(&self) -> CacheCheck {
        let bucket = usize::from(self.check & BUCKET_MASK);
        CacheCheck {
            bucket: self.check,
            next: self.next[bucket],
            code: TaggedCode(self.words[bucket]).code(),
        }
    }

    /// Another bucket's turn to be checked. The step is odd, so that each comes round.
    pub(super) fn next_check(&mut self) {
        self.check = (self.check + 5413) & BUCKET_MASK;
    }

    /// The codes that were put into the cache since this was emptied.
    pub(super) fn missed(&mut self) -> &mut Vec<TaggedCode> {
        &mut self.missed
    }

    /// Appends frames, [`MAX_FRAMES`] at most, to the code words of a stack. The innermost frame is
    /// first.
    #[expect(clippy::inline_always, reason = "this is where the time goes")]
    #[inline(always)]
    pub(super) fn code(&mut self, mut frames: &[TaggedCode], out: &mut CodeWords<'_>) {
        while let Some((&TaggedCode(word), inner)) = frames.split_last() {
            frames = inner;
            let mut bucket = self.place(word, PLACES[0]);
            if self.words[usize::from(bucket)] != word {
                let found;
                (bucket, found) = self.look_elsewhere(word, bucket);
                if !found {
                    self.link(out.last, bucket);
                    out.miss(bucket, TaggedCode(word).code());
                    continue;
                }
            }
            self.link(out.last, bucket);
            let mut last = bucket;
            let mut predicted = 0;
            while let Some((&TaggedCode(word), inner)) = frames.split_last() {
                let next = self.next[usize::from(last & BUCKET_MASK)];
                if self.words[usize::from(next & BUCKET_MASK)] != word {
                    break;
                }
                frames = inner;
                last = next;
                predicted += 1;
            }
            out.hit(bucket, predicted, last);
        }
    }

    #[inline]
    fn place(&self, word: u64, factor: u64) -> u16 {
        (word.wrapping_mul(factor) >> 50) as u16 & self.mask & BUCKET_MASK
    }

    /// Where a code is that is not in its first place, and whether it was there before.
    #[cold]
    fn look_elsewhere(&mut self, word: u64, first: u16) -> (u16, bool) {
        let second = self.place(word, PLACES[1]);
        if self.words[usize::from(second)] == word {
            return (second, true);
        }
        let unused = |bucket: u16| self.now.wrapping_sub(self.used[usize::from(bucket)]);
        let bucket = if unused(first) >= unused(second) {
            first
        } else {
            second
        };
        self.words[usize::from(bucket)] = word;
        self.missed.push(TaggedCode(word));
        self.misses += 1;
        // Codes are not looked for in the same places then; they are put there again.
        if self.misses > usize::from(self.mask / 2) && self.mask < BUCKET_MASK {
            self.mask = self.mask << 2 | 3;
        }
        (bucket, false)
    }

    /// Goes from one bucket to the next.
    #[inline]
    fn link(&mut self, from: u16, to: u16) {
        self.next[usize::from(from & BUCKET_MASK)] = to;
        self.used[usize::from(to & BUCKET_MASK)] = self.now;
    }

    /// Begins a stack.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.now = self.now.wrapping_add(1);
    }
}

/// An array that takes memory only where it is written to.
#[expect(
    clippy::unnecessary_box_returns,
    reason = "it is too large for a stack"
)]
fn zeros<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    match vec![T::default(); N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("it has N elements"),
    }
}

/// The code words of a stack.
#[derive(Debug)]
pub(super) struct CodeWords<'a> {
    out: &'a mut [u8],
    len: usize,
    count: u16,
    /// The bucket of the last frame.
    last: u16,
}

impl<'a> CodeWords<'a> {
    /// None yet. There must be room for [`MAX_FRAME`] bytes for each frame that follows.
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Self {
            out,
            len: 0,
            count: 0,
            last: 0,
        }
    }

    /// Bytes that more of them may take.
    pub(super) fn room(&self) -> usize {
        self.out.len() - self.len
    }

    /// Bytes that they take.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many they are.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// A code that was found, and how many predictions from there on are right.
    #[inline]
    fn hit(&mut self, bucket: u16, predicted: u8, last: u16) {
        match predicted {
            0 => self.put((bucket << 2 | tag::HIT).to_le_bytes()),
            1 => self.put((bucket << 2 | tag::HIT_1).to_le_bytes()),
            _ => {
                self.put((bucket << 2 | tag::HIT_N).to_le_bytes());
                self.put([predicted]);
            }
        }
        self.count += 1;
        self.last = last;
    }

    /// A code that was put into a bucket.
    fn miss(&mut self, bucket: u16, code: u64) {
        self.put((bucket << 2 | tag::MISS).to_le_bytes());
        self.put(code.to_le_bytes());
        self.count += 1;
        self.last = bucket;
    }

    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.out[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
    }
}
