//! Stacks as a sampler gives them.

/// The code of a location as OCaml has it in memory: a tagged integer, twice the code plus one.
///
/// Samplers give stacks as arrays of these. They are written without being converted or copied
/// before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct TaggedCode(pub u64);

impl TaggedCode {
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

/// A stack that changes at its inner end. Innermost frame first, as samplers have it, so that it
/// can be compared with theirs many frames at a time.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// The stack is at the end of this, so that it can grow at its inner end.
    memory: Vec<TaggedCode>,
    len: usize,
}

impl Stack {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn frames(&self) -> &[TaggedCode] {
        &self.memory[self.memory.len() - self.len..]
    }

    /// Keeps the outermost frames only.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Adds frames at the inner end. Of those, too, the innermost is first.
    #[inline]
    pub(super) fn extend(&mut self, inner: &[TaggedCode]) {
        self.room(inner.len()).copy_from_slice(inner);
    }

    /// Adds a frame at the inner end.
    pub(super) fn push(&mut self, frame: TaggedCode) {
        self.extend(&[frame]);
    }

    /// Room for more frames, which become part of the stack.
    #[inline]
    fn room(&mut self, count: usize) -> &mut [TaggedCode] {
        self.len += count;
        if self.len > self.memory.len() {
            self.grow();
        }
        let start = self.memory.len() - self.len;
        &mut self.memory[start..start + count]
    }

    #[cold]
    fn grow(&mut self) {
        let more = self.len.next_power_of_two().max(64) - self.memory.len();
        self.memory
            .splice(..0, std::iter::repeat_n(TaggedCode::default(), more));
    }
}

/// How many of their outermost frames two stacks share.
#[inline]
pub(super) fn shared_frames(a: &[TaggedCode], b: &[TaggedCode]) -> usize {
    // Stacks can be thousands of frames deep, and mostly share nearly all of them.
    const STRIDE: usize = 8;
    let (_, a_strides) = a.as_rchunks::<STRIDE>();
    let (_, b_strides) = b.as_rchunks::<STRIDE>();
    let strides = a_strides.iter().rev().zip(b_strides.iter().rev());
    let skipped = STRIDE * strides.take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - skipped], &b[..b.len() - skipped]);
    let rest = a.iter().rev().zip(b.iter().rev());
    skipped + rest.take_while(|(a, b)| a == b).count()
}
