//! Generates traces of simulated programs.
//!
//! The program walks up and down a call graph, allocates on the way, and lets blocks die in no
//! particular order. Stacks are deep where the program recurses, and mostly share their outer
//! part with the one before, as those of real programs do.

use heapline_trace::{Block, Frame, FrameSink, Source, TraceInfo, Writer};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The lowest code address of generated programs. Others follow in steps of 16.
pub(crate) const FIRST_CODE: u64 = 0x40_0000;

/// The program to generate.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Allocations in all.
    pub allocations: usize,
    /// Domains that take turns.
    pub domains: u16,
    /// Different locations that the program allocates at or calls from.
    pub locations: u64,
    /// The depth that stacks vary around.
    pub depth: usize,
    /// Decides everything else.
    pub seed: u64,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            allocations: 10_000,
            domains: 1,
            locations: 2000,
            depth: 40,
            seed: 1,
        }
    }
}

/// The metadata of a generated trace.
#[must_use]
pub fn info() -> TraceInfo {
    TraceInfo {
        sample_rate: 1e-3,
        word_size: 64,
        executable_name: "/usr/bin/generated".into(),
        host_name: "nowhere".into(),
        ocaml_runtime_params: "e=16,o=120,s=262144".into(),
        seed: None,
        pid: 4711,
        start_time: 1_700_000_000_000_000,
        initial_domain: 0,
        context: Some("generated".into()),
    }
}

impl Program {
    /// The trace of one run.
    #[must_use]
    pub fn trace(&self) -> Vec<u8> {
        self.trace_with(&info())
    }

    /// The trace of one run, with these metadata.
    #[must_use]
    pub fn trace_with(&self, info: &TraceInfo) -> Vec<u8> {
        let mut run = Run {
            program: *self,
            random: Xoshiro256PlusPlus::seed_from_u64(self.seed),
            writer: Writer::new(Vec::new(), info)
                .unwrap_or_else(|_| unreachable!("memory takes all")),
            stacks: vec![Vec::new(); usize::from(self.domains)],
            live: Vec::new(),
            time: 0,
        };
        for id in 0..self.allocations as u64 {
            run.step(id);
        }
        run.writer.finish().unwrap_or_default()
    }
}

/// A trace of blocks with random stacks of 20 to 40 frames, any of 1,000 locations. Each shares
/// some of its outer frames with the one before, and nothing else: a million of them take some
/// 27 MB. No program is like that; hardly anything is harder to keep.
#[must_use]
pub fn random_stacks(allocations: u64, seed: u64) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut writer =
        Writer::new(Vec::new(), &info()).unwrap_or_else(|_| unreachable!("memory takes all"));
    let mut stack = Vec::new();
    for id in 0..allocations {
        let depth = random.random_range(20..=40);
        let shared = |random: &mut Xoshiro256PlusPlus| random.random_range(0..depth);
        stack.truncate(shared(&mut random).max(shared(&mut random)));
        while stack.len() < depth {
            stack.push(FIRST_CODE + random.random_range(0..1000) * 16);
        }
        let block = Block {
            length: random.random_range(1..=20),
            samples: 1,
            source: Source::Minor,
        };
        let resolve = |code: u64, frames: &mut FrameSink<'_>| describe(code, frames);
        let written = writer.alloc(0, id, id, block, &stack, resolve);
        debug_assert!(written.is_ok(), "memory takes all");
    }
    writer.finish().unwrap_or_default()
}

/// Names that try to control a terminal: escape sequences, line breaks, bidirectional overrides.
pub const HOSTILE_NAMES: [&str; 4] = [
    "Evil.\u{1b}]0;owned\u{7}\u{1b}[2Jclear",
    "Evil.line\r\nfake: 0 B\tused\u{7f}",
    "Evil.\u{202e}txet\u{202c}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}",
    "Evil.\u{9b}31mred\u{85}next\u{2028}line",
];

