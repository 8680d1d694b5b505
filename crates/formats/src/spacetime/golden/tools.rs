//! The figures that `spacetime_lib` and `prof_spacetime` compute: entries of snapshots, groups by the
//! innermost and by the outermost frame, and the layers of charts.

use std::collections::{BTreeMap, BTreeSet};

use super::super::series::{Contents, NO_STACK, WORD};
use super::{Golden, frames};

/// The figures of an allocation point at a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Figures {
    blocks: u64,
    words: u64,
    /// Words allocated since the start.
    allocations: u64,
}

impl Figures {
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.words += other.words;
        self.allocations += other.allocations;
    }
}

/// One of the figures.
type Value = fn(&Figures) -> u64;

/// Figures of points by their number, for each snapshot.
fn entries(contents: &Contents) -> Vec<BTreeMap<u32, Figures>> {
    let has_stack = |point: u32| contents.points[point as usize].stack != NO_STACK;
    let mut totals: BTreeMap<u32, u64> = BTreeMap::new();
    let snapshots = contents.snapshots.iter();
    snapshots
        .map(|snapshot| {
            totals.extend(snapshot.totals.iter().copied());
            let mut entries: BTreeMap<u32, Figures> = BTreeMap::new();
            for (&point, &allocations) in totals.iter().filter(|(point, _)| has_stack(**point)) {
                entries.entry(point).or_default().allocations = allocations;
            }
            for live in snapshot.live.iter().filter(|live| has_stack(live.point)) {
                let entry = entries.entry(live.point).or_default();
                (entry.blocks, entry.words) = (live.blocks, live.words);
            }
            entries
        })
        .collect()
}

/// Compares everything that depends on the entries of snapshots.
pub(super) fn check(golden: &Golden, contents: &Contents) {
    let entries = entries(contents);
    check_entries(golden, contents, &entries);
    let innermost = |point: u32| frame(contents, contents.stack(stack(contents, point)).next());
    let outermost = |point: u32| frame(contents, contents.stack(stack(contents, point)).last());
    check_groups(golden.of("G"), &entries, innermost);
    check_groups(golden.of("GI"), &entries, outermost);
    check_charts(golden, contents, &entries, innermost);
}

fn stack(contents: &Contents, point: u32) -> u32 {
    contents.points[point as usize].stack
}

