//! The contents of a Spacetime profile, whichever of the two kinds of file it comes from.

use std::collections::HashMap;

use heapline_model::GcCounters;

/// No stack: nothing is known of where something was allocated, or there is no caller.
pub(super) const NO_STACK: u32 = u32::MAX;

/// Bytes of a word: Spacetime only ran on 64-bit machines.
pub(super) const WORD: u64 = 8;

/// The contents of a profile.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) places: Places,
    pub(super) stacks: Vec<StackNode>,
    /// In the order in which the original library finds them.
    pub(super) points: Vec<Point>,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) marks: Vec<Mark>,
    pub(super) calls: Vec<Call>,
    pub(super) has_call_counts: bool,
    /// When the program ended, in seconds.
    pub(super) close_time: Option<f64>,
    pub(super) functions: Functions,
}

/// Where the functions of the program were.
#[derive(Debug, Default)]
pub(super) struct Functions {
    pub(super) all: Vec<u64>,
    /// Those that may be the one in which OCaml code starts: they call one function that is not known
    /// before, and do nothing else.
    pub(super) perhaps_start: Vec<u64>,
}

/// A frame of a stack, and the frame that called it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackNode {
    /// [`NO_STACK`] for the outermost.
    pub(super) caller: u32,
    pub(super) location: u32,
}

/// An allocation point: a place in the program, reached by one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Its number in the snapshots.
    pub(super) annotation: u32,
    pub(super) stack: u32,
    /// Words that were allocated there until the program ended, if the file says so.
    pub(super) at_exit: Option<u64>,
}

/// Live memory at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// In seconds, as the file has it: it may go back.
    pub(super) time: f64,
    pub(super) gc: Option<Gc>,
    pub(super) live: Vec<Live>,
    /// Words that were allocated at points since the start; those of others did not change.
    pub(super) totals: Vec<(u32, u64)>,
}

/// Live memory of an allocation point. In raw files, `point` is its annotation at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Live {
    pub(super) point: u32,
    pub(super) blocks: u64,
    pub(super) words: u64,
}

/// The garbage collector at a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Gc {
    pub(super) counters: GcCounters,
    /// Words that the snapshot found alive.
    pub(super) scanned: u64,
    /// Those of them that have an allocation point.
    pub(super) scanned_with_point: u64,
}

impl Gc {
    /// The counters are in the order of the file.
    pub(super) fn new(counters: [u64; 9], scanned: u64, scanned_with_point: u64) -> Self {
        let [
            minor_words,
            promoted_words,
            major_words,
            minor_collections,
            major_collections,
            heap_words,
            heap_chunks,
            compactions,
            top_heap_words,
        ] = counters;
        Self {
            counters: GcCounters {
                minor_words,
                promoted_words,
                major_words,
                minor_collections,
                major_collections,
                // The file has a number of words divided by 8, as if it were bytes.
                heap_words: heap_words.saturating_mul(WORD),
                heap_chunks,
                compactions,
                top_heap_words: top_heap_words.saturating_mul(WORD),
            },
            scanned,
            scanned_with_point,
        }
    }

    /// Live words that have no allocation point.
    pub(super) fn unattributed(&self) -> u64 {
        self.scanned.saturating_sub(self.scanned_with_point)
    }

    /// All words that were ever allocated.
    pub(super) fn allocated(&self) -> u64 {
        let gc = &self.counters;
        let all = gc.minor_words.saturating_add(gc.major_words);
        all.saturating_sub(gc.promoted_words)
    }
}

/// An event that the program noted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    /// How many snapshots came before it.
    pub(super) snapshots: usize,
    pub(super) time: f64,
    pub(super) name: Vec<u8>,
}

/// Calls from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) stack: u32,
    pub(super) is_direct: bool,
    /// Where the callee begins, if the file says so.
    pub(super) callee: u64,
    /// True if anything is known of what the callee did.
    pub(super) has_node: bool,
    pub(super) count: u64,
}

