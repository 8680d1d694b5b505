//! Compares what is read with what the original libraries found in the same files.

mod tools;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use heapline_testkit as testkit;

use super::series::{Contents, NO_STACK, WORD};
use super::{PrintMode, Series};
use crate::Options;

/// Profiles that are part of the project.
const FIXTURES: [&str; 4] = ["mix", "events", "old406", "killed"];
/// Those beside it.
const REFERENCES: [&str; 8] = [
    "small", "single", "none", "cut", "cstubs", "threads", "large", "forked",
];

fn fixture(name: &str) -> PathBuf {
    testkit::fixtures::folder().join("spacetime").join(name)
}

fn reference(name: &str) -> PathBuf {
    let folder = testkit::fixtures::reference_folder().expect("the reference traces");
    folder.join("own/spacetime").join(name)
}

/// A file that may be compressed.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    ["", ".gz", ".zst"]
        .map(|extension| folder.join(format!("{name}{extension}")))
        .into_iter()
        .find(|path| path.is_file())
}

fn bytes(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let file = File::open(find(folder, name)?).unwrap();
    let (mut file, _) = heapline_trace::decompressed(Box::new(file)).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

fn text(folder: &Path, name: &str) -> Option<String> {
    bytes(folder, name).map(|bytes| String::from_utf8(bytes).unwrap())
}

fn read(folder: &Path, name: &str) -> Series {
    let path = find(folder, name).unwrap_or_else(|| panic!("no {name} in {}", folder.display()));
    Series::read(File::open(path).unwrap(), Options::default()).unwrap()
}

/// The frames of a stack, innermost first, as the golden file has them.
fn frames(contents: &Contents, stack: u32) -> String {
    let mut text = String::new();
    for location in contents.stack(stack) {
        let location = &contents.places.locations[location as usize];
        let mark = if location.is_foreign { "*" } else { "" };
        write!(text, " {:x}{mark}", location.address).unwrap();
    }
    text
}

/// Bytes as OCaml's `String.escaped` has them.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\\' | b'"' => {
                text.push('\\');
                text.push(byte.into());
            }
            b' '..=b'~' => text.push(byte.into()),
            _ => write!(text, "\\{byte:03}").unwrap(),
        }
    }
    text
}

/// The lines of a golden file, by their first word.
struct Golden {
    lines: HashMap<String, Vec<Vec<String>>>,
    /// Frames of backtraces, innermost first.
    backtraces: Vec<(usize, String)>,
}

impl Golden {
    fn new(text: &str) -> Self {
        let mut lines: HashMap<String, Vec<Vec<String>>> = HashMap::new();
        let mut backtraces = Vec::new();
        for line in text.lines() {
            let mut fields = line.split('\t').map(ToOwned::to_owned);
            let kind = fields.next().unwrap();
            let fields: Vec<String> = fields.collect();
            if kind == "B" {
                let caller = fields[1].parse().unwrap_or(usize::MAX);
                backtraces.push((caller, fields[2].clone()));
            } else {
                lines.entry(kind).or_default().push(fields);
            }
        }
        Self { lines, backtraces }
    }

    fn of(&self, kind: &str) -> &[Vec<String>] {
        self.lines.get(kind).map_or(&[], |lines| &lines[..])
    }

    fn frames(&self, id: &str) -> String {
        let mut id: usize = id.parse().unwrap();
        let mut text = String::new();
        while let Some((caller, frame)) = self.backtraces.get(id) {
            write!(text, " {frame}").unwrap();
            id = *caller;
        }
        text
    }
}

/// Compares everything in a golden file.
fn check(folder: &Path) {
    let golden = Golden::new(&text(folder, "golden.txt").unwrap());
    let series = read(folder, "spacetime.profile");
    let contents = &series.contents;
    let name = folder.display();
    let is_complete = golden.of("complete")[0][0] == "yes";
    let is_forked = folder.ends_with("forked");
    assert_eq!(series.damage.is_empty(), is_complete || is_forked, "{name}");

    check_snapshots(&golden, contents);
    for (line, mark) in golden.of("E").iter().zip(&contents.marks) {
        assert_eq!(line[1], mark.snapshots.to_string());
        assert_eq!(line[2].parse(), Ok(mark.time));
        assert_eq!(line[3], escaped(&mark.name));
    }
    assert_eq!(golden.of("E").len(), contents.marks.len());
    if let Some(close) = golden.of("close").first() {
        assert_eq!(close[0].parse().ok(), contents.close_time);
        assert_eq!(
            golden.of("frame_table")[0][0],
            contents.places.frames.len().to_string()
        );
    }

    let mut expected: Vec<_> = golden
        .of("P")
        .iter()
        .map(|line| {
            let number = |field: usize| line[field].parse::<u64>().unwrap();
            (number(0), Some(number(3)), golden.frames(&line[4]))
        })
        .collect();
    let with_stacks = contents
        .points
        .iter()
        .filter(|point| point.stack != NO_STACK);
    let mut found: Vec<_> = with_stacks
        .map(|point| {
            let frames = frames(contents, point.stack);
            (u64::from(point.annotation), point.at_exit, frames)
        })
        .collect();
    expected.sort();
    found.sort();
    assert!(expected == found, "the points of {name} differ");

    let locations = contents.places.locations.iter();
    let locations: HashMap<_, _> = locations
        .map(|location| ((location.address, location.is_foreign), location))
        .collect();
    for line in golden.of("F") {
        let address = u64::from_str_radix(&line[0], 16).unwrap();
        let location = locations[&(address, line[1] == "c")];
        let positions = contents.places.positions(location).iter();
        let positions: Vec<String> = positions
            .map(|position| {
                let file = String::from_utf8_lossy(contents.places.file(position));
                format!(
                    "{file}:{}:{}-{}",
                    position.line, position.start, position.end
                )
            })
            .collect();
        let positions = positions.join("|");
        assert_eq!(
            line[2],
            if positions.is_empty() {
                "-"
            } else {
                &positions
            }
        );
    }
    check_calls(&golden, contents);
    tools::check(&golden, contents);
}

