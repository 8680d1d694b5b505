//! Profiles in files, to be opened without reading the trace again.
//!
//! An index has the segments and the clock of a profile, the tables that they share, and answers that were computed when it was
//! written. Its directory comes last: a file without a whole one is not an index. Everything has a checksum.

use std::io;
use std::sync::Arc;

use heapline_model::{Capabilities, Damage, Flaw, Header, InputSize, Runtime, Scheme};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Moment;
use super::classes::Class;
use super::collections::StoredCollections;
use super::ids::{ClassId, Id, IdVec, KindId, NodeId};
use super::kinds::Kind;
use super::profile::{EventClock, Parts, Profile, Segments, Tables, Unmatched};
use super::sealed::{MemoryLimit, SealedColumns};
use super::stacks::Stacks;
use super::stored::{
    PAGE, PageEntry, Place, SegmentEntry, Storage, StoredClock, StoredSegments, Times, damaged,
};
use super::symbols::Symbols;
use super::tallies::Tallies;
use crate::amount::Overshoot;
use crate::sampling::{Estimator, Sampling};

/// The first bytes of each index. The number is that of the format: others are not read.
const MAGIC: &[u8; 16] = b"heapline index 2";

/// Bytes at the end: the place of the directory.
const TRAILER: usize = 12;

/// The input format whose profiles are indexed: others are small.
const FORMAT: &str = "memtrace";

/// Where everything is.
#[derive(Serialize, Deserialize)]
struct Directory {
    /// Identifies the trace.
    trace: Vec<u8>,
    segments: Vec<SegmentEntry>,
    pages: Vec<PageEntry>,
    collections: StoredCollections,
    tables: Place,
    answers: Vec<(String, Place)>,
    damage: StoredDamage,
}

/// All of a profile but its segments and its clock.
#[derive(Serialize, Deserialize)]
struct StoredTables {
    header: StoredHeader,
    size: (u64, u64),
    kinds: IdVec<KindId, Kind>,
    classes: IdVec<ClassId, Class>,
    stacks: Stacks,
    symbols: Symbols,
    lanes: Vec<u16>,
    last_event_time: u64,
    moved: u64,
    unmatched: Unmatched,
    tallies: Tallies,
    boundaries: Vec<u64>,
    gaps: Vec<(u64, u64)>,
    /// By estimator.
    peaks: [u64; 2],
    overshoots: [Overshoot; 2],
}

#[derive(Serialize, Deserialize)]
struct StoredHeader {
    format_version: u32,
    runtime: Runtime,
    program: String,
    host: String,
    pid: u64,
    start_time: u64,
    seed: Option<u64>,
    first_lane: u16,
    context: Option<String>,
    word_bytes: u64,
    scheme: Scheme,
    tells: Capabilities,
}

#[derive(Serialize, Deserialize)]
struct StoredDamage {
    /// Offset, kind, message, and the details as JSON.
    flaws: Vec<(u64, String, String, String)>,
    count: u64,
    lost_bytes: u64,
    lost_allocations: u64,
    uncertain_stacks: u64,
    uncertain_names: u64,
}

impl StoredDamage {
    fn new(damage: &Damage) -> Self {
        let flaws = damage.flaws.iter().map(|flaw| {
            let details = serde_json::to_string(&flaw.details).unwrap_or_default();
            (
                flaw.offset,
                flaw.kind.clone(),
                flaw.message.clone(),
                details,
            )
        });
        Self {
            flaws: flaws.collect(),
            count: damage.count,
            lost_bytes: damage.lost_bytes,
            lost_allocations: damage.lost_allocations,
            uncertain_stacks: damage.uncertain_stacks,
            uncertain_names: damage.uncertain_names,
        }
    }

    fn get(&self) -> Damage {
        let flaws = self
            .flaws
            .iter()
            .map(|(offset, kind, message, details)| Flaw {
                offset: *offset,
                kind: kind.clone(),
                message: message.clone(),
                details: serde_json::from_str(details).unwrap_or_default(),
            });
        Damage {
            flaws: flaws.collect(),
            count: self.count,
            lost_bytes: self.lost_bytes,
            lost_allocations: self.lost_allocations,
            uncertain_stacks: self.uncertain_stacks,
            uncertain_names: self.uncertain_names,
        }
    }
}

/// An answer to keep in an index: its name and its bytes.
pub type IndexedAnswer = (String, Vec<u8>);

impl Profile {
    /// Returns true if it can be put into an index.
    #[must_use]
    pub fn is_indexable(&self) -> bool {
        self.header().format == FORMAT && self.snapshots().is_empty() && self.marks().is_empty()
    }

