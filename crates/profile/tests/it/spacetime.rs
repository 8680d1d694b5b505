//! Spacetime profiles: snapshots in place of blocks.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{self, SeriesOptions, SummaryOptions};
use heapline_profile::{Estimator, Moment, Profile, Query, Scope, StoreOptions};
use heapline_testkit as testkit;

fn folder(name: &str) -> PathBuf {
    testkit::fixtures::folder().join("spacetime").join(name)
}

fn bytes(path: &Path) -> Vec<u8> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut file, _) = heapline_trace::decompressed(Box::new(file)).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn load(bytes: Vec<u8>) -> Result<Profile, heapline_model::Error> {
    let mut reader = Reader::new(Cursor::new(bytes), Options::default())?;
    Profile::load(&mut reader, StoreOptions::default())
}

fn profile(name: &str) -> Profile {
    load(bytes(&folder(name).join("spacetime.profile.zst"))).unwrap()
}

fn everything(profile: &Profile) -> Scope<'_> {
    Scope::new(profile, &Query::default(), Estimator::default())
}

/// Live bytes and blocks at each snapshot, and bytes allocated by then, against the lines of the
/// original libraries: `S` has the counters of the garbage collector from the third field on.
#[test]
#[expect(clippy::float_cmp, reason = "they are exact")]
fn sums_at_snapshots_are_those_of_the_file() {
    for name in ["mix", "events", "old406", "killed"] {
        let golden = bytes(&folder(name).join("golden.txt.gz"));
        let golden = String::from_utf8(golden).unwrap();
        let lines = golden.lines().filter(|line| line.starts_with("S\t"));
        let lines: Vec<Vec<f64>> = lines
            .map(|line| {
                line.split('\t')
                    .skip(1)
                    .map(|n| n.parse().unwrap())
                    .collect()
            })
            .collect();
        let profile = profile(name);
        let scope = everything(&profile);
        assert_eq!(profile.snapshots().len(), lines.len(), "{name}");
        for (i, (line, &(moment, snapshot))) in lines.iter().zip(profile.snapshots()).enumerate() {
            assert_eq!(snapshot.live_bytes as f64, 8.0 * line[12]);
            let live = scope.live_at(moment).total();
            assert_eq!(
                live.bytes.value,
                8.0 * line[12],
                "live bytes of {name} at {i}"
            );
            assert_eq!(live.blocks.value, line[15], "live blocks of {name} at {i}");
            assert_eq!(live.bytes.variance, 0.0);
            let [minor, promoted, major] = [line[3], line[4], line[5]];
            let by_gc = minor + major - promoted;
            let allocated = scope.allocated_in((Moment::default(), moment)).total();
            assert_eq!(
                allocated.bytes.value,
                8.0 * line[18].max(by_gc),
                "allocated in {name} at {i}"
            );
        }
        assert!(profile.damage().is_empty() != (name == "killed"));
    }
}

/// Memory that was allocated but never seen alive has no number of blocks.
#[test]
fn allocated_blocks_are_not_known() {
    let profile = profile("mix");
    let scope = everything(&profile);
    assert!(scope.total().blocks.value.is_nan());
    let overview = reports::info(&profile);
    assert!(overview.blocks_allocated.value.is_nan());
    assert_eq!(overview.snapshots.len(), 21);
    // All that was allocated by the last snapshot is live, or freed.
    let summary = reports::summary(&scope, &SummaryOptions::default());
    let (last, _) = *profile.snapshots().last().unwrap();
    let by_then = scope.allocated_in((Moment::default(), last)).total();
    let left = by_then.bytes.value - summary.collected.bytes.value;
    assert!((left - summary.live_at_end.bytes.value).abs() < 0.5);
    assert!(by_then.bytes.value < summary.allocated.bytes.value);
    assert_eq!(overview.bytes.collected, summary.collected.bytes);
    assert_eq!(overview.bytes.live_at_end, summary.live_at_end.bytes);
}

/// A program that ran for less than the interval of snapshots.
#[test]
fn without_a_snapshot_live_and_freed_memory_are_not_known() {
    let whole = bytes(&folder("mix").join("spacetime.profile.zst"));
    let mut cuts = (29..whole.len()).step_by(97);
    let profile = cuts
        .find_map(|cut| load(whole[..cut].to_vec()).ok())
        .unwrap();
    assert!(profile.snapshots().is_empty());
    let summary = reports::summary(&everything(&profile), &SummaryOptions::default());
    for figures in [summary.collected, summary.live_at_peak, summary.live_at_end] {
        assert!(figures.bytes.value.is_nan(), "{figures:?}");
    }
    let overview = reports::info(&profile);
    assert!(overview.bytes.collected.value.is_nan());
    assert!(overview.bytes.live_at_end.value.is_nan());
}

