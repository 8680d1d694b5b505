//! The work of the garbage collector, in few bytes.
//!
//! There may be tens of millions of collections. They are kept by lane, in chunks of packed columns: some 30 bytes each. Those
//! that came last are not packed yet, so that one that is a little late can be put in its place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, OnceLock};

use heapline_model::{Collection, CollectionKind, CollectorCounters, Phase};
use serde::{Deserialize, Serialize};

use super::sealed::MemoryLimit;
use super::stored::{Place, Storage, damaged, pack, unpack};

/// Collections of a chunk.
const CHUNK: usize = 1024;

/// The collections of a profile: for each lane in the order of their ends.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    lanes: Vec<Lane>,
    len: u64,
    refused: u64,
    /// Bytes of the chunks that are in memory.
    memory: usize,
    failure: Arc<OnceLock<String>>,
}

#[derive(Clone, Debug)]
struct Lane {
    number: u16,
    chunks: Vec<Chunk>,
    /// Those that came last.
    recent: Vec<Collection>,
}

#[derive(Clone, Debug)]
struct Chunk {
    columns: Columns,
    len: u32,
    last_end: u64,
}

#[derive(Clone, Debug)]
enum Columns {
    Memory(Arc<[u8]>),
    Stored(Arc<dyn Storage>, Place),
}

/// A chunk in an index.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ChunkEntry {
    place: Place,
    len: u32,
    last_end: u64,
}

/// The collections of an index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoredCollections {
    lanes: Vec<(u16, Vec<ChunkEntry>)>,
    refused: u64,
}

impl Collections {
    /// Returns true if there are none: the source does not tell them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of collections and readings.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Those that were left out because their times cannot be: they end before others that came earlier, or never.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The lanes that have some, in order.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = u16> {
        self.lanes.iter().map(|lane| lane.number)
    }

    /// The collections of a lane in the order of their ends.
    pub fn of_lane(&self, lane: u16) -> impl Iterator<Item = Collection> {
        self.of_lane_from(lane, 0)
    }

    /// The collections of a lane that end at or after a time in nanoseconds since the start, in the order of their ends.
    pub fn of_lane_from(&self, lane: u16, time: u64) -> impl Iterator<Item = Collection> {
        let lane = self.find(lane).ok().map(|place| &self.lanes[place]);
        let chunks = lane.map_or(&[][..], |lane| &lane.chunks);
        let recent = lane.map_or(&[][..], |lane| &lane.recent);
        let number = lane.map_or(0, |lane| lane.number);
        let first = chunks.partition_point(|chunk| chunk.last_end < time);
        chunks[first..]
            .iter()
            .flat_map(move |chunk| self.read(chunk, number))
            .chain(recent.iter().copied())
            .skip_while(move |collection| collection.end() < time)
    }

    /// The collections of all lanes in the order of their ends.
    pub fn in_order(&self) -> impl Iterator<Item = Collection> {
        merged(self.lanes().map(|lane| self.of_lane(lane)), Collection::end)
    }

    /// The time at which the last one ended, in nanoseconds since the start.
    #[must_use]
    pub fn end(&self) -> u64 {
        let ends = self.lanes.iter().filter_map(|lane| {
            let recent = lane.recent.last().map(Collection::end);
            recent.or_else(|| lane.chunks.last().map(|chunk| chunk.last_end))
        });
        ends.max().unwrap_or(0)
    }

    /// Tells why some could not be read, if that happened.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn find(&self, lane: u16) -> Result<usize, usize> {
        self.lanes.binary_search_by_key(&lane, |lane| lane.number)
    }

    fn read(&self, chunk: &Chunk, lane: u16) -> Vec<Collection> {
        let found = match &chunk.columns {
            Columns::Memory(bytes) => decode(bytes, chunk.len, lane).ok_or_else(damaged),
            Columns::Stored(storage, place) => place
                .read(&**storage)
                .and_then(|bytes| decode(&bytes, chunk.len, lane).ok_or_else(damaged)),
        };
        found.unwrap_or_else(|error| {
            self.failure.get_or_init(|| error.to_string());
            Vec::new()
        })
    }

    /// Takes the collections of a batch.
    pub(super) fn append(&mut self, collections: &[Collection]) {
        for collection in collections {
            self.push(*collection);
        }
    }

    fn push(&mut self, collection: Collection) {
        let place = match self.find(collection.lane) {
            Ok(place) => place,
            Err(place) => {
                let lane = Lane {
                    number: collection.lane,
                    chunks: Vec::new(),
                    recent: Vec::new(),
                };
                self.lanes.insert(place, lane);
                place
            }
        };
        let lane = &mut self.lanes[place];
        let end = collection.end();
        let packed = lane.chunks.last().map_or(0, |chunk| chunk.last_end);
        if collection.start.checked_add(collection.length).is_none() || end < packed {
            self.refused += 1;
            return;
        }
        // Nearly always the last one.
        let at = lane.recent.partition_point(|recent| recent.end() <= end);
        lane.recent.insert(at, collection);
        self.len += 1;
        if lane.recent.len() >= 2 * CHUNK {
            let rest = lane.recent.split_off(CHUNK);
            let full = std::mem::replace(&mut lane.recent, rest);
            let chunk = Chunk::new(&full);
            self.memory += chunk.memory();
            lane.chunks.push(chunk);
        }
    }

    /// Writes what takes too much memory to a storage.
    pub(super) fn spill(&mut self, limit: &MemoryLimit) -> io::Result<()> {
        if self.memory <= limit.share(8) {
            return Ok(());
        }
        let storage = (limit.create)()?;
        for chunk in self.lanes.iter_mut().flat_map(|lane| &mut lane.chunks) {
            if let Columns::Memory(bytes) = &chunk.columns {
                let place = Place::write(&*storage, bytes.to_vec())?;
                chunk.columns = Columns::Stored(Arc::clone(&storage), place);
            }
        }
        self.memory = 0;
        Ok(())
    }

    /// Writes all to the storage of an index.
    pub(super) fn write(&self, storage: &dyn Storage) -> io::Result<StoredCollections> {
        let entry = |chunk: &Chunk| {
            let bytes = match &chunk.columns {
                Columns::Memory(bytes) => bytes.to_vec(),
                Columns::Stored(from, place) => place.read(&**from)?,
            };
            Ok(ChunkEntry {
                place: Place::write(storage, bytes)?,
                len: chunk.len,
                last_end: chunk.last_end,
            })
        };
        let lanes = self.lanes.iter().map(|lane| {
            let recent = lane.recent.chunks(CHUNK).map(Chunk::new);
            let recent: Vec<Chunk> = recent.collect();
            let entries = lane.chunks.iter().chain(&recent).map(entry);
            Ok((lane.number, entries.collect::<io::Result<_>>()?))
        });
        Ok(StoredCollections {
            lanes: lanes.collect::<io::Result<_>>()?,
            refused: self.refused,
        })
    }
}

