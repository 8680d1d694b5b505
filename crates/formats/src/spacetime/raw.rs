//! Raw profiles, `spacetime-<pid>`: a sequence of marshalled values.
//!
//! ```text
//! magic, (0, snapshot | 2, name, time)*, 1, time, positions, shapes, threads, (trie, trie)*
//! ```

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use super::series::{Contents, Gc, Live, Mark, Point, Snapshot};
use super::tables::{Shapes, frame_table};
use super::trie::Walk;
use crate::marshal::{Block, Heap, Value};

/// The low 32 bits of the first value.
const MAGIC: u64 = 0xace0_0ace;

/// The value that is expected next.
#[derive(Debug)]
enum Expected {
    Magic,
    Kind,
    Snapshot,
    MarkName,
    MarkTime(Vec<u8>),
    CloseTime,
    FrameTable,
    Shapes,
    Threads,
    /// So many tries.
    Tries(u64),
    Nothing,
}

/// Takes the values of a raw profile one after the other.
#[derive(Debug)]
pub(super) struct Raw {
    expected: Expected,
    contents: Contents,
    shapes: Option<Shapes>,
    has_call_counts: bool,
    /// True if all tries were read.
    has_stacks: bool,
    known: Known,
}

/// The snapshots and events that were read, to recognise those that a child process repeats.
///
/// Hashes with random keys stand for their contents: comparing all of them would take quadratic time
/// for files that are made to.
#[derive(Debug, Default)]
struct Known {
    keys: RandomState,
    hashes: HashSet<u64>,
    /// True once a child process has begun with what it inherited.
    repeats: bool,
}

impl Known {
    /// Returns true if a snapshot is a repetition; else it is known from now on.
    fn has_snapshot(&mut self, snapshot: &Snapshot) -> bool {
        let Snapshot {
            time,
            gc,
            live,
            totals,
        } = snapshot;
        let hash = self.keys.hash_one((time.to_bits(), gc, live, totals));
        self.has(hash)
    }

    /// Returns true if an event is a repetition; else it is known from now on.
    fn has_mark(&mut self, time: f64, name: &[u8]) -> bool {
        let hash = self.keys.hash_one((time.to_bits(), name));
        self.has(hash)
    }

    fn has(&mut self, hash: u64) -> bool {
        !self.hashes.insert(hash) && self.repeats
    }
}

impl Raw {
    pub(super) fn new() -> Self {
        Self {
            expected: Expected::Magic,
            contents: Contents::default(),
            shapes: None,
            has_call_counts: false,
            has_stacks: false,
            known: Known::default(),
        }
    }

