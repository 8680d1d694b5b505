//! Call stacks of a simulated server, with the size of the blocks that each allocates.

use heapline_trace::{Block, Source, TaggedCode};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::WORDS_PER_SAMPLE;
use crate::generate::FIRST_CODE;

/// Request handlers. Stacks of the same handler share their outer frames.
pub(super) const HANDLERS: usize = 64;

/// Stacks of a handler that allocate temporary blocks.
const TEMPORARY: usize = 24;

/// Stacks of a handler that allocate what a request or a few of them need.
const MEDIUM: usize = 6;

/// Stacks of a handler: also one each for the cache, for sessions and for the leak.
const PER_HANDLER: usize = TEMPORARY + MEDIUM + 3;

/// Addresses that frames of a module have.
const MODULE: u64 = 40;

/// The expected life of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Dead at the next minor collection.
    Temporary,
    /// Promoted, and dead within minutes.
    Medium,
    /// Alive until the cache evicts it.
    Cached,
    /// Alive for minutes up to hours.
    Session,
    /// Never freed.
    Leaked,
}

/// Size and heap of the blocks of a stack.
#[derive(Clone, Copy, Debug)]
struct Size {
    min: u64,
    max: u64,
    source: Source,
}

/// All stacks of the program, by handler.
#[derive(Debug)]
pub(super) struct Stacks {
    stacks: Vec<(Box<[TaggedCode]>, Size)>,
}

impl Stacks {
    pub(super) fn new(random: &mut Xoshiro256PlusPlus) -> Self {
        let mut stacks = Vec::with_capacity(HANDLERS * PER_HANDLER);
        // Cache, sessions and leak have one allocation site each, which all handlers call.
        let shared_size = [(8, 8), (5, 40), (3, 3)].map(|(min, max)| Size {
            min,
            max,
            source: Source::Minor,
        });
        for handler in 0..HANDLERS as u64 {
            let mut path: Vec<u64> = vec![2, 3, 4, MODULE + handler];
            let base = path.len() + random.random_range(0..6);
            extend(&mut path, base, random);
            for place in 0..PER_HANDLER {
                path.truncate(base.max(random.random_range(0..=path.len())));
                let callers = path.len();
                let shared = place.checked_sub(TEMPORARY + MEDIUM);
                let size = match shared {
                    Some(shared) => {
                        let function = 12 + 3 * shared as u64;
                        path.extend([function, function + 1]);
                        shared_size[shared]
                    }
                    None => {
                        let depth = random.random_range(base + 1..=36);
                        extend(&mut path, depth.min(callers + 10), random);
                        site_size(random)
                    }
                };
                let codes = path.iter().rev();
                let codes = codes.map(|number| TaggedCode::new(FIRST_CODE + number * 16));
                stacks.push((codes.collect(), size));
                if shared.is_some() {
                    // The cache does not call the sessions.
                    path.truncate(callers);
                }
            }
        }
        Self { stacks }
    }

    /// The index of a stack of a handler that allocates a block with this fate.
    pub(super) fn choose(
        handler: usize,
        fate: Fate,
        last: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> usize {
        let first = handler * PER_HANDLER;
        let place = match fate {
            // Loops: the same stack, or the next one, more often than any other.
            Fate::Temporary if random.random_bool(0.5) && last >= first => {
                (last - first + random.random_range(0..2)) % TEMPORARY
            }
            Fate::Temporary => random.random_range(0..TEMPORARY),
            // Sites of temporary blocks have some that survive.
            Fate::Medium if random.random_bool(0.25) => random.random_range(0..TEMPORARY),
            Fate::Medium => TEMPORARY + random.random_range(0..MEDIUM),
            Fate::Cached => TEMPORARY + MEDIUM,
            Fate::Session => TEMPORARY + MEDIUM + 1,
            Fate::Leaked => TEMPORARY + MEDIUM + 2,
        };
        first + place
    }

    /// The frames of a stack, innermost first, and a block that it allocates.
    pub(super) fn get(
        &self,
        index: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> (&[TaggedCode], Block) {
        let (codes, size) = &self.stacks[index];
        let length = random.random_range(size.min..=size.max);
        // A block is in the trace because it was hit once; large ones are hit more often.
        let more = random.random_range(0..=2 * length / WORDS_PER_SAMPLE);
        let block = Block {
            length,
            samples: 1 + more,
            source: size.source,
        };
        (codes, block)
    }
}

/// Adds calls until the stack has this depth. Some recurse.
fn extend(path: &mut Vec<u64>, depth: usize, random: &mut Xoshiro256PlusPlus) {
    while path.len() < depth {
        let caller = path.last().copied().unwrap_or_default();
        if path.len() > 6 && random.random_bool(0.1) {
            // Two functions that call each other.
            let pair = [path[path.len() - 2], caller];
            for _ in 0..random.random_range(1..6) {
                path.extend(pair);
            }
            path.truncate(depth);
            continue;
        }
        // A function calls few others, mostly of its own module or of the next ones.
        let module = caller / MODULE + random.random_range(0..2);
        path.push((module % 60 + 3) * MODULE + random.random_range(0..MODULE));
    }
}

fn site_size(random: &mut Xoshiro256PlusPlus) -> Size {
    let (min, max, source) = match random.random_range(0..100) {
        0..80 => {
            let length = random.random_range(1..=16);
            (length, length, Source::Minor)
        }
        80..94 => (2, random.random_range(17..=256), Source::Minor),
        94..98 => (257, random.random_range(300..=20_000), Source::Major),
        _ => (512, random.random_range(1000..=100_000), Source::External),
    };
    Size { min, max, source }
}
