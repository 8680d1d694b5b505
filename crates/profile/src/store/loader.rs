//! From events to columns, in one pass.

use std::io::Read;

use heapline_trace::{Alloc, BlockIndex, Damage, Event, Locations, Mark, Reader, TraceInfo};

use super::clock::Clock;
use super::kinds::{Kind, KindTable};
use super::stack_worker::{Built, StackWorker};
use super::{Blocks, Moment, NEVER, Profile};
use crate::estimate::{Estimator, Sampling};

/// Blocks that there is made room for at once.
const AT_ONCE: usize = 1024;

/// How a trace is loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions {
    /// Keep every frame of recursive calls. By default a function is in a stack once, where it
    /// was first called, which makes trees smaller by a factor of 20.
    pub keep_recursion: bool,
}

/// Why a trace could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It could not be read.
    #[error(transparent)]
    Trace(#[from] heapline_trace::Error),
    /// It has too many events to number them.
    #[error(
        "the trace has more than {} events; `heapline cut` makes smaller ones",
        NEVER - 1
    )]
    TooLong,
    /// The thread that it takes could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Builds a [`Profile`] from events.
#[derive(Debug)]
pub struct Loader {
    info: TraceInfo,
    sampling: Sampling,
    blocks: Blocks,
    index: BlockIndex,
    clock: Clock,
    kinds: KindTable,
    stacks: StackWorker,
    live: Live,
    /// Events about blocks that had not been allocated yet: with several domains the trace may
    /// have the allocation later.
    early: Vec<Early>,
    latest: u64,
    in_order: bool,
    unmatched: u64,
    too_long: bool,
}

#[derive(Clone, Copy, Debug)]
struct Early {
    id: u64,
    event: u32,
    change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Promotion,
    Death,
}

impl Loader {
    /// A loader for a trace that says this of itself.
    pub fn new(info: TraceInfo, options: LoadOptions) -> Result<Self, LoadError> {
        Ok(Self {
            sampling: Sampling::new(info.sample_rate, info.word_bytes()),
            info,
            blocks: Blocks::default(),
            index: BlockIndex::new(),
            clock: Clock::default(),
            kinds: KindTable::default(),
            stacks: StackWorker::start(!options.keep_recursion).map_err(LoadError::Thread)?,
            live: Live::default(),
            early: Vec::new(),
            latest: 0,
            in_order: true,
            unmatched: 0,
            too_long: false,
        })
    }

    /// Takes the next event.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>, locations: &Locations) {
        let number = match u32::try_from(self.clock.len()) {
            Ok(number) if number < NEVER - 1 => number,
            _ => {
                self.too_long = true;
                return;
            }
        };
        match event {
            Event::Alloc(alloc) => self.alloc(alloc, number, locations),
            Event::Promote(mark) => self.change(mark, number, Change::Promotion),
            Event::Collect(mark) => self.change(mark, number, Change::Death),
        }
    }

    #[inline]
    fn alloc(&mut self, alloc: &Alloc<'_>, number: u32, locations: &Locations) {
        self.tick(alloc.time);
        self.index.push(alloc.id);
        let kind = Kind {
            length: alloc.length,
            samples: alloc.samples,
            source: alloc.source,
            domain: alloc.domain,
        };
        let kind = self.kinds.number(kind, |kind| {
            let Kind { length, source, .. } = *kind;
            let estimator = Estimator::default();
            let amount = self
                .sampling
                .amount(estimator, length, source, kind.samples);
            self.live.weights.push(amount.bytes.value);
        });
        self.live.add(self.live.weights[kind as usize], number);
        self.stacks.push(alloc.stack, alloc.domain, kind, locations);
        let block = self.blocks.birth.len();
        self.blocks.birth.push(number);
        // Many at once take far less time than one by one; `finish` drops what is too many.
        if block >= self.blocks.death.len() {
            for column in [&mut self.blocks.promotion, &mut self.blocks.death] {
                column.resize(block + AT_ONCE, NEVER);
            }
        }
    }

    #[inline]
    fn change(&mut self, mark: &Mark, number: u32, change: Change) {
        match self.index.find(mark.id) {
            Some(block) => {
                // Clocks of domains may disagree a little: nothing dies before it was born.
                let time = if mark.time < self.latest {
                    mark.time
                        .max(self.clock.get(self.blocks.birth[block] as usize))
                } else {
                    mark.time
                };
                self.tick(time);
                if !apply(&mut self.blocks, &self.clock, block, number, change) {
                    self.unmatched += 1;
                } else if change == Change::Death {
                    let kind = self.stacks.kind(block);
                    self.live.add(-self.live.weights[kind as usize], number);
                }
            }
            None => {
                self.tick(mark.time);
                self.early.push(Early {
                    id: mark.id,
                    event: number,
                    change,
                });
            }
        }
    }

    #[inline]
    fn tick(&mut self, time: u64) {
        self.in_order &= time >= self.latest;
        self.latest = self.latest.max(time);
        self.clock.push(time);
    }

    /// The profile, now that all events were taken.
    pub fn finish(mut self, locations: &Locations, damage: Damage) -> Result<Profile, LoadError> {
        if self.too_long {
            return Err(LoadError::TooLong);
        }
        self.stacks.end();
        self.clock.finish();
        let blocks = self.blocks.birth.len();
        self.blocks.promotion.truncate(blocks);
        self.blocks.death.truncate(blocks);
        self.adopt_early();
        if !self.in_order {
            sort(&mut self.clock, &mut self.blocks);
        }
        let Built {
            column,
            classes,
            stacks,
            symbols,
        } = self.stacks.finish(locations);
        let blocks = &mut self.blocks;
        blocks.class = column;
        for column in [
            &mut blocks.birth,
            &mut blocks.promotion,
            &mut blocks.death,
            &mut blocks.class,
        ] {
            column.shrink_to_fit();
        }
        let profile = Profile {
            info: self.info,
            damage,
            sampling: self.sampling,
            blocks: self.blocks,
            clock: self.clock,
            kinds: self.kinds.finish(),
            classes,
            contexts: stacks.contexts,
            tree: stacks.tree,
            symbols,
            shortened_stacks: stacks.shortened,
            unmatched: self.unmatched,
            peaks: Default::default(),
        };
        if self.in_order {
            profile.set_peak(Estimator::default(), self.live.peak);
        }
        Ok(profile)
    }

    /// Applies events that came before the allocation of their block.
    fn adopt_early(&mut self) {
        for early in std::mem::take(&mut self.early) {
            let Some(block) = self.index.find(early.id) else {
                self.unmatched += 1;
                continue;
            };
            if !apply(
                &mut self.blocks,
                &self.clock,
                block,
                early.event,
                early.change,
            ) {
                self.unmatched += 1;
            }
            // The trace has the allocation later in the file, and perhaps later in time.
            self.in_order = false;
        }
    }
}

