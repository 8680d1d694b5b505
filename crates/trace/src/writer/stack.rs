//! Stacks as a sampler gives them.

use std::iter::Zip;
use std::slice::{Iter, IterMut};

/// The code of a location as OCaml has it in memory: a tagged integer, twice the code plus one.
///
/// Samplers give stacks as arrays of these. They are written without being converted or copied
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct TaggedCode(pub(super) u64);

impl TaggedCode {
    /// The code of no location, because it has no tag.
    pub(super) const NONE: Self = Self(0);

    /// Tags a code. Of its 64 bits, 63 count.
    #[must_use]
    pub const fn new(code: u64) -> Self {
        Self(code << 1 | 1)
    }

    /// The code without its tag.
    #[must_use]
    pub const fn code(self) -> u64 {
        (self.0.cast_signed() >> 1).cast_unsigned()
    }
}

/// A stack to be written: the innermost frame first.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    /// All frames.
    pub codes: &'a [TaggedCode],
    /// How many of the outermost are known to be those of the stack that the encoder wrote last, so
    /// that they need not be compared; 0 if that is not known.
    pub shared: usize,
}

impl<'a, T: AsRef<[TaggedCode]> + ?Sized> From<&'a T> for Frames<'a> {
    fn from(codes: &'a T) -> Self {
        Self {
            codes: codes.as_ref(),
            shared: 0,
        }
    }
}

/// A stack that changes at its inner end. Innermost frame first, as samplers have it.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// The stack is at the end of this, so that it can grow at its inner end.
    memory: Vec<TaggedCode>,
    start: usize,
}

impl Stack {
    pub(super) fn len(&self) -> usize {
        self.frames().len()
    }

    #[inline]
    pub(super) fn frames(&self) -> &[TaggedCode] {
        &self.memory[self.start..]
    }

    /// Keeps the outermost frames only.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.start = self.start.max(self.memory.len().saturating_sub(len));
    }

    /// Adds a frame at the inner end.
    #[inline]
    pub(super) fn push(&mut self, frame: TaggedCode) {
        if self.start == 0 {
            self.start = grow(&mut self.memory);
        }
        self.start -= 1;
        self.memory[self.start] = frame;
    }
}

/// Makes room at the inner end. Returns how much.
#[cold]
fn grow(memory: &mut Vec<TaggedCode>) -> usize {
    let more = memory.len().max(64);
    memory.splice(..0, std::iter::repeat_n(TaggedCode::NONE, more));
    more
}

/// The last stack of a domain, which the next one is written as a change of.
#[derive(Debug, Default)]
pub(super) struct LastStack {
    /// The stack is at the end of this, innermost frame first, so that it can be compared with those
    /// of samplers as they are. Before it is [`TaggedCode::NONE`].
    memory: Vec<TaggedCode>,
}

impl LastStack {
    /// Returns true if there is memory for a stack of this depth.
    #[inline]
    pub(super) fn has_room(&self, depth: usize) -> bool {
        depth < self.memory.len()
    }

    /// Makes sure that there is.
    pub(super) fn reserve(&mut self, depth: usize) {
        while !self.has_room(depth) {
            grow(&mut self.memory);
        }
    }

    /// The memory for a stack that is so deep, for which there must be room. Outermost frames that
    /// it has in common with this one are there already; the others must be put there.
    #[inline]
    pub(super) fn memory(&mut self, depth: usize) -> &mut [TaggedCode] {
        let start = self.memory.len() - depth;
        self.memory[start - 1] = TaggedCode::NONE;
        &mut self.memory[start..]
    }

    /// Keeps so many of the outermost frames, which it must have, and puts others in the place of
    /// the rest.
    pub(super) fn change(&mut self, kept: usize, inner: &[TaggedCode]) {
        let depth = kept + inner.len();
        self.reserve(depth);
        self.memory(depth)[..inner.len()].copy_from_slice(inner);
    }
}

