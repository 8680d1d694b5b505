//! The simulated server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use heapline_trace::{Encoder, Source, TraceInfo, write_info};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::LongRunTotals;
use super::phase::Phase;
use super::stacks::{Fate, HANDLERS, Stacks};
use crate::generate;

/// Sampled blocks between two minor collections, on average.
const MINOR_HEAP: u64 = 3000;

/// Blocks that the cache holds.
const CACHE: usize = 10_000;

/// Most blocks whose deaths are planned. Beyond that, blocks are leaked, so that memory stays
/// constant however long the run is.
const MAX_PLANNED: usize = 1 << 20;

/// Number of ids that a domain reserves at a time.
const RESERVED_IDS: u64 = 10_000;

/// One of so many blocks is allocated by the last domain, if there are several. Its packets are
/// closed by age, not because they are full.
const IDLE_SHARE: u32 = 1000;

/// One of so many old blocks is collected by another domain than its own.
const ADOPTED_SHARE: u32 = 4;

/// A domain.
#[derive(Debug)]
struct Lane {
    encoder: Encoder,
    next_id: u64,
    /// The end of the ids that are reserved.
    end_id: u64,
    /// Handler of the current request.
    handler: usize,
    /// Sampled blocks that the request still allocates.
    left: u32,
    /// The stack that allocated last.
    stack: usize,
    /// Blocks since the last minor collection.
    nursery: Vec<Newborn>,
}

/// A block that no minor collection has seen yet.
#[derive(Clone, Copy, Debug)]
struct Newborn {
    id: u64,
    source: Source,
    fate: Fate,
}

/// An old block, and the domain that allocated it.
type Old = (u64, u16);

/// State of a run.
pub(super) struct Run<W> {
    lanes: Vec<Lane>,
    sink: CountingSink<W>,
    random: Xoshiro256PlusPlus,
    stacks: Stacks,
    /// Old blocks by the number of the minor collection at which their death is noticed.
    planned: BinaryHeap<Reverse<(u64, Old)>>,
    cache: Vec<Old>,
    /// The end of all ids that are reserved.
    reserved: u64,
    start: u64,
    phase: Phase,
    minor_collections: u64,
    until_collection: u64,
    totals: LongRunTotals,
}

impl<W: Write> Run<W> {
    /// Writes the header of the trace.
    pub(super) fn new(sink: W, info: &TraceInfo, seed: u64, domains: u16) -> io::Result<Self> {
        let mut sink = CountingSink { sink, bytes: 0 };
        write_info(info, &mut sink)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let stacks = Stacks::new(&mut random);
        let lanes = (0..domains).map(|domain| Lane {
            encoder: Encoder::new(info.pid, domain, info.start_time),
            next_id: 0,
            end_id: 0,
            handler: 0,
            left: 0,
            stack: 0,
            nursery: Vec::new(),
        });
        Ok(Self {
            lanes: lanes.collect(),
            sink,
            random,
            stacks,
            planned: BinaryHeap::new(),
            cache: Vec::with_capacity(CACHE),
            reserved: 0,
            start: info.start_time,
            phase: Phase::at(0),
            minor_collections: 0,
            until_collection: MINOR_HEAP,
            totals: LongRunTotals::default(),
        })
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.sink.bytes
    }

    /// Blocks allocated so far.
    pub(super) fn allocations(&self) -> u64 {
        self.totals.allocations
    }

    /// Writes the packets that are open.
    pub(super) fn finish(mut self) -> io::Result<LongRunTotals> {
        for lane in &mut self.lanes {
            lane.encoder.flush(&mut self.sink)?;
        }
        self.sink.flush()?;
        self.totals.bytes = self.sink.bytes;
        Ok(self.totals)
    }

