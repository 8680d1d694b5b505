//! What is in a trace: the numbers that one pass without stacks can give.

use std::collections::BTreeSet;
use std::io::Read;

use hashbrown::HashMap;
use heapline_trace::{BlockIndex, Damage, Error, Event, Reader, Source, TraceInfo};
use serde::Serialize;

use crate::estimate::{Amount, Estimate, Estimator, Sampling};
use crate::gc_params::GcParams;

/// What is in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// What the trace says of itself.
    pub trace: TraceInfo,
    /// The settings of the garbage collector, in words.
    pub gc_params: GcParams,
    /// The version of the trace's format.
    pub format_version: u16,
    /// Mean number of bytes allocated from one sample to the next.
    pub bytes_per_sample: f64,
    /// Whether every block was recorded.
    pub is_exact: bool,
    /// Seconds from the start of the trace to its latest event.
    pub duration: f64,
    /// Bytes of the trace, decompressed.
    pub trace_bytes: u64,
    /// Packets that were read.
    pub packets: u64,
    /// The domains that wrote events, in order.
    pub domains: Vec<u16>,
    /// Events by kind.
    pub events: EventCounts,
    /// What was sampled.
    pub samples: Samples,
    /// What that amounts to.
    pub bytes: Activity,
    /// Estimated blocks allocated.
    pub blocks_allocated: Estimate,
    /// Bytes promoted, in percent of those allocated on the minor heap. Absent if there are none.
    pub promoted_percent: Option<f64>,
    /// Blocks by size.
    pub size_classes: Vec<SizeClass>,
    /// Words of the largest sampled block, header excluded.
    pub largest_words: u64,
    /// What was wrong with the trace.
    pub damage: Damage,
}

/// Events by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventCounts {
    /// Sampled blocks allocated on the minor heap.
    pub minor: u64,
    /// Sampled blocks allocated directly on the major heap.
    pub major: u64,
    /// Sampled blocks outside the OCaml heap.
    pub external: u64,
    /// Promotions from the minor to the major heap.
    pub promotions: u64,
    /// Blocks found dead.
    pub collections: u64,
    /// Promotions and collections of blocks that the trace does not have.
    pub unmatched: u64,
}

impl EventCounts {
    /// All allocations.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.minor + self.major + self.external
    }
}

/// Sums of samples, which is what memtrace's tools count in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Samples {
    /// All of them.
    pub total: u64,
    /// Of blocks allocated on the minor heap.
    pub minor: u64,
    /// Of blocks allocated elsewhere.
    pub direct: u64,
    /// Of blocks promoted.
    pub promoted: u64,
    /// Of blocks collected in the major heap.
    pub major_collected: u64,
    /// Of blocks of at most 4, 16 and 256 words.
    pub up_to_4_16_256: [u64; 3],
    /// Microseconds from the start to the last event in the order of the file.
    #[serde(rename = "last_event_time_us")]
    pub last_event_time: u64,
}

/// Estimated bytes, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Activity {
    /// Allocated in all.
    pub allocated: Estimate,
    /// Allocated on the minor heap.
    pub minor: Estimate,
    /// Allocated directly on the major heap.
    pub major: Estimate,
    /// Allocated outside the OCaml heap.
    pub external: Estimate,
    /// Promoted from the minor to the major heap.
    pub promoted: Estimate,
    /// Found dead.
    pub collected: Estimate,
    /// Not found dead by the end of the trace.
    pub live_at_end: Estimate,
}

/// Blocks of one range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeClass {
    /// The most words a block of this class has, header excluded; none for the last class.
    pub max_words: Option<u64>,
    /// Sampled blocks.
    pub sampled_blocks: u64,
    /// Estimated blocks.
    pub blocks: Estimate,
    /// Estimated bytes, headers included.
    pub bytes: Estimate,
}

/// The largest block of each class but the last.
const CLASSES: [u64; 4] = [4, 16, 256, 65536];

impl Overview {
    /// Reads the rest of a trace. Stacks are of no use here: open it without.
    pub fn read<R: Read>(reader: &mut Reader<R>) -> Result<Self, Error> {
        let info = reader.info().clone();
        let mut counter = Counter::new(Sampling::new(info.sample_rate, info.word_bytes()));
        let mut domains = BTreeSet::new();
        while let Some(packet) = reader.next_packet(|event, _| counter.count(&event))? {
            if packet.events > 0 {
                domains.insert(packet.domain);
            }
        }
        counter.give_up_early();
        Ok(counter.finish(reader, info, domains))
    }
}

