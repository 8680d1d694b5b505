//! The growth of programs whose truth is known.

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{Leak, LeakOptions, leaks};
use heapline_profile::{Estimator, GroupBy, Profile, Query, Scope, StoreOptions, TrendState};
use heapline_testkit::lives::{self, Life};

/// The row of the function that grows most.
fn leak(lives: &[Life], rate: f64, seed: u64) -> Option<Leak> {
    let bytes = std::io::Cursor::new(lives::trace(lives, rate, seed));
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    leaks(&scope, &LeakOptions::default(), None)
        .rows
        .into_iter()
        .next()
}

/// Blocks of 80 bytes that stay, one every `step` microseconds of a part of the run.
fn growing(from: u64, to: u64, step: u64) -> impl Iterator<Item = Life> {
    (from..to)
        .step_by(usize::try_from(step).unwrap())
        .map(|birth| Life::new(80, birth, &["Main.run", "Cache.add"]))
}

/// A block every millisecond that soon dies, until the end of the run.
fn others(end: u64) -> impl Iterator<Item = Life> {
    (0..=end / 1000)
        .map(|i| Life::new(160, i * 1000, &["Main.run", "Work.step"]).until(i * 1000 + 500))
}

#[test]
fn steady_growth_still_grows() {
    let program: Vec<Life> = growing(0, 1_000_000, 500)
        .chain(others(1_000_000))
        .collect();
    let trend = leak(&program, 1.0, 0).unwrap().trend;
    assert_eq!(trend.state, TrendState::Growing);
    assert_eq!(trend.pieces.len(), 1, "{trend:?}");
    let piece = trend.pieces[0];
    // 80 bytes in 500 microseconds.
    assert!((piece.rate.value - 160_000.0).abs() < 200.0, "{piece:?}");
    assert_eq!(
        (piece.from, piece.to_error, piece.rate.error),
        (0.0, 0.0, 0.0)
    );
}

#[test]
fn growth_that_ended_is_flat_since() {
    let program: Vec<Life> = growing(0, 600_000, 500).chain(others(1_000_000)).collect();
    let trend = leak(&program, 1.0, 0).unwrap().trend;
    assert_eq!(trend.state, TrendState::Flat);
    let (since, rate) = (trend.since.unwrap(), trend.rate.unwrap());
    assert!((since.time - 0.6).abs() <= since.error, "{trend:?}");
    assert!(since.error <= 0.05, "{trend:?}");
    assert!((rate.value - 160_000.0).abs() < 8000.0, "{trend:?}");
}

#[test]
fn slight_growth_after_much_is_flat() {
    // A block every 40 milliseconds is certain in an exact trace, and a twentieth of the growth since half-way.
    let program: Vec<Life> = growing(0, 600_000, 500)
        .chain(growing(600_000, 1_000_000, 40_000))
        .chain(others(1_000_000))
        .collect();
    let trend = leak(&program, 1.0, 0).unwrap().trend;
    assert_eq!(trend.state, TrendState::Flat, "{trend:?}");
    let (since, rate) = (trend.since.unwrap(), trend.rate.unwrap());
    assert!((since.time - 0.6).abs() <= since.error, "{trend:?}");
    assert!((rate.value - 160_000.0).abs() < 8000.0, "{trend:?}");
}

#[test]
fn slow_growth_after_a_cache_is_full_still_grows() {
    // The cache is full before half-way: what grows since then is slight in comparison, and yet a leak.
    let program: Vec<Life> = growing(0, 200_000, 100)
        .chain(growing(200_000, 1_000_000, 10_000))
        .chain(others(1_000_000))
        .collect();
    let trend = leak(&program, 1.0, 0).unwrap().trend;
    assert_eq!(trend.state, TrendState::Growing, "{trend:?}");
    assert!((trend.since.unwrap().time - 0.2).abs() < 0.05, "{trend:?}");
    assert!(
        (trend.rate.unwrap().value - 8000.0).abs() < 800.0,
        "{trend:?}"
    );
}

#[test]
fn growth_that_began_late_grows_since() {
    let program: Vec<Life> = growing(400_000, 1_000_000, 500)
        .chain(others(1_000_000))
        .collect();
    let trend = leak(&program, 1.0, 0).unwrap().trend;
    assert_eq!(trend.state, TrendState::Growing);
    let [before, after] = &trend.pieces[..] else {
        panic!("{trend:?}");
    };
    assert!((before.to - 0.4).abs() <= before.to_error, "{trend:?}");
    assert!((before.to - after.from).abs() < 1e-9, "{trend:?}");
    assert!((after.rate.value - 160_000.0).abs() < 8000.0, "{trend:?}");
}

