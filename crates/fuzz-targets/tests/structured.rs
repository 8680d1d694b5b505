//! Damage that keeps the structure of the input: many versions are accepted, and reach what lies behind the parsers, where
//! other damage is refused.

use std::fs;
use std::ops::Range;

use heapline_fuzz_targets::{budget, heap, spacetime};
use heapline_testkit::heap::{server_after, without_checksums};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

type Random = Xoshiro256PlusPlus;

/// Damaged versions of each format.
const VERSIONS: usize = 4_000;

/// The least share of versions that are accepted.
const ACCEPTED: f64 = 0.4;

/// The most memory that these tests may ever take.
const MOST_MEMORY: u64 = 1_000_000_000;

/// Runs a target on many versions of an input.
fn replay(name: &str, run: fn(&[u8]) -> bool, mut damaged: impl FnMut(&mut Random) -> Vec<u8>) {
    let mut random = Random::seed_from_u64(7);
    let accepted = (0..VERSIONS).filter(|_| run(&damaged(&mut random))).count();
    let share = accepted as f64 / VERSIONS as f64;
    assert!(share >= ACCEPTED, "{name}: {:.1} % accepted", 100.0 * share);
    let memory = most_memory();
    assert!(memory < MOST_MEMORY, "{name}: {memory} bytes of memory");
}

/// The most memory that this process has ever had.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kib.parse::<u64>().unwrap() * 1024
}

/// One of several.
fn one<T: Clone>(random: &mut Random, all: &[T]) -> T {
    all[random.random_range(0..all.len())].clone()
}

#[test]
fn numbers_in_snapshots() {
    let seed = without_checksums(&server_after(3).finish());
    let columns = columns(&seed);
    replay("snapshots", heap::run, |random| {
        let mut file = seed.clone();
        for _ in 0..random.random_range(1..=3) {
            let column = one(random, &columns);
            let place = random.random_range(column);
            // The highest bit says whether the number goes on.
            file[place] ^= random.random_range(1..=0x7f);
        }
        file
    });
}

/// The columns of a snapshot without checksums that are not empty.
fn columns(file: &[u8]) -> Vec<Range<usize>> {
    const FILE_HEADER: usize = 16;
    const SECTION_HEADER: usize = 16;
    let number = |at: usize| {
        u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]) as usize
    };
    let (mut columns, mut at) = (Vec::new(), FILE_HEADER);
    while at < file.len() {
        let end = at + SECTION_HEADER + number(at + 12);
        let mut column = at + SECTION_HEADER;
        while column < end {
            let range = column + 4..column + 4 + number(column);
            column = range.end;
            columns.extend((!range.is_empty()).then_some(range));
        }
        at = end;
    }
    columns
}

#[test]
fn values_in_spacetime_profiles() {
    let path = heapline_testkit::fixtures::folder().join("spacetime/events/spacetime.profile.p");
    let seed = fs::read(path).unwrap();
    let values = values(&seed);
    assert!(values.len() > 1000, "{}", values.len());
    replay("profiles", spacetime::run, |random| {
        let mut file = seed.clone();
        for _ in 0..random.random_range(1..=3) {
            match one(random, &values) {
                Value::Small(at) => file[at] = 0x40 | random.random_range(0..0x40_u8),
                Value::Bytes(range) => {
                    let place = random.random_range(range);
                    file[place] = random.random();
                }
            }
        }
        file
    });
}

/// A value in the data of OCaml's Marshal that can be another one in the same bytes.
#[derive(Clone)]
enum Value {
    /// A number from 0 to 63.
    Small(usize),
    /// A larger number, a string, or a floating-point number.
    Bytes(Range<usize>),
}

fn values(file: &[u8]) -> Vec<Value> {
    const HEADER: usize = 20;
    let number = |at: usize, bytes: usize| {
        let number = &file[at..at + bytes];
        number.iter().fold(0, |n, &byte| n << 8 | usize::from(byte))
    };
    let (mut values, mut at) = (Vec::new(), HEADER);
    while at < file.len() {
        let code = file[at];
        let payload = at + 1;
        let string = |length: usize, bytes: usize| payload + length..payload + length + bytes;
        // What follows the code, and whether it can be changed.
        let (range, is_value) = match code {
            0x40..=0x7f => {
                values.push(Value::Small(at));
                (payload..payload, false)
            }
            0x80.. => (payload..payload, false),
            0x20..=0x3f => (string(0, usize::from(code & 0x1f)), true),
            // Integers of 1, 2, 4 and 8 bytes.
            0x00..=0x03 => (string(0, 1 << code), true),
            // Values that were there before, and headers of blocks.
            0x04..=0x06 => (string(0, 1 << (code - 4)), false),
            0x08 => (string(0, 4), false),
            0x13 => (string(0, 8), false),
            // Longer strings.
            0x09 => (string(1, number(payload, 1)), true),
            0x0a => (string(4, number(payload, 4)), true),
            // Floating-point numbers.
            0x0b | 0x0c => (string(0, 8), true),
            // A custom block of a known size: here, int64.
            0x19 if file[payload..].starts_with(b"_j\0") => (string(3, 8), true),
            code => panic!("the code {code:#x} at byte {at}"),
        };
        at = range.end;
        if is_value && !range.is_empty() {
            values.push(Value::Bytes(range));
        }
    }
    values
}

#[test]
fn words_of_budgets() {
    const QUANTITIES: &[&str] = &[
        "allocated",
        "promoted",
        "peak",
        "live at peak",
        "live at end",
        "live at 50%",
        "alive at 1.5ms",
        "live at @14:30",
        "live at nowhere",
    ];
    const CONDITIONS: &[&str] = &[
        "inside \"M*\"",
        "inside /List/i",
        "function = List.map called by Main",
        "own module = M mine \"M.*\"",
        "size >= 64KiB",
        "size in 2w..16w",
        "lifetime < 10kw",
        "live in 10%..peak",
        "collected",
        "allocated in 90%..",
        "heap = major",
        "domain != 3",
        "samples > 99999999999999999999",
        "file = \"a b.ml\" hiding \"\\\"\"",
        "size < -1",
    ];
    const LIMITS: &[&str] = &[
        "0",
        "1",
        "200MiB",
        "1.5G",
        "10Mw",
        "64k",
        "1e9",
        "99999999999999999999TiB",
        "many",
    ];
    replay("budgets", budget::run, |random| {
        let mut text = String::new();
        for _ in 0..random.random_range(1..=2) {
            text += one(random, &["", "", "blocks "]);
            text += one(random, QUANTITIES);
            for number in 0..random.random_range(0..4) {
                text += if number == 0 {
                    " where "
                } else {
                    one(random, &[" and ", " or "])
                };
                text += one(random, &["", "", "not "]);
                text += one(random, CONDITIONS);
            }
            text += one(random, &[" < ", " <= ", " < ", ">"]);
            text += one(random, LIMITS);
            text += one(random, &["", " # note", "\r"]);
            text += "\n";
        }
        text.into_bytes()
    });
}
