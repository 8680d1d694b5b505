//! The segments and the clock of a profile in a storage.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use super::super::ids::{ClassId, Id};
use super::super::profile::Segment;
use super::super::sealed::MemoryLimit;
use super::super::segment::{Lives, NEVER, SEGMENT};
use super::segment::{StoredSegment, Times, decode, decode_page, encode, encode_page};
use super::storage::{Place, Storage, damaged};

/// Events of a page of the clock.
pub(crate) const PAGE: usize = 1 << 16;

/// Bytes of a segment in memory.
const SEGMENT_BYTES: usize = SEGMENT * 40;

/// A segment in a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentEntry {
    place: Place,
    pub(crate) blocks: u32,
    pub(crate) zone: Zone,
}

/// The events of a segment: reports leave out segments in which nothing can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Zone {
    pub(crate) first_birth: u64,
    pub(crate) last_birth: u64,
    /// [`NEVER`] if a block outlives the trace.
    pub(crate) last_death: u64,
}

impl Zone {
    /// All events: nothing is known.
    pub(crate) const ANY: Self = Self {
        first_birth: 0,
        last_birth: NEVER,
        last_death: NEVER,
    };

    fn new(lives: &Lives) -> Self {
        let blocks = || 0..lives.len();
        Self {
            first_birth: blocks().map(|i| lives.birth(i)).min().unwrap_or(0),
            last_birth: blocks().map(|i| lives.birth(i)).max().unwrap_or(0),
            last_death: blocks().map(|i| lives.death(i)).max().unwrap_or(0),
        }
    }
}

impl SegmentEntry {
    /// Writes a segment.
    pub(crate) fn write(
        storage: &dyn Storage,
        lives: &Lives,
        class: &[ClassId],
        times: &Times,
    ) -> io::Result<Self> {
        Ok(Self {
            place: Place::write(storage, encode(lives, class, times))?,
            blocks: u32::try_from(lives.len()).unwrap_or(u32::MAX),
            zone: Zone::new(lives),
        })
    }

    /// Reads the segment, with classes and events below some numbers.
    pub(crate) fn read(
        &self,
        storage: &dyn Storage,
        classes: usize,
        events: u64,
    ) -> io::Result<StoredSegment> {
        let bytes = self.place.read(storage)?;
        decode(&bytes, classes, events)
            .filter(|segment| segment.class.len() == self.blocks as usize)
            .ok_or_else(damaged)
    }

    /// Returns true if it lies within so many bytes.
    pub(crate) fn is_within(&self, bytes: u64) -> bool {
        self.place.is_within(bytes)
    }
}

/// All segments of a profile, in a storage.
#[derive(Debug)]
pub(crate) struct StoredSegments {
    storage: Arc<dyn Storage>,
    entries: Vec<SegmentEntry>,
    classes: usize,
    events: u64,
    /// The segments that stay in memory once they were read: the first ones that are, as many as there is room for. Reports read
    /// all segments in order, so that those that were read last would always be the wrong ones.
    kept: Vec<OnceLock<Segment>>,
    /// How many more may be kept.
    room: AtomicUsize,
    limit: MemoryLimit,
    failure: OnceLock<String>,
}

impl StoredSegments {
    /// The segments in a storage, as many of which are kept in memory as the limit allows.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        entries: Vec<SegmentEntry>,
        classes: usize,
        events: u64,
        limit: MemoryLimit,
    ) -> Self {
        // The rest is for stacks and names, and for what reports need.
        let memory = limit.share(8);
        Self {
            storage,
            kept: entries.iter().map(|_| OnceLock::new()).collect(),
            entries,
            classes,
            events,
            room: AtomicUsize::new(memory / SEGMENT_BYTES),
            limit,
            failure: OnceLock::new(),
        }
    }

    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    pub(crate) fn limit(&self) -> &MemoryLimit {
        &self.limit
    }

    pub(crate) fn entries(&self) -> &[SegmentEntry] {
        &self.entries
    }

    /// A segment. If it cannot be read, blocks stand in for those that are lost, and [`failure`](Self::failure) tells.
    pub(crate) fn get(&self, number: usize) -> Segment {
        if let Some(segment) = self.kept[number].get() {
            return segment.clone();
        }
        let entry = &self.entries[number];
        let segment: Segment = match entry.read(&*self.storage, self.classes, self.events) {
            Ok(stored) => stored.into(),
            Err(error) => {
                self.fail(&error);
                stand_in(entry.blocks as usize).into()
            }
        };
        let less = |room: usize| room.checked_sub(1);
        let order = Ordering::Relaxed;
        if self.room.fetch_update(order, order, less).is_ok() {
            return self.kept[number].get_or_init(|| segment).clone();
        }
        segment
    }

    /// Notes that something cannot be read or written.
    pub(crate) fn fail(&self, error: &io::Error) {
        self.failure.get_or_init(|| error.to_string());
    }

    /// Tells why blocks could not be read, if that happened. Reports on them are wrong then.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

