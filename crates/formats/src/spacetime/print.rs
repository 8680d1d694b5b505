//! Prints profiles as `prof_spacetime` did, byte for byte.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::series::Contents;

/// The figure of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PrintMode {
    /// Live words
    Words,
    /// Live blocks
    Blocks,
    /// Words allocated since the start
    Allocations,
    /// Calls
    Calls,
    /// Calls of functions that are only known when the program runs
    IndirectCalls,
}

impl PrintMode {
    /// Returns true if numbers are those of the whole run, not of a snapshot.
    #[must_use]
    pub fn is_of_calls(self) -> bool {
        matches!(self, Self::Calls | Self::IndirectCalls)
    }
}

/// Prints folded stacks as `prof_spacetime print --filename --symbol --line-number` did: stacks are
/// not merged, and frames without a position are left out.
pub(super) fn print(
    contents: &Contents,
    mode: PrintMode,
    snapshot: usize,
    is_inverted: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    for (stack, n) in numbers(contents, mode, snapshot) {
        if n == 0 {
            continue;
        }
        line.clear();
        let mut frames = Vec::new();
        for location in contents.stack(stack) {
            let location = &contents.places.locations[location as usize];
            let positions = contents.places.positions(location).iter();
            frames.extend(positions.map(|position| (location, position)));
        }
        if is_inverted {
            frames.reverse();
        }
        for (i, (location, position)) in frames.into_iter().enumerate() {
            if i > 0 {
                line.push(b';');
            }
            line.extend_from_slice(contents.places.file(position));
            write!(
                line,
                ",{},{}-{},",
                position.line, position.start, position.end
            )?;
            match &location.symbol {
                Some(symbol) => line.extend_from_slice(symbol.as_bytes()),
                None => write!(line, "{}", location.address.cast_signed())?,
            }
        }
        writeln!(line, " {n}")?;
        out.write_all(&line)?;
    }
    Ok(())
}

/// The stacks and their numbers, in the order of the original library: the last one that it found
/// comes first.
fn numbers(contents: &Contents, mode: PrintMode, snapshot: usize) -> Vec<(u32, u64)> {
    if mode.is_of_calls() {
        let calls = contents.calls.iter().rev();
        return calls
            .filter(|call| call.has_node && (mode == PrintMode::Calls || !call.is_direct))
            .map(|call| (call.stack, call.count))
            .collect();
    }
    let mut numbers: Vec<(u32, u64)> = contents
        .points
        .iter()
        .map(|point| (point.stack, 0))
        .collect();
    let upto = &contents.snapshots[..contents.snapshots.len().min(snapshot + 1)];
    if mode == PrintMode::Allocations {
        for &(point, total) in upto.iter().flat_map(|snapshot| &snapshot.totals) {
            numbers[point as usize].1 = total;
        }
    } else if let Some(last) = upto.last() {
        for live in &last.live {
            numbers[live.point as usize].1 = match mode {
                PrintMode::Blocks => live.blocks,
                _ => live.words,
            };
        }
    }
    numbers.reverse();
    numbers
}

/// Live words, words allocated and live blocks of a file.
#[derive(Clone, Copy, Debug, Default)]
struct OfFile {
    words: i128,
    allocations: i128,
    blocks: i128,
}

/// Prints the difference of the last snapshots by source file, as `prof_spacetime compare` did.
pub(super) fn compare(before: &Contents, after: &Contents, out: &mut dyn Write) -> io::Result<()> {
    let mut files: BTreeMap<Vec<u8>, OfFile> = BTreeMap::new();
    for (contents, sign) in [(before, -1), (after, 1)] {
        let last = contents.snapshots.len().saturating_sub(1);
        for (mode, add) in MODES {
            for (stack, n) in numbers(contents, mode, last) {
                if let Some(file) = file_of(contents, stack) {
                    let row = files.entry(file.to_vec()).or_default();
                    *add(row) += sign * i128::from(n);
                }
            }
        }
    }
    let mut rows: Vec<(Vec<u8>, OfFile)> = files.into_iter().collect();
    rows.sort_by_key(|(_, row)| row.words);
    writeln!(
        out,
        "{:<22}{:>14} {:>14} {:>14}",
        "File", "Words", "Allocations", "Blocks"
    )?;
    for (file, row) in rows {
        if row.words != 0 && row.allocations != 0 {
            writeln!(
                out,
                "{:<22}{:>+14} {:>+14} {:>+14}",
                String::from_utf8_lossy(&file),
                row.words,
                row.allocations,
                row.blocks
            )?;
        }
    }
    Ok(())
}

type Column = fn(&mut OfFile) -> &mut i128;

const MODES: [(PrintMode, Column); 3] = [
    (PrintMode::Words, |row| &mut row.words),
    (PrintMode::Allocations, |row| &mut row.allocations),
    (PrintMode::Blocks, |row| &mut row.blocks),
];

/// The file of the innermost frame that has one.
fn file_of(contents: &Contents, stack: u32) -> Option<&[u8]> {
    let places = &contents.places;
    contents.stack(stack).find_map(|location| {
        let positions = places.positions(&places.locations[location as usize]);
        positions.first().map(|position| places.file(position))
    })
}