/// The pass over the events. Only what needs the order of events is done here; sums are made at
/// the end, from how many blocks there were of each length.
struct Counter {
    sampling: Sampling,
    index: BlockIndex,
    blocks: Blocks,
    last_event_time: u64,
    latest: u64,
    /// By [`Source`].
    allocated: [Tally; 3],
    promoted: Tally,
    /// By where the blocks were: minor heap, major heap, elsewhere.
    collected: [Tally; 3],
    /// What became of blocks that are still to come: another domain than theirs was faster to
    /// write its packet.
    early: HashMap<u64, Early>,
    unmatched_promotions: u64,
    unmatched_collections: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Early {
    promoted: bool,
    collected: bool,
}

impl Counter {
    fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            index: BlockIndex::new(),
            blocks: Blocks::default(),
            last_event_time: 0,
            latest: 0,
            allocated: Default::default(),
            promoted: Tally::default(),
            collected: Default::default(),
            early: HashMap::new(),
            unmatched_promotions: 0,
            unmatched_collections: 0,
        }
    }

    #[inline]
    fn count(&mut self, event: &Event<'_>) {
        self.last_event_time = event.time();
        self.latest = self.latest.max(event.time());
        match event {
            Event::Alloc(alloc) => {
                let state = match alloc.source {
                    Source::Minor => State::Minor,
                    Source::Major => State::Major,
                    Source::External => State::External,
                };
                self.allocated[state as usize].add(alloc.length, alloc.samples);
                self.index.push(alloc.id);
                self.blocks.push(alloc.length, alloc.samples, state);
                if !self.early.is_empty()
                    && let Some(early) = self.early.remove(&alloc.id)
                {
                    if early.promoted {
                        self.promote(alloc.id);
                    }
                    if early.collected {
                        self.collect(alloc.id);
                    }
                }
            }
            Event::Promote(mark) => self.promote(mark.id),
            Event::Collect(mark) => self.collect(mark.id),
        }
    }

    #[inline]
    fn promote(&mut self, id: u64) {
        let Some(number) = self.index.find(id) else {
            let early = self.early.entry(id).or_default();
            self.unmatched_promotions += u64::from(early.promoted);
            early.promoted = true;
            return;
        };
        if self.blocks.state(number) == State::Minor {
            let (length, samples) = self.blocks.get(number);
            self.promoted.add(length, samples);
            self.blocks.set_state(number, State::Major);
        } else {
            self.unmatched_promotions += 1;
        }
    }

    #[inline]
    fn collect(&mut self, id: u64) {
        let Some(number) = self.index.find(id) else {
            let early = self.early.entry(id).or_default();
            self.unmatched_collections += u64::from(early.collected);
            early.collected = true;
            return;
        };
        match self.blocks.state(number) {
            State::Dead => self.unmatched_collections += 1,
            state => {
                let (length, samples) = self.blocks.get(number);
                self.collected[state as usize].add(length, samples);
                self.blocks.set_state(number, State::Dead);
            }
        }
    }

    /// Those that never came are not there.
    fn give_up_early(&mut self) {
        for early in std::mem::take(&mut self.early).into_values() {
            self.unmatched_promotions += u64::from(early.promoted);
            self.unmatched_collections += u64::from(early.collected);
        }
    }

    fn events(&self) -> EventCounts {
        let [minor, major, external] = self
            .allocated
            .each_ref()
            .map(|tally| tally.total(|_| true).blocks);
        let collected: u64 = self
            .collected
            .iter()
            .map(|tally| tally.total(|_| true).blocks)
            .sum();
        EventCounts {
            minor,
            major,
            external,
            promotions: self.promoted.total(|_| true).blocks + self.unmatched_promotions,
            collections: collected + self.unmatched_collections,
            unmatched: self.unmatched_promotions + self.unmatched_collections,
        }
    }

    fn samples(&self) -> Samples {
        let samples = |tallies: &[Tally], limit: u64| -> u64 {
            let each = tallies
                .iter()
                .map(|tally| tally.total(|length| length <= limit).samples);
            each.fold(0, u64::saturating_add)
        };
        let all = u64::MAX;
        Samples {
            total: samples(&self.allocated, all),
            minor: samples(&self.allocated[..1], all),
            direct: samples(&self.allocated[1..], all),
            promoted: self.promoted.total(|_| true).samples,
            // memtrace takes a block that it does not know for one of a single sample.
            major_collected: samples(&self.collected[1..], all)
                .saturating_add(self.unmatched_collections),
            up_to_4_16_256: [4, 16, 256].map(|limit| samples(&self.allocated, limit)),
            last_event_time: self.last_event_time,
        }
    }

    fn finish<R: Read>(
        self,
        reader: &Reader<R>,
        info: TraceInfo,
        domains: BTreeSet<u16>,
    ) -> Overview {
        let sampling = self.sampling;
        let sources = [Source::Minor, Source::Major, Source::External];
        let sum = |tallies: &[Tally; 3]| {
            tallies
                .iter()
                .zip(sources)
                .map(|(tally, source)| tally.estimate(&sampling, source, |_| true))
                .sum::<Amount>()
        };
        let [minor, major, external] =
            [0, 1, 2].map(|i| self.allocated[i].estimate(&sampling, sources[i], |_| true));
        let promoted = self.promoted.estimate(&sampling, Source::Minor, |_| true);
        let allocated = sum(&self.allocated);
        let collected = sum(&self.collected);
        let live = allocated - collected;

        let mut lower = None;
        let size_classes = CLASSES
            .iter()
            .copied()
            .map(Some)
            .chain([None])
            .map(|max_words| {
                let above = lower;
                lower = max_words;
                let inside = |length: u64| {
                    above.is_none_or(|limit| length > limit)
                        && max_words.is_none_or(|limit| length <= limit)
                };
                let total: Amount = self
                    .allocated
                    .iter()
                    .zip(sources)
                    .map(|(tally, source)| tally.estimate(&sampling, source, inside))
                    .sum();
                SizeClass {
                    max_words,
                    sampled_blocks: total.sampled,
                    blocks: total.blocks.estimate(),
                    bytes: sampling.bytes(&total),
                }
            })
            .collect();

        Overview {
            gc_params: GcParams::parse(&info.ocaml_runtime_params, info.word_bytes()),
            format_version: reader.version(),
            bytes_per_sample: sampling.bytes_per_sample(),
            is_exact: sampling.is_exact(),
            duration: self.latest as f64 / 1e6,
            trace_bytes: reader.offset(),
            packets: reader.packets(),
            domains: domains.into_iter().collect(),
            events: self.events(),
            samples: self.samples(),
            bytes: Activity {
                allocated: sampling.bytes(&allocated),
                minor: sampling.bytes(&minor),
                major: sampling.bytes(&major),
                external: sampling.bytes(&external),
                promoted: sampling.bytes(&promoted),
                collected: sampling.bytes(&collected),
                live_at_end: sampling.bytes(&live),
            },
            blocks_allocated: allocated.blocks.estimate(),
            promoted_percent: (minor.bytes.value > 0.0)
                .then(|| 100.0 * promoted.bytes.value / minor.bytes.value),
            size_classes,
            largest_words: self.allocated.iter().map(Tally::longest).max().unwrap_or(0),
            damage: reader.damage().clone(),
            trace: info,
        }
    }
}