/// Blocks that stand in for others.
fn stand_in(blocks: usize) -> StoredSegment {
    let mut lives = Lives::starting_at(0);
    for _ in 0..blocks {
        lives.push(0);
    }
    lives.shrink();
    StoredSegment {
        lives,
        class: vec![ClassId::from_index(0); blocks],
        times: Times {
            birth: vec![0; blocks],
            promotion: Vec::new(),
            death: vec![0; blocks],
        },
    }
}

/// A page of the clock in a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageEntry {
    place: Place,
    events: u32,
    first: u64,
    last: u64,
}

impl PageEntry {
    /// Writes a page of times, which are in order.
    pub(crate) fn write(storage: &dyn Storage, times: &[u64]) -> io::Result<Self> {
        Ok(Self {
            place: Place::write(storage, encode_page(times))?,
            events: u32::try_from(times.len()).unwrap_or(u32::MAX),
            first: times.first().copied().unwrap_or(0),
            last: times.last().copied().unwrap_or(0),
        })
    }

    /// Returns true if its times are not after those of another page.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        self.last <= other.first
    }

    /// Returns true if it is a page that there can be, within so many bytes.
    pub(crate) fn is_within(&self, bytes: u64, is_last: bool) -> bool {
        let events = self.events as usize;
        let is_full = events == PAGE || is_last && 0 < events && events <= PAGE;
        self.place.is_within(bytes) && is_full && self.first <= self.last
    }
}

/// The times of all events, in a storage.
#[derive(Debug)]
pub(crate) struct StoredClock {
    storage: Arc<dyn Storage>,
    pages: Vec<PageEntry>,
    len: u64,
    /// The page that was read last.
    recent: Mutex<Option<(usize, Arc<Vec<u64>>)>>,
    failure: OnceLock<String>,
}

impl StoredClock {
    pub(crate) fn new(storage: Arc<dyn Storage>, pages: Vec<PageEntry>) -> Self {
        Self {
            storage,
            len: pages.iter().map(|page| u64::from(page.events)).sum(),
            pages,
            recent: Mutex::new(None),
            failure: OnceLock::new(),
        }
    }

    pub(crate) fn pages(&self) -> &[PageEntry] {
        &self.pages
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The time of an event.
    // Not a part of loops over blocks, which have the times of their events.
    #[cold]
    #[inline(never)]
    pub(crate) fn get(&self, event: u64) -> u64 {
        let event = usize::try_from(event).unwrap_or(usize::MAX);
        let page = self.page(event / PAGE);
        page.get(event % PAGE).copied().unwrap_or(0)
    }

    /// How many events are before the first one for which `after` holds.
    pub(crate) fn count_before(&self, after: impl Fn(u64) -> bool) -> u64 {
        let number = self.pages.partition_point(|page| !after(page.last));
        if number == self.pages.len() {
            return self.len;
        }
        let page = self.page(number);
        (number * PAGE + page.partition_point(|&time| !after(time))) as u64
    }

    fn page(&self, number: usize) -> Arc<Vec<u64>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((found, page)) = &*recent
            && *found == number
        {
            return Arc::clone(page);
        }
        let Some(entry) = self.pages.get(number) else {
            return Arc::default();
        };
        let read = entry
            .place
            .read(&*self.storage)
            .and_then(|bytes| decode_page(&bytes, entry.events as usize).ok_or_else(damaged));
        let page = match read {
            Ok(page) => Arc::new(page),
            Err(error) => {
                self.failure.get_or_init(|| error.to_string());
                Arc::new(vec![entry.first; entry.events as usize])
            }
        };
        *recent = Some((number, Arc::clone(&page)));
        page
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}
