//! The mark of a recording that ended before its program.
//!
//! The format has no event for that. The mark is in two fields of the first packet's header that
//! readers ignore: the prediction of a cache check that checks nothing, and the flush duration. It is
//! written in place, so that a full disk does not prevent it.

use std::fmt;
use std::io;

use crate::format::{NO_CHECK, PacketHeader, code63};

/// The reason why a recording ended before its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Ending {
    /// The trace reached its maximum size: new blocks are not recorded any more, but what becomes of
    /// the others is.
    Full = 1,
    /// The trace could not be written.
    Unwritable,
    /// A bug in the recorder.
    Bug,
    /// The program started its own sampler.
    TakenOver,
}

impl Ending {
    /// The reason with a number, as it is stored.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        let all = [Self::Full, Self::Unwritable, Self::Bug, Self::TakenOver];
        all.into_iter().find(|ending| *ending as u64 == number)
    }
}

/// The early end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct EarlyEnd {
    /// The reason.
    pub reason: Ending,
    /// The system's error number that belongs to it, or 0.
    pub errno: u16,
    /// Milliseconds after the start.
    pub after_ms: u32,
}

impl fmt::Display for EarlyEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = f64::from(self.after_ms) / 1e3;
        match self.reason {
            Ending::Full => write!(
                f,
                "the trace reached its maximum size after {after} s; blocks allocated later are missing"
            ),
            Ending::Unwritable => write!(
                f,
                "the recording ended after {after} s, because the trace could not be written: {}",
                io::Error::from_raw_os_error(self.errno.into())
            ),
            Ending::Bug => write!(
                f,
                "the recording ended after {after} s, because of a bug in heapline; please report it"
            ),
            Ending::TakenOver => write!(
                f,
                "the recording ended after {after} s, when the program started its own sampler"
            ),
        }
    }
}

/// Bits of the reason; the others have the error number.
const REASON_BITS: u32 = 3;

impl EarlyEnd {
    /// The bytes that mark a trace, each with its offset. For traces whose first packet was
    /// [signed](crate::tail::sign), which is of version 3.
    #[must_use]
    pub fn marks(&self) -> [(u64, Vec<u8>); 2] {
        let reason = self.reason as u16 | self.errno << REASON_BITS;
        [
            (
                PacketHeader::FLUSH_DURATION,
                self.after_ms.to_le_bytes().into(),
            ),
            (PacketHeader::CHECK_NEXT, reason.to_le_bytes().into()),
        ]
    }

    /// The mark in the header of a first packet.
    pub(crate) fn of(header: &PacketHeader) -> Option<Self> {
        let check = header.check;
        let signed = check.bucket == NO_CHECK && check.code == code63(header.time_begin);
        let reason = u64::from(check.next) & ((1 << REASON_BITS) - 1);
        Some(Self {
            reason: Ending::from_number(reason).filter(|_| signed)?,
            errno: check.next >> REASON_BITS,
            after_ms: header.flush_duration,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::CacheCheck;

    fn header(code: u64) -> PacketHeader {
        PacketHeader {
            size: 68,
            time_begin: 1_700_000_000_000_000,
            time_end: 1_700_000_000_000_000,
            flush_duration: 0,
            version: 3,
            pid: 1,
            domain: 0,
            check: CacheCheck {
                code,
                ..CacheCheck::NONE
            },
            first_id: 0,
            end_id: 0,
        }
    }

    #[test]
    fn marks_are_found_again_in_signed_packets_only() {
        let end = EarlyEnd {
            reason: Ending::Unwritable,
            errno: 28,
            after_ms: 4_000_000_000,
        };
        for (code, found) in [(1_700_000_000_000_000, Some(end)), (0, None)] {
            let mut bytes = header(code).encode();
            assert_eq!(EarlyEnd::of(&PacketHeader::parse(&bytes).unwrap()), None);
            for (offset, mark) in end.marks() {
                let offset = usize::try_from(offset).unwrap();
                bytes[offset..offset + mark.len()].copy_from_slice(&mark);
            }
            assert_eq!(EarlyEnd::of(&PacketHeader::parse(&bytes).unwrap()), found);
        }
    }
}
