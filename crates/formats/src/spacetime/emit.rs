//! Gives the contents of a profile as events.

use std::collections::HashMap;

use heapline_model::{Batch, Birth, Frame, LocationId, Mark, Snapshot, Space};

use super::names::readable;
use super::rows::{NEVER, Rows};
use super::series::{Contents, NO_STACK, Position, WORD};

/// Frames of a stack that are shown: no program has more, but a crafted file may.
const MAX_DEPTH: usize = 4096;

/// Something that happens at a snapshot, in the order in which it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A row is gone.
    Death(u32),
    /// A row appears. Those without words come first, so that a peak of bytes has all blocks.
    Birth { has_words: bool, row: u32 },
    /// Something was allocated, and is gone.
    Passed(u32),
}

/// The events of a profile, to be handed over in batches.
pub(super) struct Emission {
    contents: Contents,
    rows: Rows,
    /// The number of the snapshot, and the event.
    events: Vec<(u32, Event)>,
    next: usize,
    /// Microseconds of each snapshot, and of the end.
    times: Vec<u64>,
    stacks: Option<Stacks>,
    /// True once marks and locations were sent.
    has_begun: bool,
    /// How many snapshots were told: each comes after its events.
    told: usize,
}

impl Emission {
    pub(super) fn new(contents: Contents, stacks: bool) -> Self {
        let rows = Rows::new(&contents);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut events = Vec::with_capacity(2 * rows.live.len() + rows.passed.len());
        for (i, row) in rows.live.iter().enumerate() {
            let has_words = row.words > 0;
            let birth = Event::Birth {
                has_words,
                row: number(i),
            };
            events.push((row.start, birth));
            if row.end != NEVER {
                events.push((row.end, Event::Death(number(i))));
            }
        }
        for (i, passed) in rows.passed.iter().enumerate() {
            events.push((passed.at, Event::Passed(number(i))));
        }
        events.sort_unstable();
        Self {
            times: times(&contents),
            stacks: stacks.then(|| Stacks::new(&contents)),
            contents,
            rows,
            events,
            next: 0,
            has_begun: false,
            told: 0,
        }
    }

    /// Words that were alive and never allocated.
    pub(super) fn never_allocated(&self) -> u64 {
        self.rows.never_allocated
    }

    /// Adds to a batch. False if there is nothing more.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> bool {
        if !self.has_begun {
            self.has_begun = true;
            self.begin(batch);
            return true;
        }
        let first = self.next;
        while let Some(&(at, event)) = self.events.get(self.next) {
            if batch.is_full() {
                break;
            }
            self.tell_snapshots(at as usize, batch);
            self.next += 1;
            self.event(at, event, batch);
        }
        let is_told = self.told == self.contents.snapshots.len();
        if self.next == self.events.len() {
            self.tell_snapshots(usize::MAX, batch);
        }
        self.next > first || !is_told
    }

    /// Tells the snapshots before one.
    fn tell_snapshots(&mut self, before: usize, batch: &mut Batch) {
        while self.told < before.min(self.contents.snapshots.len()) {
            batch.snapshot(snapshot(
                &self.contents.snapshots[self.told],
                self.times[self.told],
            ));
            self.told += 1;
        }
    }

    fn begin(&mut self, batch: &mut Batch) {
        for mark in &self.contents.marks {
            batch.mark(Mark {
                time: micros(mark.time).unwrap_or(0),
                snapshots: mark.snapshots,
                name: String::from_utf8_lossy(&mark.name).into_owned(),
            });
        }
        if let Some(stacks) = &mut self.stacks {
            define(&self.contents, stacks, batch);
        }
    }

    fn event(&mut self, at: u32, event: Event, batch: &mut Batch) {
        let time = self.times[at as usize];
        let (block, birth, point) = match event {
            Event::Death(row) => return batch.death(time, 0, row.into()),
            Event::Birth { row, .. } => {
                let of = &self.rows.live[row as usize];
                let birth = Birth {
                    size: of.words.saturating_mul(WORD),
                    samples: of.blocks,
                    ..Birth::default()
                };
                (u64::from(row), birth, of.point)
            }
            Event::Passed(passed) => {
                let of = &self.rows.passed[passed as usize];
                let birth = Birth {
                    size: of.words.saturating_mul(WORD),
                    passed: true,
                    ..Birth::default()
                };
                let block = self.rows.live.len() as u64 + u64::from(passed);
                (block, birth, of.point)
            }
        };
        let birth = Birth {
            space: Space::Major,
            ..birth
        };
        let Some(stacks) = &mut self.stacks else {
            return batch.birth(time, 0, block, birth, [].into_iter());
        };
        let (shared, is_cut) = stacks.go_to(&self.contents, point);
        let birth = Birth {
            shared: u32::try_from(shared).unwrap_or(u32::MAX),
            truncated: is_cut,
            ..birth
        };
        let new = stacks.path[shared..].iter().map(|&(_, location)| location);
        batch.birth(time, 0, block, birth, new);
    }
}

