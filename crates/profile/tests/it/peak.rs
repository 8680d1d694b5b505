//! The peak, with and without some of the blocks, of programs whose truth is known.
#![expect(clippy::float_cmp, reason = "what is exact is to be exact")]

use heapline_formats::{Options, Reader};
use heapline_profile::query::TimeError;
use heapline_profile::query::Window;
use heapline_profile::reports::{PeakOptions, PeakReport, peak};
use heapline_profile::{Estimator, GroupBy, Profile, Query, Scope, StoreOptions};
use heapline_testkit::lives::{self, Life};
use heapline_testkit::property_config;
use proptest::prelude::*;

pub(crate) fn load(lives: &[Life], rate: f64, seed: u64) -> Profile {
    let bytes = std::io::Cursor::new(lives::trace(lives, rate, seed));
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn report(profile: &Profile, query: &str, options: &PeakOptions) -> Result<PeakReport, TimeError> {
    let query = Query::parse(query).unwrap();
    peak(&Scope::new(profile, &query, Estimator::default()), options)
}

fn without(queries: &[&str]) -> PeakOptions {
    let parse = |text: &&str| Query::parse(text).unwrap();
    PeakOptions {
        without: queries.iter().map(parse).collect(),
        ..PeakOptions::default()
    }
}

/// The most bytes that are live at a time of a window, by looking at each microsecond.
fn truth(lives: &[&Life], from: u64, to: u64) -> u64 {
    // What happens at the end of the window is not part of it.
    let live_at = |time: u64| -> u64 {
        let is_live =
            |life: &&&Life| life.birth <= time && life.death.is_none_or(|death| death > time);
        lives.iter().filter(is_live).map(|life| life.bytes).sum()
    };
    (from.saturating_sub(1)..to).map(live_at).max().unwrap_or(0)
}

/// Two caches that fill up one after another, and a constant third.
fn two_humps() -> Vec<Life> {
    let mut lives = vec![Life::new(4000, 0, &["Main.run", "Main.table"])];
    for i in 0..100 {
        let early = Life::new(160, 1000 + i, &["Main.run", "Early.add"]);
        lives.push(early.until(4000));
        let late = Life::new(
            80,
            6000 + i,
            &["Main.run", "Late.add", "Stdlib.Bytes.create"],
        );
        lives.push(late.until(9000));
    }
    lives
}

#[test]
fn the_peak_moves_when_blocks_are_removed() {
    let profile = load(&two_humps(), 1.0, 0);
    let now = report(&profile, "", &PeakOptions::default()).unwrap();
    assert_eq!(now.peak.live.bytes.value, 20_000.0);
    assert_eq!(now.peak.time, 1099e-6);
    assert_eq!(now.without, None);
    let rows: Vec<_> = now
        .rows
        .iter()
        .map(|row| {
            let without = &row.without;
            (
                &*row.label.name,
                row.live.bytes.value,
                without.peak.live.bytes.value,
                without.peak.time,
                without.saved.value,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            // Without it, the other cache is what makes the peak.
            ("Early.add", 16_000.0, 12_000.0, 6099e-6, 8000.0),
            ("Main.table", 4000.0, 16_000.0, 1099e-6, 4000.0),
        ]
    );

    let gone = report(&profile, "", &without(&["site = \"Early.add\""])).unwrap();
    assert_eq!(gone.peak, now.peak);
    let removal = gone.without.unwrap();
    assert_eq!(removal.queries, ["site = \"Early.add\""]);
    assert_eq!(removal.held.bytes.value, 16_000.0);
    assert_eq!(removal.rest, now.rows[0].without);
    assert_eq!(removal.rest.saved_percent, 40.0);
    // The rows are about the rest.
    assert_eq!(gone.rows[0].label.name, "Late.add");
    assert_eq!(gone.rows[0].live.bytes.value, 8000.0);

    let both = ["site = \"Early.add\"", "inside \"Late.add\""];
    let removal = report(&profile, "", &without(&both))
        .unwrap()
        .without
        .unwrap();
    assert_eq!(removal.rest.peak.live.bytes.value, 4000.0);
    let all = report(&profile, "", &without(&["size > 0"])).unwrap();
    let removal = all.without.unwrap();
    assert_eq!(removal.rest.peak.live.bytes.value, 0.0);
    assert_eq!(removal.rest.saved_percent, 100.0);
    assert!(all.rows.is_empty());
}

#[test]
fn the_peak_of_a_selection_or_window_is_its_own() {
    let profile = load(&two_humps(), 1.0, 0);
    let late = report(&profile, "inside \"Late.add\"", &PeakOptions::default()).unwrap();
    assert_eq!(
        (late.peak.live.bytes.value, late.peak.time),
        (8000.0, 6099e-6)
    );
    let window = |text: &str| {
        let options = PeakOptions {
            window: Some(Window::parse(text).unwrap()),
            by: GroupBy::Module,
            ..PeakOptions::default()
        };
        report(&profile, "", &options)
    };
    let part = window("5ms..10ms").unwrap();
    // The run ends before.
    assert_eq!((part.from, part.to), (0.005, 0.009));
    assert_eq!(
        (part.peak.live.bytes.value, part.peak.time),
        (12_000.0, 6099e-6)
    );
    // Between the caches nothing happens, and memory is what it was before.
    let quiet = window("4.5ms..5ms").unwrap();
    assert_eq!(quiet.peak.live.bytes.value, 4000.0);
    assert_eq!(
        window("0s..1.05ms").unwrap().peak.live.bytes.value,
        12_000.0
    );
    assert!(matches!(window("1h..2h"), Err(TimeError::EmptyWindow(..))));
}

/// A query about heaps removes a part of a block's life.
#[test]
fn stays_on_a_heap_can_be_removed() {
    let lives = [
        Life::new(800, 100, &["M.f"]).promoted(500).until(900),
        Life::new(160, 600, &["M.g"]).until(700),
    ];
    let profile = load(&lives, 1.0, 0);
    let rest = |queries: &[&str], selected: &str| {
        let report = report(&profile, selected, &without(queries)).unwrap();
        let peak = report.without.unwrap().rest.peak;
        (peak.live.bytes.value, peak.time)
    };
    assert_eq!(rest(&["heap = major"], ""), (800.0, 100e-6));
    assert_eq!(rest(&["heap = minor"], ""), (800.0, 500e-6));
    assert_eq!(rest(&["heap = minor", "heap = major"], "").0, 0.0);
    assert_eq!(rest(&["site = \"M.f\""], "heap = minor"), (160.0, 600e-6));
    assert_eq!(rest(&["promoted"], ""), (160.0, 600e-6));
}

proptest! {
    #![proptest_config(property_config(64))]

    #[test]
    fn peaks_are_those_of_each_microsecond(
        blocks in proptest::collection::vec((2_u64..40, 1_u64..300, proptest::option::of(1_u64..300), 0_usize..3), 1..60),
        from in 0_u64..300,
        length in 1_u64..300,
    ) {
        const NAMES: [&str; 3] = ["A.f", "B.f", "C.f"];
        let lives: Vec<Life> = blocks
            .iter()
            .map(|&(words, birth, lifetime, name)| Life {
                death: lifetime.map(|lifetime| birth + lifetime),
                ..Life::new(words * 8, birth, &[NAMES[name]])
            })
            .collect();
        let profile = load(&lives, 1.0, 0);
        let to = from + length;
        let options = PeakOptions {
            window: Some(Window::parse(&format!("{from}us..{to}us")).unwrap()),
            ..without(&["site = \"B.f\""])
        };
        let report = report(&profile, "", &options).unwrap();
        let check = |found: f64, lives: &[&Life]| {
            prop_assert_eq!(found, truth(lives, from, to) as f64);
            Ok(())
        };
        let others = |name: &str| lives.iter().filter(|life| life.stack[0] != name).collect::<Vec<_>>();
        check(report.peak.live.bytes.value, &lives.iter().collect::<Vec<_>>())?;
        let removal = report.without.as_ref().unwrap();
        check(removal.rest.peak.live.bytes.value, &others("B.f"))?;
        for row in &report.rows {
            let rest = others("B.f").into_iter().filter(|life| life.stack[0] != row.label.name);
            check(row.without.peak.live.bytes.value, &rest.collect::<Vec<_>>())?;
        }
    }
}

/// Intervals of what is saved contain the truth, also where the peak moves.
#[test]
fn savings_of_sampled_programs_have_honest_errors() {
    const RUNS: u64 = 200;
    let mut lives = Vec::new();
    for i in 0..4000 {
        lives.push(Life::new(80, 1000 + i % 100, &["Early.add"]).until(4000));
    }
    for i in 0..2500 {
        lives.push(Life::new(80, 6000 + i % 100, &["Late.add"]).until(9000));
    }
    let mut within = 0;
    for seed in 0..RUNS {
        let profile = load(&lives, 0.01, seed);
        let report = report(&profile, "", &without(&["site = \"Early.add\""])).unwrap();
        let saved = report.without.unwrap().rest.saved;
        within += u64::from((saved.low..=saved.high).contains(&(1500.0 * 80.0)));
    }
    // 95 % and three standard errors.
    assert!((180..=199).contains(&within), "{within} of {RUNS}");
}