/// What is alive as the trace goes on, which is also the order of time unless events have to be put
/// in it.
#[derive(Debug, Default)]
struct Live {
    /// The bytes that a block of each kind stands for.
    weights: Vec<f64>,
    bytes: f64,
    most: f64,
    /// When that was.
    peak: Moment,
}

impl Live {
    #[inline]
    fn add(&mut self, bytes: f64, event: u32) {
        self.bytes += bytes;
        if self.bytes > self.most {
            self.most = self.bytes;
            self.peak = Moment(event + 1);
        }
    }
}

/// Notes a change. False if a damaged trace has it twice, or after the block's death: in time, for
/// the file may have what another domain noted in any order.
#[inline]
fn apply(blocks: &mut Blocks, clock: &Clock, block: usize, event: u32, change: Change) -> bool {
    let death = blocks.death[block];
    let when = |event: u32| (clock.get(event as usize), event);
    let place = match change {
        Change::Promotion if death != NEVER && when(death) < when(event) => return false,
        Change::Promotion => &mut blocks.promotion[block],
        Change::Death => &mut blocks.death[block],
    };
    if *place != NEVER {
        return false;
    }
    *place = event;
    true
}

/// Puts events in the order of their times; those of the same time stay as they are, unless a
/// block would be promoted or die before it is born.
fn sort(clock: &mut Clock, blocks: &mut Blocks) {
    let mut times: Vec<u64> = (0..clock.len()).map(|event| clock.get(event)).collect();
    let columns = blocks.promotion.iter_mut().zip(&mut blocks.death);
    for ((promotion, death), &birth) in columns.zip(&blocks.birth) {
        let mut earliest = times[birth as usize];
        for event in [&mut *promotion, &mut *death] {
            if *event != NEVER {
                let time = &mut times[*event as usize];
                *time = earliest.max(*time);
                earliest = *time;
            }
        }
    }
    // Births come first among events of the same time that were out of order in the file.
    let mut order: Vec<u32> = (0..).take(times.len()).collect();
    order.sort_by_key(|&event| times[event as usize]);
    let mut rank = vec![0_u32; order.len()];
    let mut sorted = Clock::default();
    for (new, &old) in (0..).zip(&order) {
        rank[old as usize] = new;
        sorted.push(times[old as usize]);
    }
    sorted.finish();
    *clock = sorted;
    for column in [&mut blocks.birth, &mut blocks.promotion, &mut blocks.death] {
        for event in column.iter_mut().filter(|event| **event != NEVER) {
            *event = rank[*event as usize];
        }
    }
    // Same time, but the wrong way round in the file: trade places.
    for block in 0..blocks.birth.len() {
        let birth = &mut blocks.birth[block];
        for event in [&mut blocks.promotion[block], &mut blocks.death[block]] {
            if *event < *birth {
                std::mem::swap(event, birth);
            }
        }
        if blocks.promotion[block] != NEVER && blocks.death[block] < blocks.promotion[block] {
            let (promotion, death) = (&mut blocks.promotion[block], &mut blocks.death[block]);
            std::mem::swap(promotion, death);
        }
    }
}

impl Profile {
    /// Loads what is left of a trace.
    ///
    /// ```no_run
    /// use heapline_profile::{LoadOptions, Profile};
    /// use heapline_trace::Reader;
    ///
    /// let mut reader = Reader::open("trace.ctf", Default::default())?;
    /// let profile = Profile::load(&mut reader, LoadOptions::default())?;
    /// println!("{} sampled blocks", profile.len());
    /// # Ok::<(), heapline_profile::LoadError>(())
    /// ```
    pub fn load<R: Read>(reader: &mut Reader<R>, options: LoadOptions) -> Result<Self, LoadError> {
        let mut loader = Loader::new(reader.info().clone(), options)?;
        reader.for_each(|event, locations| loader.event(&event, locations))?;
        loader.finish(reader.locations(), reader.damage().clone())
    }
}
