//! The limits of a trace: its size, and what it takes on disk.

use std::sync::atomic::Ordering;
use std::time::Duration;

use heapline_trace::MAX_WRITTEN_PACKET;

use super::{Recorder, load, wait_until};
use crate::lane::Work;
use crate::tail::Ending;

/// Maximum number of bytes for the promotion and the collection of a block in the trace.
const MAX_FATE: u64 = 2 * 9;

/// The most that a domain may add before it is counted: two packets, and the ends of all blocks
/// that fit into one.
const UNWRITTEN: u64 = 5 * MAX_WRITTEN_PACKET as u64;

/// The time that a recording whose file is full waits for the process that frees it.
const PATIENCE: Duration = Duration::from_secs(5);

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

    /// Takes no new blocks any more if the file takes too much of the disk, because nobody frees what is
    /// read. Waits a little for that before.
    fn check_allocated(&self, most: u64) {
        let is_above = |limit| self.file.allocated().is_ok_and(|bytes| bytes > limit);
        let nearly = most / 4 * 3;
        if !is_above(nearly) {
            return;
        }
        if self.open.load(Ordering::Relaxed) && !wait_until(PATIENCE, || !is_above(nearly)) {
            self.open.store(false, Ordering::Relaxed);
            self.say_ending(Ending::Full, None);
        }
        if is_above(most) {
            self.recording.store(false, Ordering::Relaxed);
        }
    }
}