/// Merges what is in the order of a key.
pub(crate) fn merged<I: Iterator<Item = Collection>>(
    sources: impl Iterator<Item = I>,
    key: impl Fn(&Collection) -> u64,
) -> impl Iterator<Item = Collection> {
    let mut sources: Vec<_> = sources.map(Iterator::peekable).collect();
    let mut next = BinaryHeap::with_capacity(sources.len());
    for (number, source) in sources.iter_mut().enumerate() {
        next.extend(source.peek().map(|first| Reverse((key(first), number))));
    }
    std::iter::from_fn(move || {
        let Reverse((_, number)) = next.pop()?;
        let source = &mut sources[number];
        let collection = source.next();
        next.extend(source.peek().map(|first| Reverse((key(first), number))));
        collection
    })
}

impl StoredCollections {
    /// Returns true if it lies within so many bytes, and is in order.
    pub(crate) fn is_sound(&self, bytes: u64) -> bool {
        self.lanes.is_sorted_by(|(a, _), (b, _)| a < b)
            && self.lanes.iter().all(|(_, chunks)| {
                let is_sound = |chunk: &ChunkEntry| {
                    chunk.place.is_within(bytes) && (1..=CHUNK as u32).contains(&chunk.len)
                };
                chunks.iter().all(is_sound) && chunks.is_sorted_by_key(|chunk| chunk.last_end)
            })
    }

    /// The collections, which are read from the storage when they are needed.
    pub(crate) fn open(self, storage: &Arc<dyn Storage>) -> Collections {
        let chunk = |entry: ChunkEntry| Chunk {
            columns: Columns::Stored(Arc::clone(storage), entry.place),
            len: entry.len,
            last_end: entry.last_end,
        };
        let lane = |(number, entries): (u16, Vec<ChunkEntry>)| Lane {
            number,
            chunks: entries.into_iter().map(chunk).collect(),
            recent: Vec::new(),
        };
        let lanes: Vec<Lane> = self.lanes.into_iter().map(lane).collect();
        let chunks = lanes.iter().flat_map(|lane| &lane.chunks);
        Collections {
            len: chunks.map(|chunk| u64::from(chunk.len)).sum(),
            lanes,
            refused: self.refused,
            ..Collections::default()
        }
    }
}

