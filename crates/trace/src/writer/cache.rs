//! The writer's half of the backtrace cache: what the reader is going to have, and which entries
//! can be thrown away.

use super::packet::PacketMemory;
use super::stack::TaggedCode;
use super::zeros;
use crate::format::{BUCKET_MASK, BUCKETS, CacheCheck, tag};

/// Buckets that are used at first: a domain that does little touches little memory.
const FIRST_BUCKETS: u64 = 1024;

/// Keeps the number of a bucket within the table.
const MASK: u64 = BUCKETS as u64 - 1;

/// The most frames that can be coded at once: a frame that is found and as many predictions as a
/// code word can tell of.
pub(super) const MAX_FRAMES: usize = 1 + u8::MAX as usize;

/// The most that a frame takes.
pub(super) const MAX_FRAME: usize = 10;

/// For each bucket the tagged code in it, or 0, which is none; then for each bucket the one that
/// followed it last time. One array, since the way to every frame begins at its address.
type Buckets = [u64; 2 * BUCKETS];

#[derive(Debug)]
pub(super) struct StackCache {
    buckets: Box<Buckets>,
    /// One less than the number of buckets in use, a power of two.
    mask: u64,
    /// Codes that had to be put into a bucket.
    misses: u64,
    /// Those of them that nobody asked for yet.
    missed: Vec<TaggedCode>,
    /// Code words of the stack at hand.
    words: usize,
    /// The bucket of its last frame.
    last: u64,
    /// The bucket that the next packet lets the reader check.
    check: u16,
}

impl StackCache {
    pub(super) fn new() -> Self {
        Self {
            buckets: zeros(),
            mask: FIRST_BUCKETS - 1,
            misses: 0,
            missed: Vec::new(),
            words: 0,
            last: 0,
            check: 4242,
        }
    }

    /// The check for a packet that begins now.
    pub(super) fn check(&self) -> CacheCheck {
        let bucket = u64::from(self.check);
        CacheCheck {
            bucket: self.check,
            next: (self.buckets[next_of(bucket)] & MASK) as u16,
            code: TaggedCode(self.buckets[code_of(bucket)]).code(),
        }
    }

    /// Another bucket's turn to be checked. The step is odd, so that each comes round.
    pub(super) fn next_check(&mut self) {
        self.check = (self.check + 5413) & BUCKET_MASK;
    }

    /// The codes that were put into the cache since this was emptied.
    #[inline]
    pub(super) fn missed(&mut self) -> &mut Vec<TaggedCode> {
        &mut self.missed
    }

