//! Words as they were counted, and as samples have them.

use super::*;
use crate::estimate::Estimate;

#[test]
fn words_are_those_between_the_first_and_the_last_reading() {
    let mut run = Run::new();
    // The program ran for a while before the recording.
    run.counters[0] = CollectorCounters {
        minor_words: 5_000,
        promoted_words: 500,
        major_words: 900,
        ..CollectorCounters::default()
    };
    run.reading(0, 0);
    run.minor(0, 10 * MS, MS, 1000, 200);
    run.counters[0].major_words += 3000;
    run.slice(0, 20 * MS, MS);
    run.minor(0, 30 * MS, MS, 1000, 100);
    run.counters[0].minor_words += 17;
    run.reading(0, 100 * MS);
    let report = run.report(&options(10));
    let words = report.words.unwrap();
    assert_eq!(
        (words.minor, words.promoted, words.direct),
        (2017, 300, 3000)
    );
    assert_eq!(words.allocated, 5017);
    assert!(words.is_complete);
    assert_eq!((words.from, words.to), (0.0, 0.1));
    assert_eq!(words.per_second(words.promoted), Some(3000.0));
    let counts = report.counts.unwrap();
    assert_eq!((counts.minor_collections, counts.compactions), (2, 0));
    // Of the longest pauses, the first one is the minor collection at 10 ms.
    let slice = &report.worst[1];
    assert_eq!(slice.pieces[0].kind, CollectionKind::Slice);
    assert_eq!(
        (slice.direct_words, slice.promoted_words),
        (Some(3000), Some(0))
    );
    assert_eq!(report.worst[2].allocated_words, Some(1000));
}

#[test]
fn words_of_a_program_that_was_killed_are_known_up_to_the_last_collection() {
    let mut run = Run::new();
    run.reading(0, 0);
    run.minor(0, 10 * MS, MS, 1000, 200);
    run.blocks(1, 0, 0, 100_000, None);
    let words = run.report(&options(10)).words.unwrap();
    assert_eq!(
        (words.minor, words.is_complete, words.to),
        (1000, false, 0.011)
    );
}

#[test]
fn a_domain_that_begins_in_the_slot_of_another_is_counted_too() {
    let mut run = Run::new();
    run.reading(0, 0);
    run.reading(1, 10 * MS);
    run.minor(1, 20 * MS, MS, 1000, 100);
    run.reading(1, 40 * MS);
    run.counters[1] = CollectorCounters {
        minor_words: 5,
        promoted_words: 0,
        major_words: 0,
        ..run.counters[1]
    };
    run.reading(1, 60 * MS);
    run.minor(1, 70 * MS, MS, 3000, 10);
    run.reading(1, 80 * MS);
    run.reading(0, 100 * MS);
    let report = run.report(&options(10));
    let words = report.domains[1].words.unwrap();
    assert_eq!(
        (words.minor, words.promoted, words.is_complete),
        (4000, 110, true)
    );
    // From 10 to 40 ms, and from 60 to 80 ms.
    assert_eq!(report.domains[1].collector.of_seconds, 0.05);
    assert_eq!(report.collector.of_seconds, 0.15);
    assert!(report.words.unwrap().is_complete);
}

#[test]
fn counters_that_cannot_be_are_unknown_and_not_wrong() {
    let mut run = steady();
    run.counters[0].minor_words = 3;
    run.slice(0, 1100 * MS, MS);
    let report = run.report(&options(10));
    assert_eq!((report.words, report.counts), (None, None));
    assert_eq!(report.missing_collections, None);
    assert_eq!(report.series.minor_words, None);
    assert_eq!(report.audit, None);
    assert_eq!(report.pauses.count, 101);

    // More promoted than the major heap grew.
    let mut run = Run::new();
    run.reading(0, 0);
    run.counters[0].promoted_words = 1000;
    run.reading(0, 100 * MS);
    assert_eq!(run.report(&options(10)).words, None);
}

