//! Traces of blocks whose sizes, lives and stacks are given, so that the truth is known.

use heapline_trace::{Block, Frame, FrameSink, Source, TraceInfo, Writer};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::generate;

/// A block of a program.
#[derive(Clone, Debug)]
pub struct Life {
    /// Bytes, with the header: a multiple of 8, at least 16.
    pub bytes: u64,
    /// The time of its allocation, in microseconds.
    pub birth: u64,
    /// The time of its promotion, if any; later than its birth.
    pub promotion: Option<u64>,
    /// The time of its death, if any; later than all else.
    pub death: Option<u64>,
    /// The domain that allocates it.
    pub domain: u16,
    /// Its stack: names of functions, outermost first. A name may be followed by its file, as in
    /// `Cache.add@cache.ml`, and that by a line, as in `Cache.add@cache.ml:12`.
    pub stack: Vec<&'static str>,
}

impl Life {
    /// A block of the minor heap that stays.
    #[must_use]
    pub fn new(bytes: u64, birth: u64, stack: &[&'static str]) -> Self {
        Self {
            bytes,
            birth,
            promotion: None,
            death: None,
            domain: 0,
            stack: stack.to_vec(),
        }
    }

    /// The block, if it dies.
    #[must_use]
    pub fn until(self, death: u64) -> Self {
        Self {
            death: Some(death),
            ..self
        }
    }

    /// The block, if it is promoted.
    #[must_use]
    pub fn promoted(self, promotion: u64) -> Self {
        Self {
            promotion: Some(promotion),
            ..self
        }
    }
}

/// The events of a block. At the same time, memory is freed before more is allocated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Death,
    Promotion,
    Birth,
}

/// The trace of a program with these blocks, each of whose words is sampled with probability `rate`.
#[must_use]
pub fn trace(lives: &[Life], rate: f64, seed: u64) -> Vec<u8> {
    trace_of("/usr/bin/generated", lives, rate, seed)
}

/// The trace of an executable.
#[must_use]
pub fn trace_of(executable: &str, lives: &[Life], rate: f64, seed: u64) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let info = TraceInfo {
        sample_rate: rate,
        executable_name: executable.into(),
        ..generate::info()
    };
    let mut names: Vec<&str> = Vec::new();
    let mut events = Vec::new();
    for (number, life) in lives.iter().enumerate() {
        let words = life.bytes / 8;
        let hits = (0..words).filter(|_| rate >= 1.0 || random.random_bool(rate));
        let samples = hits.count() as u64;
        if samples == 0 {
            continue;
        }
        events.push((life.birth, Happening::Birth, number, samples));
        let happenings = [
            (life.promotion, Happening::Promotion),
            (life.death, Happening::Death),
        ];
        for (time, what) in happenings {
            events.extend(time.map(|time| (time, what, number, samples)));
        }
    }
    // Stable: blocks of the same time are in the order given.
    events.sort_by_key(|&(time, what, ..)| (time, what));
    let mut writer =
        Writer::new(Vec::new(), &info).unwrap_or_else(|_| unreachable!("memory takes all"));
    for (time, what, number, samples) in events {
        let life = &lives[number];
        let id = number as u64;
        let written = match what {
            Happening::Birth => {
                let stack: Vec<u64> = life
                    .stack
                    .iter()
                    .map(|&name| code(&mut names, name))
                    .collect();
                let block = Block {
                    length: life.bytes / 8 - 1,
                    samples,
                    source: Source::Minor,
                };
                let resolve = |code: u64, frames: &mut FrameSink<'_>| {
                    push(names[usize::try_from(code).unwrap_or(0)], frames);
                };
                writer.alloc(life.domain, time, id, block, &stack, resolve)
            }
            Happening::Promotion => writer.promote(life.domain, time, id),
            Happening::Death => writer.collect(life.domain, time, id),
        };
        debug_assert!(written.is_ok(), "memory takes all");
    }
    writer.finish().unwrap_or_default()
}

/// The code address of a function.
fn code(names: &mut Vec<&'static str>, name: &'static str) -> u64 {
    let known = names.iter().position(|&known| known == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    }) as u64
}

fn push(name: &str, frames: &mut FrameSink<'_>) {
    let (name, place) = name.split_once('@').unwrap_or((name, "program.ml"));
    let (file, line) = place.split_once(':').unwrap_or((place, "1"));
    frames.push(Frame {
        file: file.as_bytes(),
        name: name.as_bytes(),
        line: line.parse().unwrap_or(0),
        start_char: 0,
        end_char: 1,
    });
}
