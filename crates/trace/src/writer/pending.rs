//! Allocations that the fast path did not complete.

use std::borrow::BorrowMut;
use std::io;

use super::Block;
use super::encoder::Encoder;
use super::names::FrameSink;
use super::packet::{PacketMemory, PacketSink};
use super::stack::Frames;

/// An allocation that [`Encoder::try_alloc`] did not complete, and the encoder, which takes nothing
/// else before.
#[derive(Debug)]
#[must_use = "part of the allocation may be in the trace: finish it"]
pub struct Pending<'e, M> {
    pub(super) encoder: &'e mut Encoder<M>,
}

/// A [`Pending`] allocation without its encoder, for those who have other means to keep others from
/// using it.
#[derive(Debug)]
#[must_use = "part of the allocation may be in the trace: attach it to its encoder and finish it"]
pub struct Detached(());

impl<M: BorrowMut<PacketMemory>> Pending<'_, M> {
    /// Encodes the allocation, whatever it is.
    ///
    /// The arguments are given again because keeping them would take the fast path registers. They
    /// are not used if the allocation is [half done](Encoder::is_half_done).
    #[inline]
    pub fn finish<'s>(
        self,
        time: u64,
        id: u64,
        block: Block,
        stack: impl Into<Frames<'s>>,
        mut resolve: impl FnMut(u64, &mut FrameSink<'_>),
        sink: &mut impl PacketSink,
    ) -> io::Result<()> {
        self.encoder
            .finish_alloc(time, id, block, stack.into(), &mut resolve, sink)
    }

    /// Lets go of the encoder. [`Encoder::attach`] resumes.
    #[inline]
    pub fn detach(self) -> Detached {
        Detached(())
    }
}
