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
/// can be compared with theirs as it is.
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

    /// How many outermost frames this has in common with another stack. So many are known to be.
    #[inline(never)]
    pub(super) fn shared_with(&self, stack: &[TaggedCode], known: usize) -> usize {
        let last = self.frames();
        let len = last.len().min(stack.len());
        let (a, b) = (&last[last.len() - len..], &stack[stack.len() - len..]);
        let unknown = len.saturating_sub(known);
        len - differing(&a[..unknown], &b[..unknown])
    }

    /// Adds frames at the inner end. Of those, too, the innermost is first.
    pub(super) fn extend(&mut self, inner: &[TaggedCode]) {
        self.change(self.len(), inner);
    }

    /// Keeps so many of the outermost frames, which it must have, and puts others in the place of
    /// the rest.
    #[inline]
    pub(super) fn change(&mut self, kept: usize, inner: &[TaggedCode]) {
        let len = kept + inner.len();
        while self.memory.len() < len {
            self.grow();
        }
        self.start = self.memory.len() - len;
        self.memory[self.start..][..inner.len()].copy_from_slice(inner);
    }

    /// Adds a frame at the inner end.
    pub(super) fn push(&mut self, frame: TaggedCode) {
        self.extend(&[frame]);
    }

    /// Makes room at the inner end.
    #[cold]
    fn grow(&mut self) {
        let more = self.memory.len().max(64);
        let room = std::iter::repeat_n(TaggedCode::default(), more);
        self.memory.splice(..0, room);
        self.start += more;
    }
}

/// Stacks can be thousands of frames deep, and mostly share nearly all of them. Then it is worth
/// while to compare so many at a time.
const STRIDE: usize = 16;

/// Of two stacks of the same depth, the length of the inner part outside of which they are the same.
#[inline]
fn differing(a: &[TaggedCode], b: &[TaggedCode]) -> usize {
    if a.len() > 2 * STRIDE {
        return differing_strides(a, b);
    }
    let innermost = a.iter().zip(b).rposition(|(a, b)| a != b);
    innermost.map_or(0, |frame| frame + 1)
}

/// The same for deep stacks.
#[inline(never)]
fn differing_strides(mut a: &[TaggedCode], mut b: &[TaggedCode]) -> usize {
    while let (Some((a_inner, a_outer)), Some((b_inner, b_outer))) =
        (a.split_last_chunk::<STRIDE>(), b.split_last_chunk())
        && a_outer == b_outer
    {
        (a, b) = (a_inner, b_inner);
    }
    let inner = a.len().saturating_sub(STRIDE);
    inner + differing(&a[inner..], &b[inner..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_outermost_frames_however_many() {
        for depth in [1, 2, 15, 16, 17, 31, 32, 33, 34, 48, 49, 1000] {
            let codes: Vec<TaggedCode> = (0..depth).map(TaggedCode::new).collect();
            let mut stack = Stack::default();
            stack.extend(&codes);
            assert_eq!(stack.shared_with(&codes, 0), codes.len());
            for changed in 0..codes.len() {
                let mut other = codes.clone();
                other[changed] = TaggedCode::new(5000);
                let shared = codes.len() - changed - 1;
                assert_eq!(stack.shared_with(&other, 0), shared);
                assert_eq!(stack.shared_with(&other, shared), shared);
                // A stack that is deeper, and one that is not as deep.
                other.insert(0, TaggedCode::new(6000));
                assert_eq!(stack.shared_with(&other, 0), shared);
                assert_eq!(stack.shared_with(&codes[changed..], 0), shared + 1);
            }
        }
    }
}