/// Between snapshots the last one counts: no value that a series shows was never in a snapshot.
#[test]
fn series_step_from_snapshot_to_snapshot() {
    let profile = profile("mix");
    let options = SeriesOptions {
        points: Some(1000),
        ..SeriesOptions::default()
    };
    let series = reports::series(&everything(&profile), &options).unwrap();
    let known: Vec<f64> = profile
        .snapshots()
        .iter()
        .map(|(_, snapshot)| snapshot.live_bytes as f64)
        .collect();
    let line = &series.total;
    for value in line.values.iter().chain(&line.low).chain(&line.high) {
        let is_known = known.iter().any(|known| (known - value).abs() < 0.5);
        assert!(*value < 0.5 || is_known, "{value}");
    }
    assert!(series.error.iter().all(|&error| error == 0.0));
}

/// A program that was compiled without `-g` has addresses in place of lines.
#[test]
fn functions_without_positions_are_addresses() {
    let profile = load(bytes(&folder("without-positions.profile"))).unwrap();
    assert!(profile.damage().is_empty());
    let functions = profile.symbols().functions();
    assert!(
        functions
            .iter()
            .any(|function| function.name == "caml_program")
    );
    assert!(
        functions
            .iter()
            .any(|function| function.name.ends_with(" [C]"))
    );
    assert!(
        functions
            .iter()
            .all(|function| !function.name.contains(".ml"))
    );
}

/// Events of the program are kept in their order.
#[test]
fn events_are_kept() {
    let profile = profile("events");
    assert!(!profile.marks().is_empty());
    let names: Vec<&str> = profile.marks().iter().map(|mark| &*mark.name).collect();
    assert!(names.contains(&"café ✓"), "{names:?}");
}

/// A file that is cut off anywhere gives all snapshots before the cut.
#[test]
fn cut_files_give_all_whole_snapshots() {
    let whole = bytes(&folder("mix").join("spacetime.profile.zst"));
    let all = load(whole.clone()).unwrap();
    let mut last = 0;
    for cut in (29..whole.len()).step_by(997) {
        let profile = load(whole[..cut].to_vec()).unwrap();
        let snapshots = |profile: &Profile| -> Vec<_> {
            let snapshots = profile.snapshots().iter();
            snapshots.map(|&(_, snapshot)| snapshot).collect()
        };
        let found = snapshots(&profile);
        assert!(found.len() >= last);
        last = found.len();
        assert_eq!(found, snapshots(&all)[..last]);
        assert!(profile.damage().is_truncated(), "at {cut}");
    }
    assert_eq!(last, all.snapshots().len());
}

/// Damage inside of a snapshot costs that snapshot only.
#[test]
fn a_damaged_snapshot_does_not_cost_the_others() {
    let whole = bytes(&folder("mix").join("spacetime.profile.zst"));
    let all = load(whole.clone()).unwrap();
    // A header of a value in the middle of the snapshots, and a byte after it.
    let kind = [0x84, 0x95, 0xa6, 0xbe, 0, 0, 0, 1];
    let starts: Vec<usize> = (0..whole.len() - 8)
        .filter(|&at| whole[at..at + 8] == kind)
        .collect();
    for offset in [0, 21, 45, 60] {
        let mut damaged = whole.clone();
        let at = starts[10] + offset;
        damaged[at] ^= 0xff;
        let profile = load(damaged).unwrap();
        let left = profile.snapshots().len();
        assert!(left + 1 >= all.snapshots().len(), "{left} at {offset}");
        assert!(!profile.damage().is_empty() || left == all.snapshots().len());
    }
}

/// Loads 10,000 damaged profiles. None of them may panic or take forever.
#[test]
fn mutated_profiles_are_read_or_refused() {
    let mix = bytes(&folder("mix").join("spacetime.profile.zst"));
    // Without the table of positions it is small, so damage hits what matters.
    let inputs = [
        bytes(&folder("events").join("spacetime.profile.p")),
        bytes(&folder("without-positions.profile")),
        mix,
    ];
    let mut state = 7_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below.max(1)
    };
    let mut read = 0;
    for i in 0..10_000 {
        let input = &inputs[if i % 20 == 0 { 2 } else { i % 2 }];
        let mut bytes = input.clone();
        for _ in 0..=random(4) {
            let at = random(bytes.len());
            match random(6) {
                0 => bytes[at] ^= 1 << random(8),
                1 => bytes[at] = u8::try_from(random(256)).unwrap(),
                2 => bytes[at] = [0x04, 0x08, 0x11, 0x80, 0xa0, 0xb0][random(6)],
                3 => bytes.truncate(at.max(40)),
                4 => {
                    let end = (at + random(64)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    let from = random(bytes.len());
                    let piece = bytes[from..(from + random(64)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        if let Ok(profile) = load(bytes) {
            read += 1;
            let scope = everything(&profile);
            let total = scope.total().bytes.value;
            assert!(total >= 0.0);
            assert!(scope.at_end().total().bytes.value <= total);
        }
    }
    assert!(read > 1000, "{read}");
}
