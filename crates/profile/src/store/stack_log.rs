//! All stacks as they came, in a few bytes each: what the collapsed call tree forgets.
//!
//! The tree of a profile has each function once in a path. Whoever wants to see recursive calls in
//! full gets a second tree, which is built from this log.

use std::sync::Arc;

use heapline_model::{Batch, LocationId};

/// Bytes of a piece of the log: a log grows without being copied.
const PIECE: usize = 1 << 20;

/// The stacks of all blocks, in the order of the source, each as a change to the last one of its
/// lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackLog {
    /// Those that are full, which snapshots share.
    pieces: Vec<Arc<Vec<u8>>>,
    last: Vec<u8>,
    lane: u16,
}

/// A stack of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedStack<'a> {
    pub(crate) lane: u16,
    pub(crate) shared: usize,
    pub(crate) truncated: bool,
    pub(crate) new: &'a [LocationId],
}

/// Bits of the first number of a stack.
const LANE_FOLLOWS: u64 = 1;
const TRUNCATED: u64 = 2;
const FLAG_BITS: u32 = 2;

impl StackLog {
    pub(crate) fn append(&mut self, batch: &Batch) {
        let mut frames = batch.frames();
        for birth in batch.births() {
            if self.last.len() >= PIECE {
                let full = std::mem::replace(&mut self.last, Vec::with_capacity(PIECE + 4096));
                self.pieces.push(Arc::new(full));
            }
            let out = &mut self.last;
            let is_new_lane = birth.lane != self.lane;
            let flags =
                u64::from(is_new_lane) * LANE_FOLLOWS + u64::from(birth.truncated) * TRUNCATED;
            put(out, u64::from(birth.shared) << FLAG_BITS | flags);
            if is_new_lane {
                self.lane = birth.lane;
                put(out, birth.lane.into());
            }
            put(out, birth.new.into());
            let (new, rest) = frames.split_at(birth.new as usize);
            for location in new {
                put(out, location.0.into());
            }
            frames = rest;
        }
    }

    /// Hands over all stacks, in order.
    pub(crate) fn replay(&self, mut f: impl FnMut(LoggedStack<'_>)) {
        let mut new = Vec::new();
        let mut lane = 0;
        let pieces = self.pieces.iter().map(|piece| &piece[..]);
        for piece in pieces.chain([&self.last[..]]) {
            let mut rest = piece;
            while !rest.is_empty() {
                let head = take(&mut rest);
                if head & LANE_FOLLOWS != 0 {
                    lane = u16::try_from(take(&mut rest)).unwrap_or(u16::MAX);
                }
                let frames = take(&mut rest);
                new.clear();
                new.extend((0..frames).map(|_| LocationId(narrow(take(&mut rest)))));
                f(LoggedStack {
                    lane,
                    shared: usize::try_from(head >> FLAG_BITS).unwrap_or(usize::MAX),
                    truncated: head & TRUNCATED != 0,
                    new: &new,
                });
            }
        }
    }
}

/// Appends a number, seven bits a byte.
#[inline]
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(low_byte(number) | 0x80);
        number >>= 7;
    }
    out.push(low_byte(number));
}

#[inline]
fn low_byte(number: u64) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}

#[inline]
fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    number
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use heapline_model::Birth;

    use super::*;

    #[test]
    fn stacks_come_back_as_they_went_in() {
        let mut batch = Batch::default();
        let mut expected = Vec::new();
        for i in 0..3000_u32 {
            let lane = u16::try_from(i / 700 * 300).unwrap();
            let new: Vec<LocationId> = (0..i % 50).map(|n| LocationId(i * n * n)).collect();
            let birth = Birth {
                shared: i * 31 % 20_000,
                truncated: i % 7 == 0,
                ..Birth::default()
            };
            batch.birth(i.into(), lane, i.into(), birth, new.iter().copied());
            if i % 2 == 0 {
                batch.death(i.into(), 9, i.into());
            }
            expected.push((lane, birth.shared as usize, birth.truncated, new));
        }
        let mut log = StackLog::default();
        log.append(&batch);
        let mut found = Vec::new();
        log.replay(|stack| {
            found.push((
                stack.lane,
                stack.shared,
                stack.truncated,
                stack.new.to_vec(),
            ));
        });
        assert_eq!(found, expected);
    }
}
