//! Programs that never ran, with the work of their garbage collector.
//!
//! Most of the time they have a minor collection each 10 ms or so, with a slice of a major collection after it. At known times
//! something else happens, which is what the longest pauses are about.

use heapline_model::{
    Batch, Birth, Capabilities, Collection, CollectionKind, CollectorCounters, EventKind, Frame,
    Header, LocationId, Phase, Runtime, Scheme, Space,
};
use heapline_trace::{Block, FrameSink, Source, TraceInfo, Writer};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::generate;

/// The probability that a word is sampled, unless another is asked for.
pub const RATE: f64 = 1e-4;

/// Words of the minor heap of a domain.
pub const MINOR_HEAP: u64 = 262_144;

/// The functions that allocate: one of everything, one whose blocks are promoted in a burst.
pub const FUNCTIONS: [&str; 3] = ["Server.handle", "Parse.build", "Cache.add"];

/// The settings of the collector.
const PARAMETERS: &str = "o=120,s=262144";

const MS: u64 = 1_000_000;

/// A program and its run.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    /// Domains. With several, minor collections stop all of them, as OCaml 5's do.
    pub domains: u16,
    /// How long it runs.
    pub seconds: u64,
    /// The probability that a word is sampled.
    pub rate: f64,
    /// Decides everything else.
    pub seed: u64,
}

impl Default for Collected {
    fn default() -> Self {
        Self {
            domains: 1,
            seconds: 10,
            rate: RATE,
            seed: 1,
        }
    }
}

impl Collected {
    /// The header of the trace.
    #[must_use]
    pub fn header(&self) -> Header {
        Header {
            format: "memtrace",
            format_version: 1,
            runtime: Runtime::OCaml {
                parameters: PARAMETERS.into(),
            },
            program: "/usr/bin/server.exe".into(),
            host: "nowhere".into(),
            pid: 4711,
            start_time: 1_700_000_000_000_000,
            seed: Some(self.seed),
            first_lane: 0,
            context: None,
            word_bytes: 8,
            scheme: Scheme::PerUnit {
                rate: self.rate,
                unit_bytes: 8,
            },
            tells: Capabilities {
                lifetimes: true,
                promotions: true,
                gc_parameters: true,
                lanes: true,
                sizes: true,
            },
        }
    }

    /// Everything that happens.
    #[must_use]
    pub fn batch(&self) -> Batch {
        let mut run = Run {
            random: Xoshiro256PlusPlus::seed_from_u64(self.seed),
            batch: Batch::default(),
            counters: vec![CollectorCounters::default(); usize::from(self.domains)],
            blocks: 0,
            births: Vec::new(),
            rate: self.rate,
        };
        for id in 0..=FUNCTIONS.len() {
            let code = 0x40_0000 + 16 * id as u64;
            let location = LocationId(u32::try_from(id).unwrap_or(0));
            run.batch.define(location, code, [frame(id)]);
        }
        for lane in 0..self.domains {
            run.collection(lane, CollectionKind::Reading, 0, 0, None);
        }
        let end = self.seconds * 1000 * MS;
        let mut time = 0;
        let mut cycle = 0;
        loop {
            let next = time + run.random.random_range(8..13) * MS;
            if next + 200 * MS > end {
                break;
            }
            run.allocate(time / 1000, next / 1000);
            time = run.collect(next, cycle);
            cycle += 1;
        }
        for lane in 0..self.domains {
            run.collection(lane, CollectionKind::Reading, end, 0, None);
        }
        run.batch
    }