/// Compares a stack with the last one, in the [memory](LastStack::memory) for it. So many of the
/// outermost frames are known to be the same. Returns the outermost frame that is not, where it is to
/// be put, and those inside of it. `DEEP` is for stacks that are not [`SHALLOW`].
#[expect(
    clippy::inline_always,
    reason = "hot path: keeps the arguments in registers"
)]
#[inline(always)]
pub(super) fn compare<'a, const DEEP: bool>(
    last: &'a mut [TaggedCode],
    stack: &'a [TaggedCode],
    known: usize,
) -> Option<(TaggedCode, &'a mut TaggedCode, InnerFrames<'a>)> {
    let mut unknown = stack.len() - known;
    if DEEP {
        unknown = differing(&last[..unknown], &stack[..unknown]);
    }
    let (last, stack) = (&mut last[..unknown], &stack[..unknown]);
    let mut outermost = unknown.checked_sub(1)?;
    while last[outermost] == stack[outermost] {
        outermost = outermost.checked_sub(1)?;
    }
    let (inner, outer) = last.split_at_mut(outermost);
    let inner = InnerFrames(inner.iter_mut().zip(&stack[..outermost]));
    Some((stack[outermost], &mut outer[0], inner))
}

/// The inner frames of a stack, outermost first. Those that are taken become part of the last one.
#[derive(Debug)]
pub(super) struct InnerFrames<'a>(Zip<IterMut<'a, TaggedCode>, Iter<'a, TaggedCode>>);

impl InnerFrames<'_> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Iterator for InnerFrames<'_> {
    type Item = TaggedCode;

    #[inline]
    fn next(&mut self) -> Option<TaggedCode> {
        let (old, &frame) = self.0.next_back()?;
        *old = frame;
        Some(frame)
    }
}

/// Stacks can be thousands of frames deep, and mostly share nearly all of them. Then it is worth
/// while to compare so many at a time.
const STRIDE: usize = 16;

/// Stacks that are not deeper than this are compared frame by frame.
pub(super) const SHALLOW: usize = 2 * STRIDE;

/// For two stacks of the same depth, an upper bound of the number of inner frames that differ.
#[inline(never)]
fn differing(mut a: &[TaggedCode], mut b: &[TaggedCode]) -> usize {
    while let (Some((a_inner, a_outer)), Some((b_inner, b_outer))) =
        (a.split_last_chunk::<STRIDE>(), b.split_last_chunk())
        && a_outer == b_outer
    {
        (a, b) = (a_inner, b_inner);
    }
    a.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the outermost frames of a stack that are known from the last one.
    fn shared(last: &LastStack, stack: &[TaggedCode], known: usize) -> usize {
        let mut last = LastStack {
            memory: last.memory.clone(),
        };
        last.reserve(stack.len());
        let shallow = compare::<false>(last.memory(stack.len()), stack, known)
            .map_or(0, |(_, _, inner)| inner.len() + 1);
        let deep = compare::<true>(last.memory(stack.len()), stack, known)
            .map_or(0, |(_, _, inner)| inner.len() + 1);
        assert_eq!(shallow, deep);
        stack.len() - deep
    }

    #[test]
    fn stacks_share_their_outermost_frames_however_many() {
        for depth in [1, 2, 15, 16, 17, 31, 32, 33, 34, 48, 49, 1000] {
            let codes: Vec<TaggedCode> = (0..depth).map(TaggedCode::new).collect();
            let mut last = LastStack::default();
            last.change(0, &codes);
            assert_eq!(shared(&last, &codes, 0), codes.len());
            for changed in 0..codes.len() {
                let mut other = codes.clone();
                other[changed] = TaggedCode::new(5000);
                let outside = codes.len() - changed - 1;
                assert_eq!(shared(&last, &other, 0), outside);
                assert_eq!(shared(&last, &other, outside), outside);
                // A stack that is deeper, and one that is not as deep.
                other.insert(0, TaggedCode::new(6000));
                assert_eq!(shared(&last, &other, 0), outside);
                assert_eq!(shared(&last, &codes[changed..], 0), outside + 1);
            }
        }
    }

    #[test]
    fn frames_that_the_last_stack_had_once_are_not_shared() {
        let codes: Vec<TaggedCode> = (0..40).map(TaggedCode::new).collect();
        for depth in 0..codes.len() {
            let mut last = LastStack::default();
            last.change(0, &codes);
            last.change(depth, &[]);
            assert_eq!(shared(&last, &codes, 0), depth);
        }
    }

    #[test]
    fn frames_that_are_taken_become_part_of_the_last_stack() {
        let codes: Vec<TaggedCode> = (0..10).map(TaggedCode::new).collect();
        let mut last = LastStack::default();
        last.change(0, &codes[6..]);
        let (outermost, place, inner) = compare::<false>(last.memory(10), &codes, 2).unwrap();
        assert_eq!(outermost, codes[5]);
        *place = outermost;
        assert!(inner.eq(codes[..5].iter().rev().copied()));
        assert_eq!(shared(&last, &codes, 0), 10);
    }
}