/// The address of a frame, and true if it is not in OCaml code.
fn frame(contents: &Contents, location: Option<u32>) -> (u64, bool) {
    let location = &contents.places.locations[location.unwrap() as usize];
    (location.address, location.is_foreign)
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

fn check_entries(golden: &Golden, contents: &Contents, entries: &[BTreeMap<u32, Figures>]) {
    for line in golden.of("AS") {
        let found = &entries[line[0].parse::<usize>().unwrap()];
        let mut sum = Figures::default();
        for entry in found.values() {
            sum.add(*entry);
        }
        let found = [found.len() as u64, sum.blocks, sum.words, sum.allocations];
        let expected: Vec<u64> = line[1..].iter().map(|text| number(text)).collect();
        assert_eq!(expected, found, "snapshot {}", line[0]);
    }
    let mut expected: BTreeMap<usize, Vec<(String, Figures)>> = BTreeMap::new();
    for line in golden.of("A") {
        let figures = Figures {
            blocks: number(&line[2]),
            words: number(&line[3]),
            allocations: number(&line[4]),
        };
        let of_snapshot = expected.entry(line[0].parse().unwrap()).or_default();
        of_snapshot.push((golden.frames(&line[1]), figures));
    }
    for (snapshot, mut expected) in expected {
        let found = entries[snapshot].iter();
        let mut found: Vec<(String, Figures)> = found
            .map(|(&point, &figures)| (frames(contents, stack(contents, point)), figures))
            .collect();
        expected.sort();
        found.sort();
        assert!(
            expected == found,
            "the entries of snapshot {snapshot} differ"
        );
    }
}

fn check_groups(
    lines: &[Vec<String>],
    entries: &[BTreeMap<u32, Figures>],
    frame: impl Fn(u32) -> (u64, bool),
) {
    let snapshots: BTreeSet<usize> = lines.iter().map(|line| line[0].parse().unwrap()).collect();
    for snapshot in snapshots {
        let mut found: BTreeMap<(u64, bool), Figures> = BTreeMap::new();
        for (&point, figures) in &entries[snapshot] {
            found.entry(frame(point)).or_default().add(*figures);
        }
        let of_snapshot = lines
            .iter()
            .filter(|line| number(&line[0]) == snapshot as u64);
        for line in of_snapshot {
            let address: i64 = line[1].parse().unwrap();
            let key = (address.cast_unsigned(), line[6] == "c");
            let figures = found.remove(&key).unwrap_or_default();
            let found = [
                figures.words,
                figures.words * WORD,
                figures.blocks,
                figures.allocations,
            ];
            let expected: Vec<u64> = line[2..6].iter().map(|text| number(text)).collect();
            assert_eq!(expected, found, "{line:?}");
        }
        assert!(found.is_empty(), "more groups in snapshot {snapshot}");
    }
}

fn check_charts(
    golden: &Golden,
    contents: &Contents,
    entries: &[BTreeMap<u32, Figures>],
    frame: impl Fn(u32) -> (u64, bool),
) {
    let modes: [(&str, Value); 3] = [
        ("bytes", |figures| figures.words * WORD),
        ("blocks", |figures| figures.blocks),
        ("allocations", |figures| figures.allocations),
    ];
    for (mode, value) in modes {
        // The values of each layer at the times of snapshots.
        let mut layers: BTreeMap<(u64, bool), Vec<u64>> = BTreeMap::new();
        for (i, entries) in entries.iter().enumerate() {
            for (&point, figures) in entries {
                let values = layers.entry(frame(point)).or_default();
                values.resize(contents.snapshots.len(), 0);
                values[i] += value(figures);
            }
        }
        let totals: Vec<u64> = (0..entries.len())
            .map(|i| layers.values().map(|values| values[i]).sum())
            .collect();
        for kind in ["all", "reduced"] {
            let is_this = |line: &&Vec<String>| line[0] == mode && line[1] == kind;
            let Some(chart) = golden.of("chart").iter().find(is_this) else {
                continue;
            };
            let max = totals.iter().max().copied().unwrap_or(0);
            assert_eq!(chart[2], format!("max_value={max}"), "{mode} {kind}");
            let mut expected: Vec<Vec<u64>> = Vec::new();
            let mut other = None;
            for line in golden.of("layer").iter().filter(is_this) {
                let values: Vec<u64> = line[2].split_whitespace().map(number).collect();
                match &*line[3] {
                    "Unknown" => {
                        let unknown = contents
                            .snapshots
                            .iter()
                            .map(|snapshot| snapshot.gc.map_or(0, |gc| gc.unattributed()) * WORD);
                        assert_eq!(values, unknown.collect::<Vec<u64>>());
                    }
                    "Other" => other = Some(values),
                    _ => expected.push(values),
                }
            }
            let mut rest: Vec<Vec<u64>> = layers.values().cloned().collect();
            for layer in &expected {
                let place = rest.iter().position(|values| values == layer);
                let place = place.unwrap_or_else(|| panic!("{mode} {kind}: no layer {layer:?}"));
                rest.swap_remove(place);
            }
            let Some(other) = other else {
                assert!(rest.is_empty(), "{mode} {kind}: {rest:?}");
                continue;
            };
            // The smallest layers. Which ones of those with the same maximum, is not said.
            // They have one value for snapshots that were given the same time.
            let mut sums: Vec<u64> = Vec::new();
            for (i, snapshot) in contents.snapshots.iter().enumerate() {
                let sum = rest.iter().map(|values| values[i]).sum();
                match i.checked_sub(1).map(|before| &contents.snapshots[before]) {
                    Some(before) if before.time.to_bits() == snapshot.time.to_bits() => {
                        *sums.last_mut().unwrap() = sum;
                    }
                    _ => sums.push(sum),
                }
            }
            assert_eq!(other, sums, "{mode} {kind}");
            let largest = |layers: &[Vec<u64>]| layers.iter().flatten().max().copied();
            let smallest = expected.iter().map(|values| values.iter().max().copied());
            assert!(largest(&rest) <= smallest.min().flatten(), "{mode} {kind}");
        }
    }
}