#[test]
fn memory_that_goes_up_and_down_does_not_grow() {
    // Built again each 200 ms, a little larger each time, and gone in between.
    let rebuilt = (0..5).flat_map(|round| {
        let start = round * 200_000;
        growing(start, start + 150_000 + 10_000 * round, 500).map(move |life| {
            if round < 4 {
                life.until(start + 195_000)
            } else {
                life
            }
        })
    });
    let program: Vec<Life> = rebuilt.chain(others(1_000_000)).collect();
    let trend = leak(&program, 1.0, 0).unwrap().trend;
    assert_eq!(trend.state, TrendState::Uneven, "{trend:?}");
    assert_eq!((trend.since, trend.rate), (None, None));
}

/// Sampled traces: intervals contain the truth, and the end of growth is where it is.
#[test]
fn errors_of_rates_and_change_points_are_honest() {
    const RUNS: u64 = 100;
    let ends: Vec<Life> = growing(0, 600_000, 40).chain(others(1_000_000)).collect();
    let stays: Vec<Life> = growing(0, 1_000_000, 40).chain(others(1_000_000)).collect();
    let (mut rates, mut places, mut flat, mut still) = (0, 0, 0, 0);
    for seed in 0..RUNS {
        if let Some(leak) = leak(&ends, 0.005, seed)
            && let (Some(since), Some(rate)) = (leak.trend.since, leak.trend.rate)
        {
            flat += u64::from(leak.trend.state == TrendState::Flat);
            places += u64::from((since.time - 0.6).abs() <= since.error);
            rates += u64::from((rate.low..=rate.high).contains(&2e6));
        }
        let leak = leak(&stays, 0.005, seed).unwrap();
        still += u64::from(leak.trend.state == TrendState::Growing);
    }
    assert!(still >= 99, "{still}");
    assert!(flat >= 90, "{flat}");
    assert!(places >= 85, "{places}");
    assert!(rates >= 90, "{rates}");
}

/// Functions of which few grow: rows are chosen, and yet their intervals are right.
#[test]
fn intervals_of_rows_contain_the_truth_although_they_were_chosen() {
    const RUNS: u64 = 200;
    const FUNCTIONS: usize = 60;
    /// Blocks of 800 bytes by which a function grows: ten by many, ten by few, and the others not at all.
    fn growth(function: usize) -> u64 {
        match function {
            0..10 => 400,
            10..20 => 80,
            _ => 0,
        }
    }
    let names: Vec<&'static str> = (0..FUNCTIONS)
        .map(|function| &*Box::leak(format!("Site{function}.keep").into_boxed_str()))
        .collect();
    let mut program: Vec<Life> = others(1_000_000).collect();
    for (function, name) in names.iter().enumerate() {
        let blocks = |count: u64, from: u64| {
            (0..count).map(move |n| Life::new(800, from + 400_000 * n / count, &["Main.run", name]))
        };
        // As much goes as comes.
        program.extend(blocks(150, 0).map(|life| life.until(600_000)));
        program.extend(blocks(150 + growth(function), 450_000));
    }
    // By function: how often it is a row, and how often the truth is in the interval.
    let mut rows = [(0_u32, 0_u32); FUNCTIONS];
    let mut false_shares = 0.0;
    for seed in 0..RUNS {
        let bytes = std::io::Cursor::new(lives::trace(&program, 0.002, seed));
        let mut reader = Reader::new(bytes, Options::default()).unwrap();
        let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        let options = LeakOptions {
            by: GroupBy::Function,
            rows: FUNCTIONS,
            ..LeakOptions::default()
        };
        let report = leaks(&scope, &options, None);
        let mut false_rows = 0;
        for row in &report.rows {
            let function = names
                .iter()
                .position(|name| *name == row.label.name)
                .unwrap();
            let truth = (800 * growth(function)) as f64;
            rows[function].0 += 1;
            rows[function].1 += u32::from((row.growth.low..=row.growth.high).contains(&truth));
            false_rows += usize::from(truth == 0.0);
        }
        false_shares += false_rows as f64 / report.rows.len().max(1) as f64;
    }
    let covered = |functions: std::ops::Range<usize>| {
        let rows = rows[functions].iter();
        let (listed, covered) = rows.fold((0, 0), |(a, b), row| (a + row.0, b + row.1));
        (listed, f64::from(covered) / f64::from(listed))
    };
    let (all, few) = (covered(0..FUNCTIONS), covered(10..20));
    let false_share = false_shares / RUNS as f64;
    let what = format!("(rows, covered) {all:.3?}, by few {few:.3?}, false {false_share:.3}");
    println!("{what}");
    // Those that grow by few are rows in a minority of runs.
    assert!(all.0 > 2000 && (200..800).contains(&few.0), "{what}");
    assert!(all.1 >= 0.95 && few.1 >= 0.95, "{what}");
    assert!(false_share <= 0.05, "{what}");
}