impl Chunk {
    /// Packs collections in the order of their ends.
    fn new(collections: &[Collection]) -> Self {
        Self {
            columns: Columns::Memory(encode(collections).into()),
            len: u32::try_from(collections.len()).unwrap_or(u32::MAX),
            last_end: collections.last().map_or(0, Collection::end),
        }
    }

    fn memory(&self) -> usize {
        match &self.columns {
            Columns::Memory(bytes) => bytes.len(),
            Columns::Stored(..) => 0,
        }
    }
}

const KINDS: [CollectionKind; 5] = [
    CollectionKind::Minor,
    CollectionKind::Slice,
    CollectionKind::Forced,
    CollectionKind::Finalisers,
    CollectionKind::Reading,
];

/// Those with a number that is not 0, which stands for an unknown one.
const PHASES: [Phase; 4] = [Phase::Mark, Phase::Clean, Phase::Sweep, Phase::Idle];

/// The bits of a tag that are a kind, and the place of those that are a phase.
const KIND_BITS: u64 = 7;
const PHASE_SHIFT: u32 = 3;

/// The bit of collections with counters.
const HAS_COUNTERS: u64 = 1 << 6;

fn tag(collection: &Collection) -> u64 {
    let kind = KINDS.iter().position(|&kind| kind == collection.kind);
    let phase = PHASES
        .iter()
        .position(|&phase| Some(phase) == collection.phase);
    let number = |place: Option<usize>| place.map_or(0, |place| place as u64 + 1);
    let counters = if collection.counters.is_some() {
        HAS_COUNTERS
    } else {
        0
    };
    (number(kind) - 1) | number(phase) << PHASE_SHIFT | counters
}

/// The counters of a collection, one column each.
const COUNTERS: [fn(&mut CollectorCounters) -> &mut u64; 9] = [
    |counters| &mut counters.minor_words,
    |counters| &mut counters.promoted_words,
    |counters| &mut counters.major_words,
    |counters| &mut counters.heap_words,
    |counters| &mut counters.free_words,
    |counters| &mut counters.minor_collections,
    |counters| &mut counters.major_collections,
    |counters| &mut counters.compactions,
    |counters| &mut counters.forced_major_collections,
];

fn encode(collections: &[Collection]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut column = |values: Vec<u64>| pack(&values, &mut bytes);
    column(collections.iter().map(tag).collect());
    column(collections.iter().map(Collection::end).collect());
    column(collections.iter().map(|found| found.length).collect());
    let mut counters: Vec<_> = collections
        .iter()
        .filter_map(|found| found.counters)
        .collect();
    for field in COUNTERS {
        column(
            counters
                .iter_mut()
                .map(|counters| *field(counters))
                .collect(),
        );
    }
    bytes
}

fn decode(mut bytes: &[u8], len: u32, lane: u16) -> Option<Vec<Collection>> {
    let bytes = &mut bytes;
    let len = len as usize;
    let tags = unpack(bytes, len)?;
    let ends = unpack(bytes, len)?;
    let lengths = unpack(bytes, len)?;
    let counted = tags.iter().filter(|&tag| tag & HAS_COUNTERS != 0).count();
    let mut counters = vec![CollectorCounters::default(); counted];
    for field in COUNTERS {
        let column = unpack(bytes, counted)?;
        for (counters, value) in counters.iter_mut().zip(column) {
            *field(counters) = value;
        }
    }
    let mut counters = counters.into_iter();
    let mut collections = Vec::with_capacity(len);
    for ((&tag, end), length) in tags.iter().zip(ends).zip(lengths) {
        let number = |bits: u64| usize::try_from(bits).ok();
        let phase = (tag & !HAS_COUNTERS) >> PHASE_SHIFT;
        collections.push(Collection {
            lane,
            kind: *KINDS.get(number(tag & KIND_BITS)?)?,
            start: end.checked_sub(length)?,
            length,
            phase: match number(phase)?.checked_sub(1) {
                None => None,
                Some(phase) => Some(*PHASES.get(phase)?),
            },
            counters: match tag & HAS_COUNTERS {
                0 => None,
                _ => counters.next(),
            },
        });
    }
    collections
        .is_sorted_by_key(Collection::end)
        .then_some(collections)
}

#[cfg(test)]
mod tests;
