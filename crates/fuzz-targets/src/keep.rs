//! Any trace, kept within any size: the trace that is kept is whole, within the size, and has exactly the
//! blocks that are alive.
//!
//! The first two bytes are the size, the third says how often the trace is written.

use std::collections::HashMap;

use heapline_trace::keep::Keeper;
use heapline_trace::{Alloc, Decoder, Locations, Mark, Options, Source, Step, Visitor};

/// Frames of a stack that surely fit into a packet: others may be left out.
const DEPTH: usize = 500;

/// Times that are exact as floating-point numbers.
const EXACT: u64 = 1 << 52;

/// A block, as far as it must be kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    birth: u64,
    promotion: Option<u64>,
    domain: u16,
    words: u64,
    blocks: u64,
    samples: u64,
    source: &'static str,
    stack: Vec<u64>,
}

/// What is alive, by the simplest means.
#[derive(Default)]
struct Alive {
    blocks: HashMap<u64, Block>,
    /// The promotions and deaths of blocks that are not allocated yet.
    early: HashMap<u64, (Option<u64>, bool)>,
    is_exact: bool,
}

impl Alive {
    fn new() -> Self {
        Self {
            is_exact: true,
            ..Self::default()
        }
    }

    fn sorted(&self) -> Vec<&Block> {
        let mut blocks: Vec<&Block> = self.blocks.values().collect();
        blocks.sort();
        blocks
    }
}

impl Visitor for Alive {
    fn alloc(&mut self, alloc: &Alloc<'_>, locations: &Locations) {
        let blocks = alloc.merged.saturating_add(1);
        let (promotion, is_dead) = self.early.remove(&alloc.id).unwrap_or_default();
        let frames = alloc.stack.frames();
        let codes = frames.iter().map(|&frame| locations.code(frame));
        self.is_exact &= alloc.time < EXACT;
        self.is_exact &= alloc
            .length
            .checked_mul(blocks)
            .is_some_and(|words| words < EXACT);
        let block = Block {
            birth: alloc.time,
            // Clocks of threads may disagree.
            promotion: promotion.map(|time| time.max(alloc.time)),
            domain: alloc.domain,
            words: alloc.length,
            blocks,
            samples: alloc.samples,
            source: match alloc.source {
                Source::Minor => "minor",
                Source::Major => "major",
                Source::External => "external",
            },
            stack: if frames.len() <= DEPTH {
                codes.collect()
            } else {
                Vec::new()
            },
        };
        self.blocks.insert(alloc.id, block);
        if is_dead {
            self.blocks.remove(&alloc.id);
        }
    }

    fn promote(&mut self, mark: Mark, _: &Locations) {
        let first =
            |promotion: Option<u64>| Some(promotion.map_or(mark.time, |t| t.min(mark.time)));
        match self.blocks.get_mut(&mark.id) {
            Some(block) => block.promotion = first(block.promotion).map(|t| t.max(block.birth)),
            None => {
                let early = self.early.entry(mark.id).or_default();
                early.0 = first(early.0);
            }
        }
    }

    fn collect(&mut self, mark: Mark, _: &Locations) {
        if self.blocks.remove(&mark.id).is_none() {
            self.early.entry(mark.id).or_default().1 = true;
        }
    }
}

/// Passes events to both.
struct Both<'a>(&'a mut Keeper, &'a mut Alive);

impl Visitor for Both<'_> {
    fn alloc(&mut self, alloc: &Alloc<'_>, locations: &Locations) {
        self.0.alloc(alloc, locations);
        self.1.alloc(alloc, locations);
    }

    fn promote(&mut self, mark: Mark, locations: &Locations) {
        self.0.promote(mark, locations);
        self.1.promote(mark, locations);
    }

    fn collect(&mut self, mark: Mark, locations: &Locations) {
        self.0.collect(mark, locations);
        self.1.collect(mark, locations);
    }
}

fn write(decoder: &Decoder, keeper: &mut Keeper, budget: u64) -> Option<Vec<u8>> {
    let info = decoder.info()?;
    for _ in 0..1_000 {
        let mut kept = Vec::new();
        let size = keeper
            .write(info, decoder.locations(), None, &mut kept)
            .unwrap();
        if keeper.is_full() {
            assert!(kept.len() as u64 <= budget + budget / 8);
            return None;
        }
        if size <= budget {
            assert_eq!(size, kept.len() as u64);
            return Some(kept);
        }
        keeper.fit();
    }
    panic!("it never fits");
}

/// Runs the target on an input.
pub fn run(bytes: &[u8]) {
    let Some((&[a, b, every], trace)) = bytes.split_first_chunk() else {
        return;
    };
    let budget = 1000 + 8 * u64::from(u16::from_le_bytes([a, b]));
    let mut keeper = Keeper::new(budget);
    let mut alive = Alive::new();
    let mut decoder = Decoder::new(Options::new());
    decoder.push(trace);
    decoder.finish();
    let mut packets = 0_usize;
    while let Ok(Step::Packet(_)) = decoder.visit_packet(&mut Both(&mut keeper, &mut alive)) {
        keeper.fit();
        packets += 1;
        if packets.is_multiple_of(1 + usize::from(every)) {
            write(&decoder, &mut keeper, budget);
        }
    }
    let Some(kept) = write(&decoder, &mut keeper, budget) else {
        return;
    };
    let mut reader = Decoder::new(Options::new());
    reader.push(&kept);
    reader.finish();
    let mut found = Alive::new();
    while reader.visit_packet(&mut found).unwrap() != Step::End {}
    assert!(reader.damage().is_empty(), "{:?}", reader.damage());
    assert!(found.early.is_empty());
    if alive.is_exact {
        assert_eq!(alive.sorted(), found.sorted());
    }
}
