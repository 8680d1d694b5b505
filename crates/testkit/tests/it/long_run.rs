//! Traces of long runs are intact, are what their totals say, and come in the order that was asked for.

use std::collections::HashMap;

use heapline_testkit::long_run::{Length, LongRun, LongRunTotals};
use heapline_testkit::{OwnedTrace, plain};
use heapline_trace::{Event, Options, Reader};

fn written(run: LongRun) -> (Vec<u8>, LongRunTotals) {
    let mut bytes = Vec::new();
    let totals = run.write(&mut bytes).unwrap();
    assert_eq!(totals.bytes, bytes.len() as u64);
    (bytes, totals)
}

fn of(allocations: u64, domains: u16, seed: u64) -> LongRun {
    LongRun {
        seed,
        length: Length::Allocations(allocations),
        domains,
    }
}

/// Numbers of a trace as the real reader returns it.
#[derive(Debug, Default)]
struct Read {
    totals: LongRunTotals,
    /// Events whose time is before that of an event that came earlier.
    late: u64,
    /// The most that an event is late, in microseconds.
    delay: u64,
    /// Deaths of blocks that had not been allocated yet.
    early_deaths: u64,
    /// The depths of the shallowest and the deepest stack.
    depths: (usize, usize),
    stacks: usize,
}

/// Reads a trace; every block must be allocated, promoted and collected once at most, and in this
/// order of time.
fn read(bytes: &[u8]) -> Read {
    let mut reader = Reader::new(bytes, Options::new().strict(true)).unwrap();
    let mut found = Read {
        depths: (usize::MAX, 0),
        ..Read::default()
    };
    let mut stacks: HashMap<Vec<u64>, u64> = HashMap::new();
    let mut blocks: HashMap<u64, [Option<u64>; 3]> = HashMap::new();
    let mut latest = 0;
    reader
        .for_each(|event, locations| {
            let time = event.time();
            if time < latest {
                found.late += 1;
                found.delay = found.delay.max(latest - time);
            }
            latest = latest.max(time);
            let block = blocks.entry(event.id()).or_default();
            let (kind, count) = match event {
                Event::Alloc(_) => (0, &mut found.totals.allocations),
                Event::Promote(_) => (1, &mut found.totals.promotions),
                Event::Collect(_) => (2, &mut found.totals.collections),
            };
            *count += 1;
            assert_eq!(block[kind].replace(time), None, "twice: {event:?}");
            found.early_deaths += u64::from(kind == 2 && block[0].is_none());
            if let Event::Alloc(alloc) = event {
                let codes: Vec<u64> = alloc
                    .stack
                    .frames()
                    .iter()
                    .map(|&id| locations.code(id))
                    .collect();
                let (min, max) = found.depths;
                found.depths = (min.min(codes.len()), max.max(codes.len()));
                *stacks.entry(codes).or_default() += 1;
            }
        })
        .unwrap();
    assert!(reader.damage().is_empty());
    assert!((reader.info().sample_rate - 1e-4).abs() < 1e-9);
    for (id, times) in blocks {
        let times: Vec<u64> = times.into_iter().flatten().collect();
        assert!(times.is_sorted(), "block {id}: {times:?}");
    }
    found.stacks = stacks.len();
    found.totals.bytes = bytes.len() as u64;
    found.totals.duration = latest;
    found
}

#[test]
fn a_seed_decides_the_trace() {
    for domains in [1, 3] {
        let (first, totals) = written(of(50_000, domains, 7));
        assert_eq!((first.clone(), totals), written(of(50_000, domains, 7)));
        assert_ne!(first, written(of(50_000, domains, 8)).0);
    }
}

#[test]
fn totals_are_what_the_trace_has() {
    for domains in [1, 2, 4] {
        let (bytes, totals) = written(of(300_000, domains, 1));
        let found = read(&bytes);
        assert_eq!(found.totals, totals, "{domains} domains");
        assert_eq!(totals.allocations, 300_000);
    }
}

#[test]
fn both_readers_agree() {
    for domains in [1, 3] {
        let (bytes, _) = written(of(30_000, domains, 3));
        let plain = plain::read(&bytes).unwrap();
        assert_eq!(plain, OwnedTrace::read(&bytes[..], Options::new()).unwrap());
    }
}

#[test]
fn a_run_ends_soon_after_the_bytes_that_were_asked_for() {
    for domains in [1, 3] {
        let (bytes, _) = written(LongRun {
            length: Length::Bytes(2_000_000),
            domains,
            ..LongRun::default()
        });
        // One packet that is open for each domain, and the one that was written last.
        let most = 2_000_000 + (usize::from(domains) + 1) * 2 * 32_768;
        assert!((2_000_000..most).contains(&bytes.len()), "{}", bytes.len());
    }
}

#[test]
fn events_of_several_domains_come_late() {
    let (bytes, _) = written(of(600_000, 1, 1));
    let one = read(&bytes);
    assert_eq!((one.late, one.early_deaths), (0, 0));
    let (bytes, _) = written(of(600_000, 3, 1));
    let three = read(&bytes);
    assert!(three.late > 100_000, "{three:?}");
    assert!(three.early_deaths > 0, "{three:?}");
    // The idle domain's packets.
    assert!(
        (20_000_000..=31_000_000).contains(&three.delay),
        "{three:?}"
    );
}

#[test]
fn the_program_is_like_a_server() {
    let (bytes, totals) = written(of(400_000, 1, 5));
    let found = read(&bytes);
    let share = |count: u64| count as f64 / totals.allocations as f64;
    assert!(
        (0.9..0.99).contains(&share(totals.collections)),
        "{totals:?}"
    );
    assert!(
        (0.07..0.11).contains(&share(totals.promotions)),
        "{totals:?}"
    );
    let rate = totals.allocations as f64 / (totals.duration as f64 / 1e6);
    assert!((10_000.0..15_000.0).contains(&rate), "{rate}");
    assert!((500..5000).contains(&found.stacks), "{found:?}");
    assert!(found.depths.0 >= 5 && found.depths.1 <= 40, "{found:?}");
    assert!(found.depths.1 >= 30, "{found:?}");
}