/// Places in the program, each once.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) locations: Vec<Location>,
    numbers: HashMap<(u64, bool), u32>,
    pub(super) frames: FrameTable,
}

/// A place in the program.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) address: u64,
    /// True if it is in code that is not OCaml's.
    pub(super) is_foreign: bool,
    /// Its function, if it is known.
    pub(super) symbol: Option<Box<str>>,
    /// The name of the function that starts OCaml's code: nothing else in the file tells it.
    pub(super) start_up: Option<&'static str>,
    /// Where its positions are in the [`FrameTable`], innermost first.
    positions: (u32, u32),
}

impl Places {
    /// The number of a location.
    pub(super) fn number(&mut self, address: u64, is_foreign: bool) -> u32 {
        if let Some(&number) = self.numbers.get(&(address, is_foreign)) {
            return number;
        }
        let positions = if is_foreign {
            (0, 0)
        } else {
            self.frames
                .of_address
                .get(&address)
                .copied()
                .unwrap_or_default()
        };
        self.add(address, is_foreign, None, positions)
    }

    /// A location whose positions are known already.
    pub(super) fn add(
        &mut self,
        address: u64,
        is_foreign: bool,
        symbol: Option<Box<str>>,
        positions: (u32, u32),
    ) -> u32 {
        let number = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        self.numbers.insert((address, is_foreign), number);
        self.locations.push(Location {
            address,
            is_foreign,
            symbol,
            start_up: None,
            positions,
        });
        number
    }

    /// Says in which lines of which files a location is whose positions the profile does not know,
    /// innermost first.
    pub(super) fn locate(&mut self, location: usize, lines: &[(String, i64)]) {
        let lines = lines.iter();
        // What is not known about columns is -1, as in the original library.
        let positions = lines.map(|(file, line)| (file.as_bytes(), *line, -1, -1));
        self.locations[location].positions = self.frames.positions(positions);
    }

    /// The positions of a location, innermost first.
    pub(super) fn positions(&self, location: &Location) -> &[Position] {
        let (start, end) = location.positions;
        &self.frames.positions[start as usize..end as usize]
    }

    pub(super) fn file(&self, position: &Position) -> &[u8] {
        &self.frames.files[position.file as usize]
    }
}

/// Positions in the source by address.
#[derive(Debug, Default)]
pub(super) struct FrameTable {
    of_address: HashMap<u64, (u32, u32)>,
    positions: Vec<Position>,
    files: Vec<Box<[u8]>>,
    file_numbers: HashMap<Box<[u8]>, u32>,
}

/// A position in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    file: u32,
    pub(super) line: i64,
    pub(super) start: i64,
    pub(super) end: i64,
}

impl FrameTable {
    /// Adds positions, innermost first; returns where they are.
    pub(super) fn positions<'a>(
        &mut self,
        positions: impl IntoIterator<Item = (&'a [u8], i64, i64, i64)>,
    ) -> (u32, u32) {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let first = number(self.positions.len());
        for (file, line, start, end) in positions {
            let file = match self.file_numbers.get(file) {
                Some(&file) => file,
                None => {
                    let new = number(self.files.len());
                    self.files.push(file.into());
                    self.file_numbers.insert(file.into(), new);
                    new
                }
            };
            self.positions.push(Position {
                file,
                line,
                start,
                end,
            });
        }
        (first, number(self.positions.len()))
    }

    /// Says what is at an address.
    pub(super) fn set(&mut self, address: u64, positions: (u32, u32)) {
        self.of_address.insert(address, positions);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of_address.len()
    }
}

impl Contents {
    /// The locations of a stack, innermost first.
    pub(super) fn stack(&self, mut stack: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::from_fn(move || {
            // A caller was there before those that it called, so this ends.
            let node = self.stacks.get(stack as usize)?;
            stack = node.caller;
            Some(node.location)
        })
    }
}