    /// Writes an index, with what identifies the trace, and answers. A profile that is stored is completed where it is, and `create` is
    /// not called.
    ///
    /// The index is whole once all bytes of the storage are in a file.
    pub fn write_index(
        &self,
        trace: &[u8],
        answers: &[IndexedAnswer],
        create: impl FnOnce() -> io::Result<Arc<dyn Storage>>,
    ) -> io::Result<Arc<dyn Storage>> {
        let SealedColumns {
            storage,
            segments,
            pages,
        } = match (&self.parts().segments, &self.parts().clock) {
            (Segments::Stored(segments), EventClock::Stored(clock)) => SealedColumns {
                storage: Arc::clone(segments.storage()),
                segments: segments.entries().to_vec(),
                pages: clock.pages().to_vec(),
            },
            _ => self.write_columns(create()?)?,
        };
        let collections = self.collections().write(&*storage)?;
        let tables = write(&*storage, &self.stored_tables())?;
        let answers = answers
            .iter()
            .map(|(name, bytes)| Ok((name.clone(), Place::write(&*storage, bytes.clone())?)));
        let directory = Directory {
            trace: trace.to_vec(),
            segments,
            pages,
            collections,
            tables,
            answers: answers.collect::<io::Result<_>>()?,
            damage: StoredDamage::new(self.damage()),
        };
        let place = write(&*storage, &directory)?;
        let mut trailer = place.offset.to_le_bytes().to_vec();
        trailer.extend_from_slice(&place.len.to_le_bytes());
        storage.append(&trailer)?;
        storage.append(MAGIC)?;
        Ok(storage)
    }

    /// Writes the columns of a profile that is in memory.
    fn write_columns(&self, storage: Arc<dyn Storage>) -> io::Result<SealedColumns> {
        let mut segments = Vec::new();
        for number in 0..self.segment_count() {
            let segment = self.segment(number);
            let times = Times::of_events(&segment.lives, |event| self.time(event));
            let entry = SegmentEntry::write(&*storage, &segment.lives, &segment.class, &times)?;
            segments.push(entry);
        }
        let mut pages = Vec::new();
        let mut first = 0;
        while first < self.events() {
            let end = self.events().min(first + PAGE as u64);
            let times: Vec<u64> = (first..end).map(|event| self.time(event)).collect();
            pages.push(PageEntry::write(&*storage, &times)?);
            first = end;
        }
        Ok(SealedColumns {
            storage,
            segments,
            pages,
        })
    }

    fn stored_tables(&self) -> StoredTables {
        let (parts, header) = (self.parts(), self.header());
        let peak = |estimator| self.peak(estimator).moment.0;
        StoredTables {
            header: StoredHeader {
                format_version: header.format_version,
                runtime: header.runtime.clone(),
                program: header.program.clone(),
                host: header.host.clone(),
                pid: header.pid,
                start_time: header.start_time,
                seed: header.seed,
                first_lane: header.first_lane,
                context: header.context.clone(),
                word_bytes: header.word_bytes,
                scheme: header.scheme,
                tells: header.tells,
            },
            size: (parts.size.bytes, parts.size.packets),
            kinds: parts.tables.kinds.clone(),
            classes: parts.tables.classes.clone(),
            stacks: parts.tables.stacks.clone(),
            symbols: (*parts.tables.symbols).clone(),
            lanes: parts.lanes.clone(),
            last_event_time: parts.last_event_time,
            moved: parts.moved,
            unmatched: parts.unmatched,
            tallies: parts.tallies.clone(),
            boundaries: parts.boundaries.clone(),
            gaps: parts.gaps.clone(),
            peaks: Estimator::ALL.map(peak),
            overshoots: Estimator::ALL.map(|estimator| self.overshoot(estimator)),
        }
    }
}

fn write(storage: &dyn Storage, value: &impl Serialize) -> io::Result<Place> {
    let bytes = postcard::to_allocvec(value).map_err(io::Error::other)?;
    Place::write(storage, bytes)
}

fn read<T: DeserializeOwned>(storage: &dyn Storage, place: Place) -> io::Result<T> {
    postcard::from_bytes(&place.read(storage)?).map_err(|_| damaged())
}

/// An index that was opened.
pub struct Index {
    storage: Arc<dyn Storage>,
    directory: Directory,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("segments", &self.directory.segments.len())
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Opens an index of so many bytes. Fails if it is not whole, or of another version.
    pub fn open(storage: Arc<dyn Storage>, bytes: u64) -> io::Result<Self> {
        let mut trailer = [0; TRAILER + MAGIC.len()];
        let start = bytes
            .checked_sub(trailer.len() as u64)
            .ok_or_else(damaged)?;
        storage.read_at(start, &mut trailer)?;
        let (place, magic) = trailer.split_at(TRAILER);
        if magic != MAGIC {
            return Err(damaged());
        }
        let (offset, len) = place.split_at(8);
        let place = Place {
            offset: u64::from_le_bytes(offset.try_into().map_err(|_| damaged())?),
            len: u32::from_le_bytes(len.try_into().map_err(|_| damaged())?),
        };
        if !place.is_within(start) {
            return Err(damaged());
        }
        let directory: Directory = read(&*storage, place)?;
        let Directory {
            segments,
            pages,
            collections,
            tables,
            answers,
            ..
        } = &directory;
        let is_sound = segments.iter().all(|segment| segment.is_within(bytes))
            && pages
                .iter()
                .enumerate()
                .all(|(i, page)| page.is_within(bytes, i + 1 == pages.len()))
            && pages.is_sorted_by(PageEntry::is_before)
            && collections.is_sound(bytes)
            && tables.is_within(bytes)
            && answers.iter().all(|(_, place)| place.is_within(bytes));
        if !is_sound {
            return Err(damaged());
        }
        Ok(Self { storage, directory })
    }