    /// The trace of the run, as a file.
    #[must_use]
    pub fn trace(&self) -> Vec<u8> {
        let batch = self.batch();
        let info = TraceInfo {
            sample_rate: self.rate,
            executable_name: self.header().program,
            ocaml_runtime_params: PARAMETERS.into(),
            ..generate::info()
        };
        let mut writer =
            Writer::new(Vec::new(), &info).unwrap_or_else(|_| unreachable!("memory takes all"));
        let mut births = batch.births().iter();
        let mut frames = batch.frames().iter();
        let mut collections = batch.collections().iter().peekable();
        for event in batch.events() {
            while let Some(work) = collections.next_if(|work| work.end() / 1000 <= event.time) {
                write_collection(&mut writer, work);
            }
            let (time, lane, id) = (event.time, event.lane, event.block);
            let written = match event.kind {
                EventKind::Promotion => writer.promote(lane, time, id),
                EventKind::Death => writer.collect(lane, time, id),
                EventKind::Birth => {
                    let birth = births.next().copied().unwrap_or_default();
                    let stack = frames.by_ref().take(birth.new as usize);
                    let stack: Vec<u64> = stack.map(|frame| u64::from(frame.0)).collect();
                    let block = Block {
                        length: birth.size / 8,
                        samples: birth.samples,
                        source: Source::Minor,
                    };
                    writer.alloc(lane, time, id, block, &stack, describe)
                }
            };
            debug_assert!(written.is_ok(), "memory takes all");
        }
        collections.for_each(|work| write_collection(&mut writer, work));
        writer.finish().unwrap_or_default()
    }
}

/// The frame of a function of the program.
fn describe(id: u64, frames: &mut FrameSink<'_>) {
    let frame = frame(usize::try_from(id).unwrap_or(usize::MAX));
    frames.push(heapline_trace::Frame {
        file: frame.file,
        name: frame.name,
        line: frame.line,
        start_char: frame.start_char,
        end_char: frame.end_char,
    });
}

fn frame(index: usize) -> Frame<'static> {
    let name = FUNCTIONS.get(index).copied().unwrap_or("Server.main");
    Frame {
        file: b"src/server.ml",
        name: name.as_bytes(),
        line: u32::try_from(10 * (index + 1)).unwrap_or(0),
        start_char: 2,
        end_char: 14,
    }
}

fn write_collection(writer: &mut Writer<Vec<u8>>, work: &Collection) {
    use heapline_trace as trace;

    let kind = match work.kind {
        CollectionKind::Minor => trace::CollectionKind::Minor,
        CollectionKind::Slice => trace::CollectionKind::Slice,
        CollectionKind::Forced => trace::CollectionKind::Forced,
        CollectionKind::Finalisers => trace::CollectionKind::Finalisers,
        CollectionKind::Reading => trace::CollectionKind::Reading,
    };
    let phase = work.phase.map(|phase| match phase {
        Phase::Mark => trace::Phase::Mark,
        Phase::Clean => trace::Phase::Clean,
        Phase::Sweep => trace::Phase::Sweep,
        Phase::Idle => trace::Phase::Idle,
    });
    let counters = work.counters.map(|counters| trace::CollectorCounters {
        minor_words: counters.minor_words,
        promoted_words: counters.promoted_words,
        major_words: counters.major_words,
        heap_words: counters.heap_words,
        free_words: counters.free_words,
        minor_collections: counters.minor_collections,
        major_collections: counters.major_collections,
        compactions: counters.compactions,
        forced_major_collections: counters.forced_major_collections,
        sampler_minor_words: counters.sampler_minor_words,
        sampler_major_words: counters.sampler_major_words,
    });
    let written = writer.collection(&trace::Collection {
        domain: work.lane,
        kind,
        start: work.start,
        length: work.length,
        phase,
        counters,
    });
    debug_assert!(written.is_ok(), "memory takes all");
}

struct Run {
    random: Xoshiro256PlusPlus,
    batch: Batch,
    counters: Vec<CollectorCounters>,
    blocks: u64,
    /// The blocks on the minor heaps, with their lanes and functions.
    births: Vec<(u64, u16, u32)>,
    rate: f64,
}

impl Run {
    fn collection(
        &mut self,
        lane: u16,
        kind: CollectionKind,
        start: u64,
        length: u64,
        phase: Option<Phase>,
    ) {
        self.batch.collection(Collection {
            lane,
            kind,
            start,
            length,
            phase,
            counters: Some(self.counters[usize::from(lane)]),
        });
    }

