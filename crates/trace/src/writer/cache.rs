//! The writer's copy of the reader's backtrace cache.

use super::packet::PacketMemory;
use super::stack::TaggedCode;
use super::zeros;
use crate::format::{BUCKET_MASK, BUCKETS, CacheCheck, tag};

/// The most frames that can be coded at once: a frame that is found and as many predictions as a
/// code word can tell of.
pub(super) const MAX_FRAMES: usize = 1 + u8::MAX as usize;

/// The most that a frame takes.
pub(super) const MAX_FRAME: usize = 10;

/// For each bucket the tagged code in it, or 0 for none; then for each the bucket that followed it
/// last time. One array, because the lookup of every frame begins at its address, and large enough
/// for all 16-bit indices, so that no bounds check is needed. Only the parts that are written to
/// take memory.
type Buckets = [u64; 2 << 16];

#[derive(Debug)]
pub(super) struct StackCache {
    buckets: Box<Buckets>,
    /// Codes that had to be put into a bucket.
    misses: u64,
    /// The codes among them that were not returned yet.
    missed: Vec<TaggedCode>,
    /// The bucket that the next packet lets the reader check.
    check: u16,
}

/// The progress of encoding a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coded {
    /// The end of the code words.
    pub(super) end: usize,
    /// The number of bytes besides the two that each code word begins with.
    pub(super) more: usize,
    /// The bucket of the last frame.
    pub(super) last: u64,
}

impl Coded {
    /// Nothing is encoded yet. Code words begin at `start`.
    #[inline]
    pub(super) fn none(start: usize) -> Self {
        Self {
            end: start,
            more: 0,
            last: 0,
        }
    }

    /// The number of code words since `start`.
    #[inline]
    pub(super) fn words(&self, start: usize) -> usize {
        (self.end - start - self.more) / 2
    }
}

impl StackCache {
    pub(super) fn new() -> Self {
        Self {
            buckets: zeros(),
            misses: 0,
            missed: Vec::new(),
            check: 4242,
        }
    }