    /// The bytes that identify the trace.
    #[must_use]
    pub fn trace(&self) -> &[u8] {
        &self.directory.trace
    }

    /// The damage of the trace.
    #[must_use]
    pub fn damage(&self) -> Damage {
        self.directory.damage.get()
    }

    /// An answer that was kept.
    pub fn answer(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let answers = &mut self.directory.answers.iter();
        match answers.find(|(found, _)| found == name) {
            Some((_, place)) => place.read(&*self.storage).map(Some),
            None => Ok(None),
        }
    }

    /// The profile. Blocks are read when they are needed, and kept in memory up to the limit.
    pub fn profile(self, limit: MemoryLimit) -> io::Result<Profile> {
        let Self { storage, directory } = self;
        let damage = directory.damage.get();
        let tables: StoredTables = read(&*storage, directory.tables)?;
        let clock = StoredClock::new(Arc::clone(&storage), directory.pages);
        let events = clock.len();
        if !tables.is_sound(events) {
            return Err(damaged());
        }
        let collections = directory.collections.open(&storage);
        let StoredHeader {
            scheme, word_bytes, ..
        } = tables.header;
        let classes = tables.classes.len();
        let segments = StoredSegments::new(storage, directory.segments, classes, events, limit);
        let (peaks, overshoots) = (tables.peaks, tables.overshoots);
        let profile = Profile::new(Parts {
            epoch: 1,
            header: Arc::new(tables.header.get()),
            damage,
            size: InputSize {
                bytes: tables.size.0,
                packets: tables.size.1,
            },
            sampling: Sampling::new(scheme, word_bytes),
            segments: Segments::Stored(segments),
            clock: EventClock::Stored(Arc::new(clock)),
            tables: Tables {
                kinds: tables.kinds,
                classes: tables.classes,
                stacks: tables.stacks,
                symbols: Arc::new(tables.symbols),
            },
            log: None,
            has_recursion: false,
            lanes: tables.lanes,
            last_event_time: tables.last_event_time,
            moved: tables.moved,
            unmatched: tables.unmatched,
            tallies: tables.tallies,
            snapshots: Vec::new(),
            marks: Vec::new(),
            boundaries: tables.boundaries,
            gaps: tables.gaps,
            collections,
        });
        for (estimator, peak) in Estimator::ALL.into_iter().zip(peaks) {
            profile.set_peak(estimator, Moment(peak));
        }
        for (estimator, overshoot) in Estimator::ALL.into_iter().zip(overshoots) {
            profile.set_overshoot(estimator, overshoot);
        }
        Ok(profile)
    }
}

impl StoredHeader {
    fn get(self) -> Header {
        Header {
            format: FORMAT,
            format_version: self.format_version,
            runtime: self.runtime,
            program: self.program,
            host: self.host,
            pid: self.pid,
            start_time: self.start_time,
            seed: self.seed,
            first_lane: self.first_lane,
            context: self.context,
            word_bytes: self.word_bytes,
            scheme: self.scheme,
            tells: self.tells,
        }
    }
}

impl StoredTables {
    /// Returns true if all numbers are those of entries that there are.
    fn is_sound(&self, events: u64) -> bool {
        let (stacks, symbols) = (&self.stacks, &self.symbols);
        let tree = &stacks.tree;
        let is_class = |class: &Class| {
            class.context.index() < stacks.contexts.len() && class.kind.index() < self.kinds.len()
        };
        let is_node = |node: NodeId| {
            tree.parent[node] < node && tree.frame[node].index() < symbols.frames().len()
        };
        let none = <heapline_model::LocationId as Id>::NONE;
        let contexts = &mut stacks.contexts.iter();
        symbols.is_sound()
            && self.classes.iter().all(is_class)
            && tree.len() > 0
            && tree.len() == tree.frame.len()
            && tree.nodes().all(is_node)
            && contexts.all(|context| {
                let has_site = context.site == none || symbols.has_location(context.site);
                context.node.index() < tree.len() && has_site
            })
            && !stacks.contexts.is_empty()
            && self.tallies.by_kind().len() == self.kinds.len()
            && match self.header.scheme {
                Scheme::PerUnit { rate, unit_bytes } => rate > 0.0 && rate <= 1.0 && unit_bytes > 0,
                Scheme::Exact | Scheme::Given => true,
            }
            && self.boundaries.is_sorted()
            && self.peaks.iter().all(|&peak| peak <= events)
    }
}

#[cfg(test)]
mod tests;