/// Blocks by length.
#[derive(Clone, Debug)]
struct Tally {
    short: Vec<Count>,
    long: HashMap<u64, Count>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    blocks: u64,
    samples: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.samples = self.samples.saturating_add(other.samples);
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            short: vec![Count::default(); 1024],
            long: HashMap::new(),
        }
    }
}

impl Tally {
    #[inline]
    fn add(&mut self, length: u64, samples: u64) {
        let one = Count { blocks: 1, samples };
        match usize::try_from(length)
            .ok()
            .and_then(|n| self.short.get_mut(n))
        {
            Some(count) => count.add(one),
            None => self.long.entry(length).or_default().add(one),
        }
    }

    /// Lengths that occurred, and how often.
    fn counts(&self) -> impl Iterator<Item = (u64, Count)> {
        let short = (0..).zip(self.short.iter().copied());
        let long = self.long.iter().map(|(&length, &count)| (length, count));
        short.chain(long).filter(|(_, count)| count.blocks > 0)
    }

    fn longest(&self) -> u64 {
        self.counts().map(|(length, _)| length).max().unwrap_or(0)
    }

    fn total(&self, inside: impl Fn(u64) -> bool) -> Count {
        let mut total = Count::default();
        for (_, count) in self.counts().filter(|&(length, _)| inside(length)) {
            total.add(count);
        }
        total
    }

    fn estimate(
        &self,
        sampling: &Sampling,
        source: Source,
        inside: impl Fn(u64) -> bool,
    ) -> Amount {
        self.counts()
            .filter(|&(length, _)| inside(length))
            .map(|(length, count)| {
                sampling
                    .amount(Estimator::HorvitzThompson, length, source, 1)
                    .times(count.blocks)
            })
            .sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Minor,
    Major,
    External,
    Dead,
}

/// What must be remembered of each block, in four bytes: its state (2 bits), samples (6 bits) and
/// length (24 bits). What does not fit is kept aside.
#[derive(Debug, Default)]
struct Blocks {
    packed: Vec<u32>,
    large: HashMap<usize, (u64, u64)>,
}

impl Blocks {
    const MANY: u32 = 63;
    const LONG: u32 = (1 << 24) - 1;

    #[inline]
    fn push(&mut self, length: u64, samples: u64, state: State) {
        let packed = match (u32::try_from(length), u32::try_from(samples)) {
            (Ok(length), Ok(samples)) if length <= Self::LONG && samples < Self::MANY => {
                length << 8 | samples << 2
            }
            _ => {
                self.large.insert(self.packed.len(), (length, samples));
                Self::MANY << 2
            }
        };
        self.packed.push(packed | state as u32);
    }

    #[inline]
    fn get(&self, number: usize) -> (u64, u64) {
        let packed = self.packed[number];
        let (length, samples) = (packed >> 8, packed >> 2 & Self::MANY);
        if samples == Self::MANY {
            self.large[&number]
        } else {
            (u64::from(length), u64::from(samples))
        }
    }

    #[inline]
    fn state(&self, number: usize) -> State {
        match self.packed[number] & 3 {
            0 => State::Minor,
            1 => State::Major,
            2 => State::External,
            _ => State::Dead,
        }
    }

    #[inline]
    fn set_state(&mut self, number: usize, state: State) {
        self.packed[number] = self.packed[number] & !3 | state as u32;
    }
}
