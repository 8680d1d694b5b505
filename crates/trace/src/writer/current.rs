//! The packet that is being filled, and the fast paths that write common events directly into it.

use std::borrow::BorrowMut;

use super::cache::{Coded, MAX_FRAME, MAX_FRAMES, StackCache};
use super::packet::{PacketBuffer, PacketMemory};
use super::stack::{LastStack, SHALLOW, TaggedCode, compare};
use crate::format::{
    MAX_ALLOC, MAX_SMALL_VINT, MAX_WRITTEN_PACKET, code, event_head, put_small_vint, small_vint_len,
};

/// The state that every event uses.
#[derive(Debug)]
pub(super) struct Current<M> {
    pub(super) cache: StackCache,
    /// Its header has the last time and the next id.
    pub(super) events: PacketBuffer<M>,
    /// The first time at which the packet takes no events any more: at any if it has none yet.
    pub(super) time_full: u64,
    /// The end of an allocation that becomes part of the packet once its codes are named; or 0.
    pub(super) unnamed: usize,
}

impl<M: BorrowMut<PacketMemory>> Current<M> {
    /// Returns true if the packet accepts an event of that time, given enough space.
    #[inline]
    fn takes(&self, time: u64) -> bool {
        time >= self.events.time_end() && time < self.time_full
    }

    /// Fast path: writes the next allocation, of a block small enough for an event code of its own.
    /// Returns false if it may not fit, or if there are codes to be [named](Self::unnamed) first.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    pub(super) fn try_alloc(
        &mut self,
        time: u64,
        length: u32,
        stack: &[TaggedCode],
        last_stack: &mut LastStack,
        known: usize,
    ) -> bool {
        if !self.takes(time) || !last_stack.has_room(stack.len()) {
            return false;
        }
        let last = last_stack.memory(stack.len());
        self.events.set_time_end(time);
        let head = event_head(code::SHORT + length, time);
        if stack.len() <= SHALLOW {
            self.put_alloc::<false>(head, stack, last, known)
        } else {
            self.put_alloc::<true>(head, stack, last, known)
        }
    }

    /// This is where the time goes. It calls nothing, so that all registers are for it.
    #[inline(never)]
    fn put_alloc<const DEEP: bool>(
        &mut self,
        head: [u8; 4],
        stack: &[TaggedCode],
        last: &mut [TaggedCode],
        known: usize,
    ) -> bool {
        let depth = stack.len();
        let Some((frame, place, mut inner)) = compare::<DEEP>(last, stack, known) else {
            return self.put_same(head, depth);
        };
        let new = inner.len() + 1;
        let (memory, start) = self.events.memory();
        if DEEP && new >= MAX_FRAMES || start > MAX_WRITTEN_PACKET - MAX_ALLOC - MAX_FRAME * new {
            return false;
        }
        memory[start..][..4].copy_from_slice(&head);
        let common = depth - new;
        let count_at = if DEEP {
            let Some(len) = put_small_vint(&mut memory[start + 4..], common as u64) else {
                return false;
            };
            start + 4 + len
        } else {
            memory[start + 4] = common.to_le_bytes()[0];
            start + 5
        };
        *place = frame;
        let coded = Coded::none(count_at + 1);
        let (coded, unknown) = self.cache.code_known(frame, &mut inner, memory, coded);
        if let Some(unknown) = unknown {
            let left = inner.count();
            let Coded { end, more, last } = coded;
            return self.put_unknown(unknown, &stack[..left], end, more, last);
        }
        memory[count_at] = coded.words(count_at + 1).to_le_bytes()[0];
        self.seal_alloc(coded.end);
        true
    }

    /// Goes on with a stack that has no frames which the last one does not have.
    #[inline(never)]
    fn put_same(&mut self, head: [u8; 4], depth: usize) -> bool {
        let (memory, start) = self.events.memory();
        if start > MAX_WRITTEN_PACKET - MAX_ALLOC {
            return false;
        }
        memory[start..][..4].copy_from_slice(&head);
        let Some(len) = put_small_vint(&mut memory[start + 4..], depth as u64) else {
            return false;
        };
        let end = start + 4 + len;
        memory[end] = 0;
        self.seal_alloc(end + 1);
        true
    }

    /// Goes on with a frame that the cache does not have.
    #[cold]
    #[inline(never)]
    fn put_unknown(
        &mut self,
        unknown: TaggedCode,
        frames: &[TaggedCode],
        end: usize,
        more: usize,
        last: u64,
    ) -> bool {
        let (memory, start) = self.events.memory();
        let count_at = start + 4 + small_vint_len(memory[start + 4]);
        let coded = Coded { end, more, last };
        let coded = self.cache.code_new(unknown, memory, coded);
        let coded = self.cache.code(frames, memory, coded);
        memory[count_at] = coded.words(count_at + 1).to_le_bytes()[0];
        self.unnamed = coded.end;
        false
    }

    /// Writes a promotion or a collection if it is one of a block that is not old, and sure to fit.
    /// Otherwise returns false.
    #[expect(
        clippy::inline_always,
        reason = "hot path: keeps the arguments in registers"
    )]
    #[inline(always)]
    pub(super) fn try_mark(&mut self, code: u32, time: u64, id: u64) -> bool {
        let age = self.events.end_id().wrapping_sub(1).wrapping_sub(id);
        if !self.takes(time) {
            return false;
        }
        let (memory, start) = self.events.memory();
        if start > MAX_WRITTEN_PACKET - 4 - MAX_SMALL_VINT {
            return false;
        }
        memory[start..][..4].copy_from_slice(&event_head(code, time));
        let Some(len) = put_small_vint(&mut memory[start + 4..], age) else {
            return false;
        };
        self.events.set_time_end(time);
        self.events.seal(start + 4 + len);
        true
    }

    /// Makes an allocation part of the packet, which ends there.
    #[inline]
    pub(super) fn seal_alloc(&mut self, end: usize) {
        self.events.set_end_id(self.events.end_id().wrapping_add(1));
        self.events.seal(end);
    }
}