fn check_snapshots(golden: &Golden, contents: &Contents) {
    assert_eq!(golden.of("S").len(), contents.snapshots.len());
    let mut live: BTreeMap<(usize, u32), (u64, u64)> = BTreeMap::new();
    let mut totals: BTreeMap<(usize, u32), u64> = BTreeMap::new();
    let annotation = |point: u32| contents.points[point as usize].annotation;
    for (i, (line, snapshot)) in golden.of("S").iter().zip(&contents.snapshots).enumerate() {
        let gc = snapshot.gc.unwrap();
        let sum = |value: fn(&super::series::Live) -> u64| -> u64 {
            snapshot.live.iter().map(value).sum()
        };
        let (blocks, words) = (sum(|live| live.blocks), sum(|live| live.words));
        let found = [
            gc.counters.minor_words,
            gc.counters.promoted_words,
            gc.counters.major_words,
            gc.counters.minor_collections,
            gc.counters.major_collections,
            gc.counters.heap_words / WORD,
            gc.counters.heap_chunks,
            gc.counters.compactions,
            gc.counters.top_heap_words / WORD,
            gc.scanned,
            gc.scanned_with_point,
            snapshot.live.len() as u64,
            blocks,
            words,
            snapshot.totals.len() as u64,
            snapshot.totals.iter().map(|(_, total)| total).sum(),
        ];
        assert_eq!(line[2].parse(), Ok(snapshot.time));
        let expected: Vec<u64> = line[3..].iter().map(|n| n.parse().unwrap()).collect();
        assert_eq!(expected, found, "snapshot {i}");
        assert_eq!(words, gc.scanned_with_point);
        for of in &snapshot.live {
            live.insert((i, annotation(of.point)), (of.blocks, of.words));
        }
        for &(point, total) in &snapshot.totals {
            totals.insert((i, annotation(point)), total);
        }
    }
    for line in golden.of("L") {
        let key = (line[0].parse().unwrap(), line[1].parse().unwrap());
        let expected = (line[2].parse().unwrap(), line[3].parse().unwrap());
        assert_eq!(live.get(&key), Some(&expected));
    }
    for line in golden.of("T") {
        let key = (line[0].parse().unwrap(), line[1].parse().unwrap());
        assert_eq!(totals.get(&key), Some(&line[2].parse().unwrap()));
    }
}

fn check_calls(golden: &Golden, contents: &Contents) {
    if golden.of("C").is_empty() {
        return;
    }
    // The original library does not see direct calls of functions without a node, nor the counts
    // of such indirect calls.
    let calls = contents.calls.iter();
    let mut found: Vec<String> = calls
        .filter(|call| call.has_node || !call.is_direct)
        .map(|call| {
            let kind = if call.is_direct { 'D' } else { 'I' };
            let count = match (contents.has_call_counts, call.has_node) {
                (false, _) => "-".to_owned(),
                (true, false) => "0".to_owned(),
                (true, true) => call.count.to_string(),
            };
            format!(
                "{kind} {count} {:x}{}",
                call.callee,
                frames(contents, call.stack)
            )
        })
        .collect();
    let lines = golden.of("C").iter();
    let mut expected: Vec<String> = lines
        .map(|line| {
            let frames = golden.frames(&line[5]);
            format!("{} {} {}{frames}", line[1], line[2], line[3])
        })
        .collect();
    found.sort();
    expected.sort();
    assert!(expected == found, "calls differ");
}