    /// Fills the minor heaps with blocks of 4 words, headers included.
    fn allocate(&mut self, from: u64, to: u64) {
        let mut born: Vec<(u64, u16, u32)> = Vec::new();
        for lane in 0..self.counters.len() {
            let mut hit = 0.0;
            loop {
                hit -= (1.0 - self.random.random::<f64>()).ln();
                if hit >= MINOR_HEAP as f64 * self.rate {
                    break;
                }
                let function = match self.random.random_range(0..10) {
                    0..5 => 0,
                    5..9 => 1,
                    _ => 2,
                };
                let lane = u16::try_from(lane).unwrap_or(0);
                born.push((self.random.random_range(from..to), lane, function));
            }
        }
        born.sort_unstable();
        for (time, lane, function) in born {
            let birth = Birth {
                size: 24,
                samples: 1,
                space: Space::Minor,
                ..Birth::default()
            };
            let stack = [LocationId(3), LocationId(function)];
            self.batch
                .birth(time, lane, self.blocks, birth, stack.into_iter());
            self.births.push((self.blocks, lane, function));
            self.blocks += 1;
        }
    }

    /// Empties the minor heaps, and does what else there is to do. Returns the time at the end.
    fn collect(&mut self, start: u64, cycle: u64) -> u64 {
        // A burst of a tenth of a second in which all that is parsed survives.
        let second = start / (1000 * MS);
        let is_burst = second == 4 && start % (1000 * MS) < 100 * MS;
        let is_scan = cycle == 150;
        let length = match (is_burst, is_scan) {
            (true, _) => self.random.random_range(9_000_000..12_000_000),
            (_, true) => 40 * MS,
            _ => self.random.random_range(400_000..1_200_000),
        };
        let survives = |function: u32, chance: f64| match function {
            1 if is_burst => chance < 0.9,
            2 => chance < 0.3,
            _ => chance < 0.02,
        };
        // By function: 50, 40 and 10 % of all words.
        let share = match (is_burst, is_scan) {
            (true, _) => 0.01 + 0.36 + 0.03,
            _ => 0.01 + 0.008 + 0.03,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the minor heap"
        )]
        let promoted = if is_scan {
            300
        } else {
            (MINOR_HEAP as f64 * share) as u64
        };
        let births = std::mem::take(&mut self.births);
        for (block, lane, function) in births {
            let chance = self.random.random::<f64>();
            let time = (start + length) / 1000;
            if !is_scan && survives(function, chance) {
                self.batch.promotion(time, lane, block);
            } else {
                self.batch.death(time, lane, block);
            }
        }
        let n = self.counters.len();
        for counters in &mut self.counters {
            counters.minor_words += MINOR_HEAP;
            counters.promoted_words += promoted;
            counters.major_words += promoted;
            counters.heap_words = 4_000_000 + counters.promoted_words / 2;
            counters.free_words = counters.heap_words / 8;
            counters.minor_collections += 1;
            counters.major_collections = cycle / 40;
        }
        // One domain is late now and then, and the others wait for it.
        let is_delayed = self.random.random_range(0..50) == 0 && n > 1;
        let mut end = start;
        for lane in 0..n {
            let is_last = is_delayed && lane == 1;
            let begin = start
                + if is_last {
                    6 * MS
                } else {
                    lane as u64 * 20_000
                };
            end = end.max(begin + length);
            let lane = u16::try_from(lane).unwrap_or(0);
            let waits = if is_delayed && !is_last {
                start + 6 * MS - begin
            } else {
                0
            };
            self.collection(lane, CollectionKind::Minor, begin, length + waits, None);
        }
        for lane in 0..u16::try_from(n).unwrap_or(1) {
            let phase = if cycle % 40 < 25 {
                Phase::Mark
            } else {
                Phase::Sweep
            };
            let length = self.random.random_range(500_000..2_000_000);
            self.collection(
                lane,
                CollectionKind::Slice,
                end + 2_000,
                length,
                Some(phase),
            );
        }
        end += 2_010_000;
        if cycle == 300 {
            for counters in &mut self.counters {
                counters.forced_major_collections += 1;
            }
            self.collection(0, CollectionKind::Forced, end, 90 * MS, None);
            end += 90 * MS;
        }
        if cycle == 400 {
            self.collection(0, CollectionKind::Finalisers, end, 35 * MS, None);
            end += 35 * MS;
        }
        end
    }
}