    /// The check for a packet that begins now.
    pub(super) fn check(&self) -> CacheCheck {
        let bucket = u64::from(self.check);
        CacheCheck {
            bucket: self.check,
            next: (self.buckets[next_at(bucket)] & 0xffff) as u16,
            code: TaggedCode(self.buckets[code_at(bucket)]).code(),
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

    /// Codes more frames of a stack, [`MAX_FRAMES`] at most, innermost first. Their code words go to
    /// `out`, where there must be room for [`MAX_FRAME`] bytes for each.
    pub(super) fn code(
        &mut self,
        frames: &[TaggedCode],
        out: &mut PacketMemory,
        mut coded: Coded,
    ) -> Coded {
        let mut frames = frames.iter().rev().copied();
        while let Some(first) = frames.next() {
            let unknown;
            (coded, unknown) = self.code_known(first, &mut frames, out, coded);
            if let Some(unknown) = unknown {
                coded = self.code_new(unknown, out, coded);
            }
        }
        coded
    }

    /// Codes frames until one comes that the cache does not have, which is returned.
    ///
    /// This is where the time goes.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    pub(super) fn code_known(
        &mut self,
        first: TaggedCode,
        frames: &mut impl Iterator<Item = TaggedCode>,
        out: &mut PacketMemory,
        coded: Coded,
    ) -> (Coded, Option<TaggedCode>) {
        let buckets = &mut *self.buckets;
        let Coded {
            mut end,
            mut more,
            mut last,
        } = coded;
        let mut frame = first;
        let unknown = 'words: loop {
            let TaggedCode(code) = frame;
            let mut bucket = first_place(code);
            if buckets[code_at(bucket)] != code {
                bucket = second_place(code);
                if buckets[code_at(bucket)] != code {
                    break Some(frame);
                }
            }
            buckets[next_at(last)] = bucket;
            last = bucket;
            let word = code_word(bucket);
            // Mostly none or one is predicted. These cases are written out, so that the number need
            // not be kept. Bytes behind a code word are written over by the next.
            if let Err(next) = predict(buckets, &mut last, frames) {
                *place_at(out, end) = (word | u32::from(tag::HIT)).to_le_bytes();
                end += 2;
                let Some(next) = next else { break None };
                frame = next;
                continue;
            }
            if let Err(next) = predict(buckets, &mut last, frames) {
                *place_at(out, end) = (word | u32::from(tag::HIT_1)).to_le_bytes();
                end += 2;
                let Some(next) = next else { break None };
                frame = next;
                continue;
            }
            let place = place_at(out, end);
            end += 3;
            more += 1;
            let mut predicted = 2_u8;
            loop {
                let number = u32::from(predicted) << 16;
                *place = (word | u32::from(tag::HIT_N) | number).to_le_bytes();
                if let Err(next) = predict(buckets, &mut last, frames) {
                    let Some(next) = next else { break 'words None };
                    frame = next;
                    continue 'words;
                }
                predicted = predicted.wrapping_add(1);
            }
        };
        (Coded { end, more, last }, unknown)
    }

    /// Codes a frame that the cache does not have.
    pub(super) fn code_new(
        &mut self,
        new: TaggedCode,
        out: &mut PacketMemory,
        coded: Coded,
    ) -> Coded {
        self.misses += 1;
        let (first, second) = (first_place(new.0), second_place(new.0));
        // Where both are taken, either is as good to give up: which was used last is not worth
        // being kept with every frame.
        let is_free = |bucket| self.buckets[code_at(bucket)] == 0;
        let takes_first = is_free(first) || !is_free(second) && self.misses.is_multiple_of(2);
        let bucket = if takes_first { first } else { second };
        self.buckets[code_at(bucket)] = new.0;
        self.buckets[next_at(coded.last)] = bucket;
        self.missed.push(new);
        let [low, high, ..] = (code_word(bucket) | u32::from(tag::MISS)).to_le_bytes();
        *place_at(out, coded.end) = [low, high];
        *place_at(out, coded.end + 2) = new.code().to_le_bytes();
        Coded {
            end: coded.end + MAX_FRAME,
            more: coded.more + MAX_FRAME - 2,
            last: bucket,
        }
    }
}

/// The first bucket for a code. Addresses differ in their lower half, which takes one instruction
/// to multiply.
#[inline]
fn first_place(code: u64) -> u64 {
    u64::from(((code & 0xffff_ffff) as u32).wrapping_mul(0x9e37_79b1) >> (32 - BUCKETS.ilog2()))
}

/// The second bucket for a code.
#[inline]
fn second_place(code: u64) -> u64 {
    code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKETS.ilog2())
}

/// The index of a bucket's code.
#[inline]
fn code_at(bucket: u64) -> usize {
    (bucket & 0xffff) as usize
}

/// The index of the bucket that followed this one.
#[inline]
fn next_at(bucket: u64) -> usize {
    (1 << 16) + (bucket & 0xffff) as usize
}

/// The bucket that followed this one.
#[inline]
fn next_of(buckets: &Buckets, bucket: u64) -> u64 {
    buckets[next_at(bucket)] & 0xffff
}

/// Takes the next frame if its bucket is the one that followed last time. If not, returns the frame,
/// if there is one.
#[inline]
fn predict(
    buckets: &Buckets,
    last: &mut u64,
    frames: &mut impl Iterator<Item = TaggedCode>,
) -> Result<(), Option<TaggedCode>> {
    let Some(frame) = frames.next() else {
        return Err(None);
    };
    let next = next_of(buckets, *last);
    if buckets[code_at(next)] != frame.0 {
        return Err(Some(frame));
    }
    *last = next;
    Ok(())
}

/// The code word for a bucket, without its tag.
#[inline]
fn code_word(bucket: u64) -> u32 {
    ((bucket & 0xffff) as u32) << 2
}

/// The memory for a code word.
#[inline]
fn place_at<const N: usize>(out: &mut PacketMemory, at: usize) -> &mut [u8; N] {
    match out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        Some(place) => place,
        None => panic!("there is no room for a frame"),
    }
}
