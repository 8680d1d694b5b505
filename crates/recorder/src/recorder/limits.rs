//! The limits of a trace: its size, and what it takes on disk.

use std::sync::atomic::Ordering;

use heapline_trace::MAX_WRITTEN_PACKET;
use heapline_trace::tail::layout::Word;

use super::{Recorder, load};
use crate::clock::Reading;
use crate::lane::Work;
use crate::tail::Ending;

/// Maximum number of bytes for the promotion and the collection of a block in the trace.
const MAX_FATE: u64 = 2 * 9;

/// The most that a domain may add before it is counted: three packets, and the ends of all blocks
/// that fit into one.
const UNWRITTEN: u64 = 6 * MAX_WRITTEN_PACKET as u64;

/// Blocks that are not recorded in a pause before it is looked whether that can end: looking is a system
/// call.
const REFUSED: u64 = 64;

impl Recorder {
    /// Takes no new blocks any more once the rest of the room is needed for what becomes of those
    /// that are in the trace: so all that is in it is complete, lifetimes included.
    #[cold]
    pub(super) fn check_size(&self, work: &mut Work) {
        let more = work.counters.more_outstanding();
        let outstanding = self.outstanding.fetch_add(more, Ordering::Relaxed) + more;
        if let Some(most) = self.max_allocated {
            self.check_allocated(most);
        }
        let Some(max_size) = self.max_size else {
            if !self.open.load(Ordering::Relaxed) {
                work.ids.end();
            }
            return;
        };
        let lanes = self.lanes.iter().filter(|lane| load(lane).is_some());
        let needed = self.file.len()
            + outstanding.max(0).cast_unsigned() * MAX_FATE
            + lanes.count() as u64 * UNWRITTEN;
        if needed > max_size && self.open.swap(false, Ordering::Relaxed) {
            self.say_ending(Ending::Full, None);
        }
        if self.file.len() > max_size {
            self.recording.store(false, Ordering::Relaxed);
        }
        if !self.open.load(Ordering::Relaxed) {
            work.ids.end();
        }
    }

    /// Takes no new blocks for a while if the file takes too much of the disk, because what was read has not
    /// been freed yet. The other half of the room is for what becomes of blocks that are in the trace. The
    /// program never waits.
    fn check_allocated(&self, most: u64) {
        let Ok(allocated) = self.file.allocated() else {
            return;
        };
        if allocated > most {
            self.end_early(Ending::Full, None);
        } else if allocated > most / 2 && self.open.swap(false, Ordering::Relaxed) {
            self.refused.store(0, Ordering::Relaxed);
            self.is_paused.store(true, Ordering::Release);
        }
    }

    /// Returns true if new blocks are taken. Ends a pause if there is room again.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) || self.resume()
    }

    #[cold]
    fn resume(&self) -> bool {
        let Some(most) = self.max_allocated else {
            return false;
        };
        if !self.is_paused.load(Ordering::Acquire) || !self.is_recording() {
            return false;
        }
        let refused = self.refused.fetch_add(1, Ordering::Relaxed);
        if !refused.is_multiple_of(REFUSED) {
            return false;
        }
        let allocated = self.file.allocated();
        if !allocated.is_ok_and(|allocated| allocated <= most / 4) {
            if refused == 0 {
                // A pause without a new block is none.
                let time = self.now();
                self.status().set(Word::PausedAt as usize, time);
            }
            return false;
        }
        if !self.is_paused.swap(false, Ordering::AcqRel) {
            return false;
        }
        if refused > 0 {
            let time = self.now();
            self.status().set(Word::ResumedAt as usize, time);
        }
        self.open.store(true, Ordering::Relaxed);
        if !self.is_recording() {
            // It has ended meanwhile.
            self.open.store(false, Ordering::Relaxed);
        }
        self.open.load(Ordering::Relaxed)
    }

    /// Microseconds since the start.
    pub(super) fn now(&self) -> u64 {
        self.clock
            .time(Reading::now())
            .saturating_sub(self.start_time)
    }
}
