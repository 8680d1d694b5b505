//! Profiles that are larger than memory: segments and the clock in a [`Storage`].

mod change_log;
mod columns;
mod packed;
mod segment;
mod storage;

pub(crate) use change_log::{ChangeLog, LoggedChange};
pub(crate) use columns::{PAGE, PageEntry, SegmentEntry, StoredClock, StoredSegments, Zone};
pub(crate) use packed::{pack, unpack};
pub(crate) use segment::{StoredSegment, Times};
#[cfg(test)]
pub(crate) use storage::memory;
pub use storage::{CreateStorage, Storage};
pub(crate) use storage::{Place, StoredNumbers, damaged};