    /// Returns true if everything was read.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.expected, Expected::Nothing)
    }

    /// Returns true if snapshots may follow, so that reading can go on at the next one after damage.
    pub(super) fn is_among_snapshots(&self) -> bool {
        matches!(
            self.expected,
            Expected::Kind | Expected::Snapshot | Expected::MarkName | Expected::MarkTime(_)
        )
    }

    /// Goes on with the next snapshot or event, after damage.
    pub(super) fn restart(&mut self) {
        self.expected = Expected::Kind;
    }

    /// Names what is missing in a file that ends too early.
    pub(super) fn missing(&self) -> &'static str {
        if self.is_among_snapshots() {
            "the file ends before its tables: the program did not exit normally. \
             Its snapshots have no stacks, only numbers of allocation points"
        } else {
            "the file ends within its tables: its snapshots have no stacks, only numbers of \
             allocation points"
        }
    }

    /// Skips a value that cannot be read. False if nothing after it makes sense.
    pub(super) fn skip(&mut self) -> bool {
        self.expected = match std::mem::replace(&mut self.expected, Expected::Kind) {
            Expected::Snapshot | Expected::MarkTime(_) => Expected::Kind,
            Expected::MarkName => Expected::MarkTime(Vec::new()),
            Expected::CloseTime => Expected::FrameTable,
            Expected::FrameTable => Expected::Shapes,
            Expected::Shapes => Expected::Threads,
            Expected::Tries(n) if n > 1 => Expected::Tries(n - 1),
            Expected::Tries(_) => Expected::Nothing,
            other @ (Expected::Magic | Expected::Kind | Expected::Threads | Expected::Nothing) => {
                self.expected = other;
                return false;
            }
        };
        true
    }

    /// Takes the next value.
    pub(super) fn take(&mut self, heap: &Heap<'_>) -> Result<(), &'static str> {
        let root = heap.root();
        self.expected = match std::mem::replace(&mut self.expected, Expected::Kind) {
            Expected::Magic => {
                self.magic(root)?;
                Expected::Kind
            }
            Expected::Kind => match root {
                Value::Int(0) => Expected::Snapshot,
                Value::Int(1) => Expected::CloseTime,
                Value::Int(2) => Expected::MarkName,
                // A child process wrote what it had inherited: it begins again.
                _ if self.magic(root).is_ok() => {
                    self.known.repeats = true;
                    Expected::Kind
                }
                _ => return Err("there is neither a snapshot nor an event nor the end"),
            },
            Expected::Snapshot => {
                let snapshot = snapshot(heap).ok_or("a snapshot is not one")?;
                if !self.known.has_snapshot(&snapshot) {
                    self.contents.snapshots.push(snapshot);
                }
                Expected::Kind
            }
            Expected::MarkName => {
                let name = heap
                    .string(root)
                    .ok_or("the name of an event is not a string")?;
                Expected::MarkTime(name.to_vec())
            }
            Expected::MarkTime(name) => {
                let time = heap
                    .double(root)
                    .ok_or("the time of an event is not a number")?;
                if !self.known.has_mark(time, &name) {
                    let snapshots = self.contents.snapshots.len();
                    self.contents.marks.push(Mark {
                        snapshots,
                        time,
                        name,
                    });
                }
                Expected::Kind
            }
            Expected::CloseTime => {
                let time = heap
                    .double(root)
                    .ok_or("the time of the end is not a number")?;
                self.contents.close_time = Some(time);
                Expected::FrameTable
            }
            Expected::FrameTable => {
                self.contents.places.frames = frame_table(heap)?;
                Expected::Shapes
            }
            Expected::Shapes => {
                let shapes = Shapes::read(heap)?;
                self.contents.functions = shapes.functions();
                self.shapes = Some(shapes);
                Expected::Threads
            }
            Expected::Threads => match root {
                Value::Int(n @ 1..=0xffff) => {
                    self.has_stacks = true;
                    Expected::Tries(2 * n.unsigned_abs())
                }
                Value::Int(0) => Expected::Nothing,
                _ => return Err("the number of threads is not one"),
            },
            Expected::Tries(n) => {
                self.trie(heap)?;
                match n {
                    0 | 1 => Expected::Nothing,
                    n => Expected::Tries(n - 1),
                }
            }
            Expected::Nothing => return Err("there is something after the end"),
        };
        Ok(())
    }

    fn magic(&mut self, root: Value) -> Result<(), &'static str> {
        let Value::Int(magic) = root else {
            return Err("this is not a Spacetime profile");
        };
        let magic = magic.cast_unsigned();
        if magic & 0xffff_ffff != MAGIC {
            return Err("this is not a Spacetime profile");
        }
        if magic >> 32 & 0xffff != 0 {
            return Err(
                "this version of Spacetime's format is not known; OCaml 4.04 to 4.11 write \
                 version 0",
            );
        }
        self.has_call_counts = magic >> 48 & 1 == 1;
        Ok(())
    }

    fn trie(&mut self, heap: &Heap<'_>) -> Result<(), &'static str> {
        let Some(shapes) = &self.shapes else {
            return Err("the tree of calls is useless without the table of functions");
        };
        let (points, calls) = (self.contents.points.len(), self.contents.calls.len());
        let walked = Walk {
            shapes,
            contents: &mut self.contents,
            has_call_counts: self.has_call_counts,
        }
        .trie(heap);
        if walked.is_err() {
            self.contents.points.truncate(points);
            self.contents.calls.truncate(calls);
        }
        walked
    }

    /// The contents, with the numbers of allocation points in place of annotations.
    pub(super) fn finish(self) -> Contents {
        let mut contents = self.contents;
        contents.has_call_counts = self.has_call_counts && self.has_stacks;
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        for (number, point) in (0..).zip(&contents.points) {
            numbers.entry(point.annotation).or_insert(number);
        }
        let points = &mut contents.points;
        let mut number = |annotation: &mut u32| {
            *annotation = *numbers.entry(*annotation).or_insert_with(|| {
                points.push(Point {
                    annotation: *annotation,
                    stack: super::series::NO_STACK,
                    at_exit: None,
                });
                u32::try_from(points.len() - 1).unwrap_or(u32::MAX)
            });
        };
        for snapshot in &mut contents.snapshots {
            for live in &mut snapshot.live {
                number(&mut live.point);
            }
            for (point, _) in &mut snapshot.totals {
                number(point);
            }
        }
        contents
    }
}

fn snapshot(heap: &Heap<'_>) -> Option<Snapshot> {
    let block = heap.block(heap.root()).filter(|block| block.len() == 6)?;
    let time = heap.double(block.get(0)?)?;
    let gc = counters(heap.block(block.get(1)?)?)?;
    let gc = Gc::new(gc, count(block.int(3)?)?, count(block.int(4)?)?);
    let live = match block.get(2)? {
        Value::Int(0) => Vec::new(),
        entries => live(heap.block(entries)?)?,
    };
    let mut totals = Vec::new();
    let mut rest = block.get(5)?;
    while rest != Value::Int(0) {
        let cell = heap.block(rest).filter(|cell| cell.len() == 3)?;
        totals.push((u32::try_from(cell.int(0)?).ok()?, count(cell.int(1)?)?));
        // One that never ends is none.
        if totals.len() > heap.object_count() {
            return None;
        }
        rest = cell.get(2)?;
    }
    Some(Snapshot {
        time,
        gc: Some(gc),
        live,
        totals,
    })
}

fn live(entries: Block<'_>) -> Option<Vec<Live>> {
    let ints: Option<Vec<i64>> = entries.ints().collect();
    let ints = ints?;
    let rows = ints.chunks(3).map(|row| match *row {
        [point, blocks, words] => Some(Live {
            point: u32::try_from(point).ok()?,
            blocks: count(blocks)?,
            words: count(words)?,
        }),
        _ => None,
    });
    rows.collect()
}

/// The nine counters of the garbage collector.
pub(super) fn counters(block: Block<'_>) -> Option<[u64; 9]> {
    let counters: Option<Vec<u64>> = block.ints().map(|n| count(n?)).collect();
    counters?.try_into().ok()
}

/// A number of things. Sums of as many as a file can have must fit into 64 bits.
pub(super) fn count(n: i64) -> Option<u64> {
    u64::try_from(n).ok().filter(|&n| n < 1 << 50)
}