    /// Begins a stack.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.words = 0;
        self.last = 0;
    }

    /// How many code words the stack has.
    #[inline]
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Codes more frames of a stack, [`MAX_FRAMES`] at most, innermost first. Their code words go
    /// to `start`, where there must be room for [`MAX_FRAME`] bytes for each. Returns where they
    /// end.
    #[inline]
    pub(super) fn code(
        &mut self,
        frames: &[TaggedCode],
        out: &mut PacketMemory,
        start: usize,
    ) -> usize {
        let (end, left) = self.code_known(frames, out, start);
        if left == 0 {
            return end;
        }
        self.code_unknown(&frames[..left], out, end)
    }

    /// Codes frames of which the cache does not have the first.
    #[cold]
    fn code_unknown(
        &mut self,
        mut frames: &[TaggedCode],
        out: &mut PacketMemory,
        start: usize,
    ) -> usize {
        let mut end = start;
        while let Some((&new, inner)) = frames.split_last() {
            end = self.code_new(new, out, end);
            let left;
            (end, left) = self.code_known(inner, out, end);
            frames = &inner[..left];
        }
        end
    }

    /// Codes frames until one comes that the cache does not have. Returns where the code words end,
    /// and how many frames are left.
    ///
    /// This is where the time goes. It calls nothing, so that all registers are for it.
    #[inline(never)]
    fn code_known(
        &mut self,
        mut frames: &[TaggedCode],
        out: &mut PacketMemory,
        start: usize,
    ) -> (usize, usize) {
        let buckets = &mut *self.buckets;
        let mask = self.mask & MASK;
        let (mut end, mut words, mut last) = (start, self.words, self.last);
        while let Some((&TaggedCode(code), inner)) = frames.split_last() {
            let mut bucket = first_place(code) & mask;
            if buckets[code_of(bucket)] != code {
                bucket = second_place(code) & mask;
                if buckets[code_of(bucket)] != code {
                    break;
                }
            }
            frames = inner;
            words += 1;
            buckets[next_of(last)] = bucket;
            last = bucket;
            // Bytes behind the code word are written over by the next.
            let place = place_at(out, end);
            let word = u32::from(code_word(bucket, tag::HIT));
            *place = word.to_le_bytes();
            end += 2;
            let (after_word, before) = (end, frames.len());
            while let Some(next) = predict(buckets, last, frames) {
                (last, frames) = next;
                let predicted = before - frames.len();
                if predicted == 1 {
                    *place = (word | u32::from(tag::HIT_1)).to_le_bytes();
                } else {
                    let number = u32::from(predicted.to_le_bytes()[0]);
                    *place = (word | u32::from(tag::HIT_N) | number << 16).to_le_bytes();
                    end = after_word + 1;
                }
            }
        }
        (self.words, self.last) = (words, last);
        (end, frames.len())
    }

    /// Codes a frame that the cache does not have.
    fn code_new(&mut self, new: TaggedCode, out: &mut PacketMemory, start: usize) -> usize {
        self.misses += 1;
        let (first, second) = (
            first_place(new.0) & self.mask,
            second_place(new.0) & self.mask,
        );
        // Where both are taken, either is as good to give up: which was used last is not worth
        // being kept with every frame.
        let is_free = |bucket| self.buckets[code_of(bucket)] == 0;
        let takes_first = is_free(first) || !is_free(second) && self.misses.is_multiple_of(2);
        let bucket = if takes_first { first } else { second };
        self.buckets[code_of(bucket)] = new.0;
        self.buckets[next_of(self.last)] = bucket;
        self.last = bucket;
        self.words += 1;
        self.missed.push(new);
        // Codes are not looked for in the same places then, but put there again: better once.
        if self.misses > self.mask / 2 && self.mask < MASK {
            self.mask = self.mask << 4 | 15;
        }
        *place_at(out, start) = code_word(bucket, tag::MISS).to_le_bytes();
        *place_at(out, start + 2) = new.code().to_le_bytes();
        start + MAX_FRAME
    }
}

/// The bucket that follows another one, and the frames that are left then, if it is that of the
/// next frame.
#[inline]
fn predict<'a>(
    buckets: &Buckets,
    last: u64,
    frames: &'a [TaggedCode],
) -> Option<(u64, &'a [TaggedCode])> {
    let (&TaggedCode(code), inner) = frames.split_last()?;
    let next = buckets[next_of(last)] & MASK;
    (buckets[code_of(next)] == code).then_some((next, inner))
}

/// Where a code is looked for first: a factor of 31 bits takes one instruction.
#[inline]
fn first_place(code: u64) -> u64 {
    code.wrapping_mul(0x7feb_352d) >> 18
}

/// Where it is looked for next.
#[inline]
fn second_place(code: u64) -> u64 {
    code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50
}

/// Where a bucket's code is.
#[inline]
fn code_of(bucket: u64) -> usize {
    (bucket & MASK) as usize
}

/// Where it is kept which bucket followed this one.
#[inline]
fn next_of(bucket: u64) -> usize {
    BUCKETS + (bucket & MASK) as usize
}

#[inline]
fn code_word(bucket: u64, tag: u16) -> u16 {
    ((bucket & MASK) as u16) << 2 | tag
}

/// Where a code word is to be written.
#[inline]
fn place_at<const N: usize>(out: &mut PacketMemory, at: usize) -> &mut [u8; N] {
    match out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        Some(place) => place,
        None => panic!("there is no room for a frame"),
    }
}
