//! Times: shares, pauses, windows, stores.

use super::*;

#[test]
fn the_share_of_time_and_the_pauses_of_a_steady_run_are_exact() {
    let report = steady().report(&options(10));
    let minor = kind(&report, CollectionKind::Minor);
    assert_eq!(
        (minor.count, minor.total, minor.mean),
        (100, 0.1, Some(0.001))
    );
    let slices = kind(&report, CollectionKind::Slice);
    assert_eq!(
        (slices.count, slices.total, slices.max),
        (100, 0.2, Some(0.002))
    );
    assert_eq!(report.kinds.len(), 2);
    // A minor collection and the slice after it are one pause. The moment between them is none of the collector's work.
    assert_eq!(report.pauses.count, 100);
    assert_eq!(report.pauses.p50, Some(0.003_000_5));
    assert!((report.collector.percent - 30.0).abs() < 1e-9);
    assert_eq!(report.collector.of_seconds, 1.0);
    assert_eq!((report.from, report.to), (0.0, 1.0));
    assert_eq!((report.worst.len(), report.hidden_rows), (5, 95));
    assert_eq!(report.worst[0].pieces.len(), 2);
    assert_eq!(report.missing_collections, Some(0));
    assert!(report.stops.is_none());

    let series = &report.series;
    assert_eq!(series.times[9], 1.0);
    for point in 0..10 {
        assert!(
            (series.collector_percent[point] - 30.0).abs() < 1e-6,
            "{series:?}"
        );
        assert!((series.minor_collections[point] - 100.0).abs() < 1e-6);
        assert_eq!(series.longest_pause[point], 0.003_000_5);
    }
    let promoted: f64 = series.promoted_words.as_ref().unwrap().iter().sum();
    assert!((promoted * 0.1 - 10_000.0).abs() < 1e-6);
    let minor: f64 = series.minor_words.as_ref().unwrap().iter().sum();
    assert!((minor * 0.1 - 100_000.0).abs() < 1e-6);
}

#[test]
fn quantiles_are_lengths_that_happened() {
    let lengths = Lengths::new((1..=1000).rev().collect());
    let nanos = [
        lengths.p50,
        lengths.p90,
        lengths.p99,
        lengths.p999,
        lengths.max,
    ];
    assert_eq!(
        nanos,
        [500, 900, 990, 999, 1000].map(|n| Some(f64::from(n) / 1e9))
    );
    let one = Lengths::new(vec![7]);
    assert_eq!(
        (one.p50, one.p999, one.max),
        (Some(7e-9), Some(7e-9), Some(7e-9))
    );
    assert_eq!(Lengths::new(Vec::new()), Lengths::default());
}

#[test]
fn collections_within_finalisers_are_not_counted_twice() {
    let mut run = Run::new();
    run.reading(0, 0);
    run.minor(0, 12 * MS, 2 * MS, 1000, 10);
    run.slice(0, 20 * MS, 3 * MS);
    // Finalisers from 10 to 30 ms.
    run.work(0, CollectionKind::Finalisers, 10 * MS, 20 * MS);
    run.reading(0, 100 * MS);
    let report = run.report(&options(10));
    assert_eq!(report.collector.seconds, 0.02);
    assert_eq!(report.pauses.count, 1);
    assert_eq!(kind(&report, CollectionKind::Finalisers).total, 0.015);
    let kinds: f64 = report.kinds.iter().map(|times| times.lengths.total).sum();
    assert_eq!(kinds, 0.02);
    let worst = &report.worst[0];
    assert_eq!(
        (worst.start, worst.length, worst.pieces.len()),
        (0.01, 0.02, 3)
    );
    assert_eq!(causes(worst), [PauseCauseKind::Finalisers]);
    assert_eq!(
        report.series.collector_percent[..4],
        [0.0, 100.0, 100.0, 0.0]
    );
    // The parts of it: what is inside of finalisers is not theirs.
    let kinds: Vec<(CollectionKind, f64)> = report
        .series
        .kinds
        .iter()
        .map(|kind| (kind.kind, kind.percent.iter().sum()))
        .collect();
    assert_eq!(kinds.len(), 3);
    for (kind, expected) in [
        (CollectionKind::Minor, 20.0),
        (CollectionKind::Finalisers, 150.0),
    ] {
        let found = kinds.iter().find(|(found, _)| *found == kind).unwrap();
        assert!((found.1 - expected).abs() < 1e-6, "{kinds:?}");
    }
}

#[test]
fn collections_that_are_missing_are_told() {
    let mut run = steady();
    run.counters[0].minor_collections += 7;
    run.reading(0, 1001 * MS);
    assert_eq!(run.report(&options(10)).missing_collections, Some(7));
}

#[test]
fn a_window_has_what_happened_in_it() {
    let options = GcOptions {
        window: Some(Window::parse("0.2s..0.4s").unwrap()),
        ..options(4)
    };
    let mut run = steady();
    run.blocks(1, 0, 0, 1_000_000, None);
    let report = run.report(&options);
    assert_eq!((report.from, report.to), (0.2, 0.4));
    assert_eq!(kind(&report, CollectionKind::Minor).count, 20);
    assert!((report.collector.percent - 30.0).abs() < 1e-6);
    let words = report.words.unwrap();
    assert_eq!((words.minor, words.promoted), (20_000, 2000));
    assert_eq!(report.counts.unwrap().minor_collections, 20);
    assert_eq!(report.audit, None);
    assert!(
        report
            .worst
            .iter()
            .all(|pause| (0.2..0.4).contains(&pause.start))
    );
    assert!((report.series.minor_collections[0] - 100.0).abs() < 1e-6);

    let outside = Window::parse("20s..30s").unwrap();
    let profile = run.profile();
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let options = GcOptions {
        window: Some(outside),
        ..options
    };
    assert!(gc(&scope, &options).is_err());
}

#[test]
fn an_indexed_profile_has_the_same_report() {
    use crate::store::memory_storage;
    use crate::store::{Index, MemoryLimit};
    let mut run = steady();
    run.blocks(100, 0, 0, 15_000, Some(16_500));
    let profile = run.profile();
    let storage = profile
        .write_index(b"trace", &[], || (memory_storage())())
        .unwrap();
    let len = storage.append(&[]).unwrap();
    let limit = MemoryLimit {
        bytes: 64 << 20,
        create: memory_storage(),
    };
    let indexed = Index::open(storage, len).unwrap().profile(limit).unwrap();
    assert_eq!(report(&indexed, &options(10)), run.report(&options(10)));
    assert!(indexed.failure().is_none());
}

#[test]
fn a_profile_that_grows_has_the_collections_so_far() {
    let whole = steady();
    let mut store = Store::new(whole.header(), StoreOptions::default());
    let mut batch = Batch::default();
    let mut reports = Vec::new();
    for part in whole.batch.collections().chunks(41) {
        batch.clear();
        for collection in part {
            batch.collection(*collection);
        }
        store.append(&batch);
        let profile = store.snapshot(Damage::default(), InputSize::default());
        reports.push(report(&profile, &options(10)));
    }
    assert!(reports.is_sorted_by(|a, b| a.pauses.count < b.pauses.count));
    assert!(reports[0].words.unwrap().to < 0.3);
    assert_eq!(reports.last(), Some(&whole.report(&options(10))));
}