/// Prints in all modes, with the symbols that the original library found.
fn check_prints(folder: &Path) {
    let mut series = read(folder, "spacetime.profile");
    if let Some(symbols) = text(folder, "symbols.txt") {
        for line in symbols.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            set_symbol(&mut series.contents, &fields);
        }
    }
    let mut found = 0;
    for (name, mode, is_inverted) in [
        ("words", PrintMode::Words, false),
        ("blocks", PrintMode::Blocks, false),
        ("allocations-inverted", PrintMode::Allocations, true),
        ("calls", PrintMode::Calls, false),
        ("indirect-calls", PrintMode::IndirectCalls, false),
    ] {
        let Some(expected) = bytes(folder, &format!("print-{name}.txt")) else {
            continue;
        };
        found += 1;
        let mut out = Vec::new();
        let last = series.snapshots() - 1;
        series.print(mode, last, is_inverted, &mut out).unwrap();
        if out != expected {
            let (out, expected) = (
                String::from_utf8_lossy(&out),
                String::from_utf8_lossy(&expected),
            );
            for (i, (out, expected)) in out.lines().zip(expected.lines()).enumerate() {
                assert_eq!(out, expected, "line {i} of {name} in {}", folder.display());
            }
            panic!("{name} in {} has not as many lines", folder.display());
        }
    }
    assert!(found >= 3);
}

fn set_symbol(contents: &mut Contents, fields: &[&str]) {
    let [_, address, kind, symbol, positions] = fields[..] else {
        return;
    };
    let address = u64::from_str_radix(address, 16).unwrap();
    let is_foreign = kind == "c";
    let number = contents.places.number(address, is_foreign);
    if symbol != "-" {
        contents.places.locations[number as usize].symbol = Some(symbol.into());
    }
    if is_foreign && positions != "-" {
        let (file, line) =
            positions
                .rsplit_once(':')
                .map_or((positions, "0"), |(rest, columns)| {
                    if columns.contains('-') {
                        rest.rsplit_once(':').unwrap()
                    } else {
                        (rest, columns)
                    }
                });
        let line = (file.to_owned(), line.parse().unwrap());
        contents.places.locate(number as usize, &[line]);
    }
}

/// Processed files say the same as raw ones.
fn check_processed(folder: &Path) {
    let raw = read(folder, "spacetime.profile").contents;
    let processed = read(folder, "spacetime.profile.p").contents;
    assert_eq!(raw.snapshots.len(), processed.snapshots.len());
    assert_eq!(raw.has_call_counts, processed.has_call_counts);
    for (i, (a, b)) in raw.snapshots.iter().zip(&processed.snapshots).enumerate() {
        assert_eq!((a.time.to_bits(), a.gc), (b.time.to_bits(), b.gc));
        let live = |contents: &Contents| {
            let mut live: Vec<_> = contents.snapshots[i]
                .live
                .iter()
                .map(|live| {
                    let stack = contents.points[live.point as usize].stack;
                    (frames(contents, stack), live.blocks, live.words)
                })
                .collect();
            live.sort();
            live
        };
        assert!(live(&raw) == live(&processed), "snapshot {i}");
    }
    let last = raw.snapshots.len().saturating_sub(1);
    for mode in [
        PrintMode::Words,
        PrintMode::Allocations,
        PrintMode::Calls,
        PrintMode::IndirectCalls,
    ] {
        let [a, b] = [&raw, &processed].map(|contents| {
            let mut out = Vec::new();
            super::print::print(contents, mode, last, false, &mut out).unwrap();
            out
        });
        assert!(a == b, "{mode:?}");
    }
}

#[test]
fn numbers_are_those_of_the_original_libraries() {
    for name in FIXTURES {
        check(&fixture(name));
    }
}

#[test]
fn print_is_that_of_prof_spacetime() {
    for name in ["mix", "events", "old406"] {
        check_prints(&fixture(name));
    }
}

#[test]
fn processed_profiles_say_the_same() {
    for name in ["mix", "events"] {
        check_processed(&fixture(name));
    }
}

#[test]
#[ignore = "needs the reference traces"]
fn reference_profiles_have_the_numbers_of_the_original_libraries() {
    for name in REFERENCES {
        check(&reference(name));
    }
}

#[test]
#[ignore = "needs the reference traces"]
fn print_of_reference_profiles_is_that_of_prof_spacetime() {
    for name in ["small", "single", "cstubs", "threads"] {
        check_prints(&reference(name));
    }
}

#[test]
#[ignore = "needs the reference traces"]
fn processed_reference_profiles_say_the_same() {
    for name in [
        "small", "single", "none", "cstubs", "threads", "old406", "large",
    ] {
        check_processed(&reference(name));
    }
}

#[test]
#[ignore = "needs the reference traces"]
fn comparisons_are_those_of_prof_spacetime() {
    let [small, single] =
        ["small", "single"].map(|name| read(&reference(name), "spacetime.profile"));
    for (name, before, after) in [
        ("small-single.txt", &small, &single),
        ("single-small.txt", &single, &small),
    ] {
        let mut out = Vec::new();
        before.compare(after, &mut out).unwrap();
        let expected = bytes(&reference("compare"), name).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&expected)
        );
    }
}