/// A trace whose program, host, context, functions and files have [`HOSTILE_NAMES`]. Its memory grows,
/// so that every report has rows.
#[must_use]
pub fn hostile_names() -> Vec<u8> {
    let [program, host, context, _] = HOSTILE_NAMES.map(Into::into);
    let info = TraceInfo {
        executable_name: program,
        host_name: host,
        context: Some(context),
        ..info()
    };
    let mut writer =
        Writer::new(Vec::new(), &info).unwrap_or_else(|_| unreachable!("memory takes all"));
    let resolve = |code: u64, frames: &mut FrameSink<'_>| {
        let name = HOSTILE_NAMES[usize::try_from(code).unwrap_or(0) % HOSTILE_NAMES.len()];
        frames.push(Frame {
            file: format!("{name}.ml").as_bytes(),
            name: name.as_bytes(),
            line: 1,
            start_char: 0,
            end_char: 1,
        });
    };
    for id in 0..800 {
        let block = Block {
            length: 10,
            samples: 1,
            source: Source::Minor,
        };
        let site = id % HOSTILE_NAMES.len() as u64;
        let stack = [(site + 1) % HOSTILE_NAMES.len() as u64, site];
        let time = id * 10_000;
        let written = writer.alloc(0, time, id, block, &stack, resolve);
        debug_assert!(written.is_ok(), "memory takes all");
        if id % 3 == 0 {
            let written = writer.collect(0, time, id);
            debug_assert!(written.is_ok(), "memory takes all");
        }
    }
    writer.finish().unwrap_or_default()
}

struct Run {
    program: Program,
    random: Xoshiro256PlusPlus,
    writer: Writer<Vec<u8>>,
    stacks: Vec<Vec<u64>>,
    /// Blocks that may still die, with their domain, and whether they may be promoted first.
    live: Vec<(u64, u16, bool)>,
    time: u64,
}

impl Run {
    fn step(&mut self, id: u64) {
        let random = &mut self.random;
        self.time += random.random_range(0..20);
        // Domains write for a while before another one does.
        let domain = u16::try_from((id / 64) % u64::from(self.program.domains)).unwrap_or(0);
        let stack = &mut self.stacks[usize::from(domain)];
        let depth = self.program.depth;
        let keep = stack.len().saturating_sub(random.random_range(0..4));
        stack.truncate(keep);
        while stack.len() < depth / 2 || (stack.len() < 2 * depth && random.random_bool(0.55)) {
            // A caller calls few others: that is what predictions live on.
            let caller = stack.last().copied().unwrap_or(0);
            let choice = u64::from(random.random_range(0..3_u32).saturating_sub(1));
            let next = caller
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(choice + 1);
            stack.push(FIRST_CODE + next % self.program.locations * 16);
        }
        let source = match random.random_range(0..100) {
            0..94 => Source::Minor,
            94..98 => Source::Major,
            _ => Source::External,
        };
        let length = match source {
            Source::Minor => random.random_range(1..=20),
            _ => random.random_range(257..100_000),
        };
        let block = Block {
            length,
            samples: 1 + length / 1000,
            source,
        };
        let resolve = |code: u64, frames: &mut FrameSink<'_>| describe(code, frames);
        let written = self
            .writer
            .alloc(domain, self.time, id, block, stack, resolve);
        debug_assert!(written.is_ok(), "memory takes all");
        self.live.push((id, domain, source == Source::Minor));
        while self.live.len() > 200 || random.random_bool(0.5) && !self.live.is_empty() {
            let at = random.random_range(0..self.live.len());
            let (id, owner, young) = &mut self.live[at];
            let (id, owner) = (*id, *owner);
            let written = if std::mem::take(young) && random.random_bool(0.2) {
                self.writer.promote(owner, self.time, id)
            } else {
                self.live.swap_remove(at);
                self.writer.collect(domain, self.time, id)
            };
            debug_assert!(written.is_ok(), "memory takes all");
        }
    }
}

/// The frames of a code address of a generated program: sometimes none, sometimes inlined
/// functions.
pub(crate) fn describe(code: u64, frames: &mut FrameSink<'_>) {
    let number = (code - FIRST_CODE) / 16;
    let inlined = match number % 10 {
        0 => 0,
        1 => 3,
        _ => 1,
    };
    for depth in 0..inlined {
        let module = number % 47;
        frames.push(Frame {
            file: format!("src/module{module}.ml").as_bytes(),
            name: format!("Module{module}.function{}", (number + depth) / 47).as_bytes(),
            line: u32::try_from(number + 1).unwrap_or(1),
            start_char: u16::try_from(number % 300).unwrap_or(0),
            end_char: u16::try_from(number % 1200).unwrap_or(0),
        });
    }
}
