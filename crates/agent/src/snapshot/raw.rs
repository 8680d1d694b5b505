//! The memory of the program, as a snapshot reads it.

use crate::arch;

/// Reads the memory of this process.
///
/// A reader follows whatever the values of the program lead to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw(());

#[expect(
    clippy::unused_self,
    reason = "whoever has a reader has promised that it is safe to read"
)]
impl Raw {
    /// # Safety
    ///
    /// All addresses that are going to be read can be read, or this process is a copy that is only there
    /// for that: a fault ends it, and the snapshot, and nothing else. Nobody writes meanwhile.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    #[inline]
    pub(super) fn word(self, at: usize) -> usize {
        // SAFETY: promised when this was made.
        unsafe { std::ptr::with_exposed_provenance::<usize>(at).read_unaligned() }
    }

    #[inline]
    pub(super) fn int(self, at: usize) -> u32 {
        // SAFETY: promised when this was made.
        unsafe { std::ptr::with_exposed_provenance::<u32>(at).read_unaligned() }
    }

    #[inline]
    pub(super) fn half(self, at: usize) -> u16 {
        // SAFETY: promised when this was made.
        unsafe { std::ptr::with_exposed_provenance::<u16>(at).read_unaligned() }
    }

    #[inline]
    pub(super) fn byte(self, at: usize) -> u8 {
        // SAFETY: promised when this was made.
        unsafe { std::ptr::with_exposed_provenance::<u8>(at).read() }
    }

    /// A text that ends in NUL, up to a length.
    pub(super) fn text(self, at: usize, longest: usize) -> Vec<u8> {
        let bytes = (0..longest).map(|n| self.byte(at + n));
        bytes.take_while(|byte| *byte != 0).collect()
    }

    /// Tells the processor that an address is going to be read.
    #[inline]
    pub(super) fn prefetch(at: usize) {
        arch::prefetch(at);
    }
}
