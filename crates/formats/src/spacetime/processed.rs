//! Processed profiles, `.p`: one marshalled value, which `prof_spacetime process` wrote.

use std::collections::HashMap;

use super::raw::{count, counters};
use super::series::{Call, Contents, Gc, Live, NO_STACK, Point, Snapshot, StackNode};
use crate::marshal::{Block, Heap, Value};

/// Reads the contents of a processed profile.
pub(super) fn read(heap: &Heap<'_>) -> Result<Contents, &'static str> {
    const WRONG: &str = "this is not a processed Spacetime profile";
    let root = heap.block(heap.root()).filter(|root| root.len() == 4);
    let root = root.ok_or(WRONG)?;
    let field = |field: usize| root.get(field).ok_or(WRONG);
    let mut reader = Reader {
        heap,
        contents: Contents::default(),
        locations: HashMap::new(),
        stacks: HashMap::new(),
        points: HashMap::new(),
        entries_left: heap.object_count(),
    };
    let snapshots: Vec<Value> = heap.list(field(0)?).collect();
    // The last snapshot has all points that the one before it has, in the same order, which is the
    // reverse of that in which they were found.
    let mut decoded = Vec::new();
    for &value in snapshots.iter().rev() {
        decoded.push(reader.snapshot(value).ok_or("a snapshot is not one")?);
    }
    decoded.reverse();
    let mut contents = reader.calls(field(1)?).ok_or("a call is not one")?;
    contents.snapshots = decoded;
    contents.has_call_counts = root.int(2) == Some(1);
    contents.close_time = heap.double(field(3)?);
    Ok(contents)
}

struct Reader<'a, 'b> {
    heap: &'a Heap<'b>,
    contents: Contents,
    /// By the number of their objects.
    locations: HashMap<u32, u32>,
    stacks: HashMap<u32, u32>,
    /// By stack: its numbers in the order of a snapshot's entries, as several points can have one.
    points: HashMap<u32, Vec<u32>>,
    /// Snapshots do not share their entries: there are not more than objects.
    entries_left: usize,
}

impl Reader<'_, '_> {
    fn snapshot(&mut self, value: Value) -> Option<Snapshot> {
        let heap = self.heap;
        let block = heap.block(value).filter(|block| block.len() == 3)?;
        let gc = match heap.block(block.get(1)?) {
            None => None,
            Some(some) => Some(self.gc(some)?),
        };
        let mut snapshot = Snapshot {
            time: heap.double(block.get(0)?)?,
            gc,
            ..Snapshot::default()
        };
        // How many entries of each stack this snapshot had so far.
        let mut met: HashMap<u32, usize> = HashMap::new();
        let list = heap.list(block.get(2)?);
        let entries: Vec<Value> = list.take(self.entries_left + 1).collect();
        self.entries_left = self.entries_left.checked_sub(entries.len())?;
        for &entry in entries.iter().rev() {
            let entry = heap.block(entry)?;
            let number = |field: usize| count(entry.int(field)?);
            let (blocks, words, total) = match (entry.tag, entry.len()) {
                (0, 2) => (0, 0, number(1)?),
                (1, 2) => {
                    let packed = number_of(entry.int(1)?);
                    (packed & 0xffff, packed >> 16 & 0xffff, packed >> 32)
                }
                (2, 4) => (number(1)?, number(2)?, number(3)?),
                _ => return None,
            };
            let stack = self.stack(entry.get(0)?)?;
            let met = met.entry(stack).or_default();
            let point = self.point(stack, *met);
            *met += 1;
            if blocks > 0 || words > 0 {
                snapshot.live.push(Live {
                    point,
                    blocks,
                    words,
                });
            }
            snapshot.totals.push((point, total));
        }
        Some(snapshot)
    }

    fn gc(&self, some: Block<'_>) -> Option<Gc> {
        let stats = self.heap.block(some.get(0)?)?;
        let counters = counters(self.heap.block(stats.get(0)?)?)?;
        Some(Gc::new(
            counters,
            count(stats.int(1)?)?,
            count(stats.int(2)?)?,
        ))
    }

    fn point(&mut self, stack: u32, nth: usize) -> u32 {
        let of_stack = self.points.entry(stack).or_default();
        if let Some(&point) = of_stack.get(nth) {
            return point;
        }
        let number = u32::try_from(self.contents.points.len()).unwrap_or(u32::MAX);
        self.contents.points.push(Point {
            annotation: number,
            stack,
            at_exit: None,
        });
        of_stack.push(number);
        number
    }

    /// The number of a backtrace: a list of locations, innermost first, whose tails are shared.
    fn stack(&mut self, mut value: Value) -> Option<u32> {
        // Frames that are not known yet, innermost first.
        let mut new = Vec::new();
        let mut stack = loop {
            let Value::Object(number) = value else {
                break NO_STACK;
            };
            if let Some(&known) = self.stacks.get(&number) {
                break known;
            }
            let cell = self.heap.block(value).filter(|cell| cell.len() == 2)?;
            // One that never ends is none.
            if new.len() > self.heap.object_count() {
                return None;
            }
            new.push((number, cell.get(0)?));
            value = cell.get(1)?;
        };
        for (number, location) in new.into_iter().rev() {
            let location = self.location(location)?;
            let caller = stack;
            stack = u32::try_from(self.contents.stacks.len()).ok()?;
            self.contents.stacks.push(StackNode { caller, location });
            self.stacks.insert(number, stack);
        }
        Some(stack)
    }

    fn location(&mut self, value: Value) -> Option<u32> {
        let Value::Object(number) = value else {
            return None;
        };
        if let Some(&known) = self.locations.get(&number) {
            return Some(known);
        }
        let heap = self.heap;
        let block = heap.block(value).filter(|block| block.len() == 4)?;
        let address = heap.int64(block.get(0)?)?;
        let symbol = match heap.block(block.get(1)?) {
            None => None,
            Some(some) => {
                let name = heap.string(some.get(0)?)?;
                Some(String::from_utf8_lossy(name).into())
            }
        };
        let mut positions = Vec::new();
        // Nobody inlines as deep as this.
        for position in heap.list(block.get(2)?).take(256) {
            let block = heap.block(position)?;
            let file = heap.string(block.get(0)?)?;
            positions.push((file, block.int(1)?, block.int(2)?, block.int(3)?));
        }
        let places = &mut self.contents.places;
        let positions = places.frames.positions(positions);
        let is_foreign = block.int(3)? == 1;
        let location = places.add(address, is_foreign, symbol, positions);
        self.locations.insert(number, location);
        Some(location)
    }

    fn calls(mut self, list: Value) -> Option<Contents> {
        for entry in self.heap.list(list) {
            let entry = self.heap.block(entry).filter(|entry| entry.len() == 2)?;
            let stack = self.stack(entry.get(0)?)?;
            self.contents.calls.push(Call {
                stack,
                is_direct: entry.tag == 0,
                callee: 0,
                has_node: true,
                count: count(entry.int(1)?)?,
            });
        }
        // As they were found.
        self.contents.calls.reverse();
        Some(self.contents)
    }
}

/// The bits of an integer.
fn number_of(n: i64) -> u64 {
    n.cast_unsigned() & (u64::MAX >> 1)
}