fn snapshot(of: &super::series::Snapshot, time: u64) -> Snapshot {
    let (mut blocks, mut words) = (0_u64, 0_u64);
    for live in &of.live {
        blocks = blocks.saturating_add(live.blocks);
        words = words.saturating_add(live.words);
    }
    let unattributed = of.gc.map_or(0, |gc| gc.unattributed());
    Snapshot {
        time,
        given_time: of.time,
        live_blocks: blocks,
        live_bytes: words.saturating_add(unattributed).saturating_mul(WORD),
        unattributed_bytes: unattributed.saturating_mul(WORD),
        gc: of.gc.map(|gc| gc.counters),
    }
}

/// Microseconds of snapshots, and of the end. Programs may give any times: those that go back are
/// taken for the time before.
fn times(contents: &Contents) -> Vec<u64> {
    let given = contents.snapshots.iter().map(|snapshot| snapshot.time);
    let mut last = 0;
    given
        .chain([contents.close_time.unwrap_or(0.0)])
        .map(|time| {
            last = micros(time).map_or(last, |time| time.max(last));
            last
        })
        .collect()
}

/// `None` for what is no time: infinity, or what would be a thousand years.
fn micros(seconds: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in range"
    )]
    let micros = |seconds: f64| (seconds * 1e6).round() as u64;
    (0.0..3e10).contains(&seconds).then(|| micros(seconds))
}

/// The stacks of points, as far as they differ from the last one.
struct Stacks {
    /// The number of frames of each.
    depth: Vec<u32>,
    /// The frames of the last stack, outermost first: stack and location.
    path: Vec<(u32, LocationId)>,
    /// Locations that stand for points whose stack the file does not have.
    of_point: HashMap<u32, LocationId>,
}

impl Stacks {
    fn new(contents: &Contents) -> Self {
        let mut depth: Vec<u32> = Vec::with_capacity(contents.stacks.len());
        for node in &contents.stacks {
            let callers = depth.get(node.caller as usize).copied().unwrap_or(0);
            depth.push(callers.saturating_add(1));
        }
        Self {
            depth,
            path: Vec::new(),
            of_point: HashMap::new(),
        }
    }

    /// Makes `path` that of a point. Returns how many frames it has in common with the last one, and
    /// whether innermost frames are missing.
    fn go_to(&mut self, contents: &Contents, point: u32) -> (usize, bool) {
        let stack = contents
            .points
            .get(point as usize)
            .map_or(NO_STACK, |point| point.stack);
        if stack == NO_STACK {
            self.path.clear();
            if let Some(&location) = self.of_point.get(&point) {
                self.path.push((NO_STACK, location));
            }
            return (0, false);
        }
        let mut node = stack;
        let mut new = Vec::new();
        let mut is_cut = false;
        let shared = loop {
            let Some(of) = contents.stacks.get(node as usize) else {
                break 0;
            };
            let depth = self.depth[node as usize] as usize;
            if self.path.get(depth - 1).map(|&(node, _)| node) == Some(node) {
                break depth;
            }
            if depth <= MAX_DEPTH {
                new.push((node, LocationId(of.location)));
            } else {
                is_cut = true;
            }
            node = of.caller;
        };
        self.path.truncate(shared);
        self.path.extend(new.into_iter().rev());
        (shared, is_cut)
    }
}

/// Says what is at each location.
fn define(contents: &Contents, stacks: &mut Stacks, batch: &mut Batch) {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for (number, location) in (0..).zip(&contents.places.locations) {
        let positions = contents.places.positions(location);
        if positions.is_empty() {
            let name = match (&location.symbol, location.start_up) {
                (Some(symbol), _) => readable(symbol),
                (None, Some(name)) => name.to_owned(),
                (None, None) => {
                    let mark = if location.is_foreign { " [C]" } else { "" };
                    format!("{:#x}{mark}", location.address)
                }
            };
            let frame = Frame {
                name: name.as_bytes(),
                ..Frame::UNKNOWN
            };
            batch.define(LocationId(number), location.address, [frame]);
            continue;
        }
        // The symbol is that of the function that the others were inlined into.
        names.clear();
        names.extend(
            positions
                .iter()
                .enumerate()
                .map(|(i, position)| match &location.symbol {
                    Some(symbol) if i + 1 == positions.len() => readable(symbol).into_bytes(),
                    _ => name_of(contents, position),
                }),
        );
        let frames = positions
            .iter()
            .zip(&names)
            .rev()
            .map(|(position, name)| Frame {
                file: contents.places.file(position),
                name,
                line: u32::try_from(position.line).unwrap_or(0),
                start_char: column(position.start),
                end_char: column(position.end),
            });
        batch.define(LocationId(number), location.address, frames);
    }
    let first = contents.places.locations.len();
    let without = (0..).zip(&contents.points);
    let without = without.filter(|(_, point)| point.stack == NO_STACK);
    for (number, (point, of)) in (first..).zip(without) {
        let location = LocationId(u32::try_from(number).unwrap_or(u32::MAX));
        let name = format!("allocation point {}", of.annotation);
        let frame = Frame {
            name: name.as_bytes(),
            ..Frame::UNKNOWN
        };
        batch.define(location, of.annotation.into(), [frame]);
        stacks.of_point.insert(point, location);
    }
}

/// The name of a function that is not known: its line.
fn name_of(contents: &Contents, position: &Position) -> Vec<u8> {
    let mut name = contents.places.file(position).to_vec();
    name.extend(format!(":{}", position.line).bytes());
    name
}

fn column(n: i64) -> u16 {
    u16::try_from(n.max(0)).unwrap_or(u16::MAX)
}