    /// Allocates a block.
    pub(super) fn step(&mut self) -> io::Result<()> {
        if self.until_collection == 0 {
            self.collect()?;
        }
        self.until_collection -= 1;
        let random = &mut self.random;
        self.totals.duration += random.random_range(0..=self.phase.pause);
        let domain = match self.lanes.len() {
            1 => 0,
            count if random.random_ratio(1, IDLE_SHARE) => count - 1,
            count => random.random_range(0..count - 1),
        };
        let lane = &mut self.lanes[domain];
        if lane.left == 0 {
            lane.left = random.random_range(5..=60);
            // Handlers are not called equally often.
            let handlers = self.phase.handlers;
            let rank = random.random_range(0..handlers);
            let rank = rank.min(random.random_range(0..handlers));
            lane.handler = (self.phase.first_handler + rank) % HANDLERS;
        }
        lane.left -= 1;
        let fate = match random.random_range(0..1000) {
            0..900 => Fate::Temporary,
            900..990 => Fate::Medium,
            990..994 => Fate::Cached,
            994..997 if self.phase.leaks => Fate::Leaked,
            _ => Fate::Session,
        };
        lane.stack = Stacks::choose(lane.handler, fate, lane.stack, random);
        let (codes, block) = self.stacks.get(lane.stack, random);
        if lane.next_id == lane.end_id {
            lane.next_id = self.reserved;
            self.reserved += RESERVED_IDS;
            lane.end_id = self.reserved;
        }
        let id = lane.next_id;
        lane.next_id += 1;
        let time = self.start + self.totals.duration;
        let resolve = generate::describe;
        lane.encoder
            .alloc(time, id, block, codes, resolve, &mut self.sink)?;
        lane.nursery.push(Newborn {
            id,
            source: block.source,
            fate,
        });
        self.totals.allocations += 1;
        Ok(())
    }

    /// A minor collection of all domains, with a slice of the major one.
    fn collect(&mut self) -> io::Result<()> {
        self.minor_collections += 1;
        self.until_collection = self
            .random
            .random_range(MINOR_HEAP / 2..=MINOR_HEAP * 3 / 2);
        for domain in 0..self.lanes.len() {
            let mut nursery = std::mem::take(&mut self.lanes[domain].nursery);
            for newborn in nursery.drain(..) {
                if newborn.fate == Fate::Temporary {
                    self.die(domain, newborn.id)?;
                    continue;
                }
                if newborn.source == Source::Minor {
                    let time = self.tick();
                    let encoder = &mut self.lanes[domain].encoder;
                    encoder.promote(time, newborn.id, &mut self.sink)?;
                    self.totals.promotions += 1;
                }
                let domain = u16::try_from(domain).unwrap_or_default();
                self.survive(newborn.fate, (newborn.id, domain));
            }
            self.lanes[domain].nursery = nursery;
        }
        let phase = Phase::at(self.totals.duration);
        if phase.number != self.phase.number {
            self.phase = phase;
            // Another load needs other entries: a quarter of the cache goes at once.
            let kept = self.cache.len() / 4 * 3;
            let dropped = self.cache.drain(kept..);
            let now = self.minor_collections;
            self.planned.extend(dropped.map(|old| Reverse((now, old))));
        }
        while let Some(&Reverse((due, (id, domain)))) = self.planned.peek()
            && due <= self.minor_collections
        {
            self.planned.pop();
            let mut domain = usize::from(domain);
            if self.lanes.len() > 1 && self.random.random_ratio(1, ADOPTED_SHARE) {
                // Never the idle one, so that deaths may come long before the births that they end.
                domain = self.random.random_range(0..self.lanes.len() - 1);
            }
            self.die(domain, id)?;
        }
        Ok(())
    }

    /// Plans the death of a block that survived its first collection.
    fn survive(&mut self, fate: Fate, mut old: Old) {
        let random = &mut self.random;
        let exponent = match fate {
            Fate::Temporary | Fate::Leaked => return,
            Fate::Medium => random.random_range(0..9),
            Fate::Session => random.random_range(8..17),
            Fate::Cached if self.cache.len() < CACHE => {
                self.cache.push(old);
                return;
            }
            Fate::Cached => {
                let victim = random.random_range(0..CACHE);
                std::mem::swap(&mut self.cache[victim], &mut old);
                0
            }
        };
        if self.planned.len() < MAX_PLANNED {
            // Lives differ by orders of magnitude.
            let life = (1_u64 << exponent) + random.random_range(0..1_u64 << exponent);
            let due = self.minor_collections + life;
            self.planned.push(Reverse((due, old)));
        }
    }

    /// Writes the death of a block into the packet of a domain.
    fn die(&mut self, domain: usize, id: u64) -> io::Result<()> {
        let time = self.tick();
        let encoder = &mut self.lanes[domain].encoder;
        encoder.collect(time, id, &mut self.sink)?;
        self.totals.collections += 1;
        Ok(())
    }

    /// The time of an event of a collection, which handles some four blocks per microsecond.
    fn tick(&mut self) -> u64 {
        self.totals.duration += u64::from(self.random.random_ratio(1, 4));
        self.start + self.totals.duration
    }
}

/// Counts what is written.
#[derive(Debug)]
struct CountingSink<W> {
    sink: W,
    bytes: u64,
}

impl<W: Write> Write for CountingSink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.sink.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