#[test]
fn samples_that_agree_with_the_runtime_are_said_to_agree() {
    let run = |words: u64, promoted: u64| {
        let mut run = Run::new();
        run.reading(0, 0);
        run.blocks(1000, 0, 0, 5_000, Some(11_000));
        run.blocks(1000, 1, 0, 5_000, None);
        run.minor(0, 10 * MS, MS, 0, 0);
        run.minor(0, 20 * MS, MS, words, promoted);
        run.reading(0, 100 * MS);
        run
    };
    let audit = run(22_000, 11_000).report(&options(10)).audit.unwrap();
    assert_eq!(audit.minor.counted, 176_000.0);
    assert_eq!(audit.minor.sampled.value, 176_000.0);
    assert_eq!(audit.promoted.unwrap().sampled.value, 88_000.0);
    assert!(!audit.disagrees);
    // Every block is known here, so that 1 % less is a difference.
    let audit = run(22_220, 11_000).report(&options(10)).audit.unwrap();
    assert!(audit.minor.disagrees && audit.disagrees && !audit.direct.disagrees);
    let audit = run(22_000, 10_000).report(&options(10)).audit.unwrap();
    assert!(audit.promoted.unwrap().disagrees && !audit.minor.disagrees);
    // Samples one in a hundred words: the same blocks stand for more, and 1 % is no difference.
    let mut sampled = run(211_500, 105_800);
    sampled.rate = 0.01;
    let audit = sampled.report(&options(10)).audit.unwrap();
    let difference = (audit.minor.counted - audit.minor.sampled.value) / audit.minor.counted;
    assert!(difference.abs() > 0.005 && !audit.disagrees, "{audit:?}");
    // No samples of many words.
    let mut none = Run::new();
    none.reading(0, 0)
        .minor(0, 10 * MS, MS, 1_000_000, 0)
        .reading(0, 100 * MS);
    none.rate = 1e-4;
    assert!(none.report(&options(10)).audit.unwrap().minor.disagrees);
    none.rate = 1e-6;
    assert!(!none.report(&options(10)).audit.unwrap().minor.disagrees);
}

fn summary_of(run: &Run, query: &str) -> crate::reports::Summary {
    let profile = run.profile();
    let scope = Scope::new(
        &profile,
        &Query::parse(query).unwrap(),
        Estimator::default(),
    );
    crate::reports::summary(&scope, &crate::reports::SummaryOptions::default())
}

#[test]
fn totals_are_those_that_the_runtime_counted() {
    let mut run = Run::new();
    run.rate = 0.01;
    run.reading(0, 0);
    run.blocks(1000, 0, 0, 5_000, Some(11_000));
    run.minor(0, 10 * MS, MS, 105_000, 105_000);
    run.counters[0].major_words += 2_000;
    run.reading(0, 100 * MS);
    let summary = summary_of(&run, "");
    let counted = summary.counted.unwrap();
    assert_eq!(counted.allocated, Estimate::exact(107_000.0 * 8.0));
    assert_eq!(
        (counted.minor, counted.direct, counted.promoted),
        (840_000.0, 16_000.0, 840_000.0)
    );
    // What samples tell is still there.
    assert!(summary.allocated.bytes.error > 0.0);
    // 2,000 words on the major heap at a rate of 1 in 100 cannot all be missed.
    assert!(counted.audit.unwrap().direct.disagrees);
    assert!(
        summary_of(&run, "promoted").counted.is_some(),
        "every block is"
    );
    assert_eq!(summary_of(&run, "size > 1MiB").counted, None);

    // Memory outside of the heaps is not counted, and has its error.
    let birth = Birth {
        size: 4_000,
        samples: 5,
        space: Space::External,
        ..Birth::default()
    };
    run.batch
        .birth(20_000, 0, 1_000_000, birth, [LocationId(2)].into_iter());
    let counted = summary_of(&run, "").counted.unwrap();
    let outside = counted.allocated.value - 856_000.0;
    assert!((outside - counted.external.value).abs() < 1e-6, "{outside}");
    assert!(counted.external.value > 4_000.0 && counted.external.error > 0.0);
    assert_eq!(counted.allocated.error, counted.external.error);
    assert_eq!(crate::reports::info(&run.profile()).counted, Some(counted));

    // After the last reading of a domain its minor heap is emptied, which allocates nothing.
    run.slice(0, 110 * MS, MS);
    assert_eq!(summary_of(&run, "").counted, Some(counted));

    // Nothing is exact if the end was not recorded.
    run.counters[0].minor_words += 10;
    run.slice(0, 120 * MS, MS);
    assert_eq!(summary_of(&run, "").counted, None);
}

#[test]
fn a_collector_that_takes_much_time_is_a_finding() {
    use crate::reports::TraceFindingKind;
    let found = |run: &mut Run| {
        run.blocks(10, 0, 0, 10, None);
        let findings = summary_of(run, "").findings.into_iter();
        let mut found = findings.filter(|found| found.kind == TraceFindingKind::Collector);
        found.next().map(|found| text(&found.sentence))
    };
    let sentence = found(&mut steady()).unwrap();
    assert!(
        sentence.starts_with(
            "The garbage collector takes 30.0 % of the time; its longest pause is 0.0030005 s at "
        ),
        "{sentence}"
    );
    // A fifth of the time is much, a tenth is not.
    let mut run = Run::new();
    run.reading(0, 0);
    for i in 0..100 {
        run.minor(0, i * 10 * MS + 5 * MS, MS, 1000, 100);
    }
    run.reading(0, 1000 * MS);
    assert_eq!(found(&mut run), None);
    run.slice(0, 1100 * MS, 120 * MS);
    run.reading(0, 2000 * MS);
    assert!(found(&mut run).is_some());
    // A program that ran for a moment did not spend much time in anything.
    let mut run = Run::new();
    run.reading(0, 0)
        .minor(0, MS, 10 * MS, 1000, 100)
        .reading(0, 12 * MS);
    assert_eq!(found(&mut run), None);
}
