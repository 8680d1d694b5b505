//! What the longest pauses are about.

use super::*;

#[test]
fn the_longest_pause_names_the_site_whose_blocks_it_promoted() {
    let mut run = Run::new();
    run.reading(0, 0);
    run.minor(0, 10 * MS, MS, 30_000, 11_000);
    run.blocks(1000, 1, 0, 9_000, Some(11_500));
    // Told of some time after the collection, and before the next one.
    run.blocks(300, 1, 0, 19_000, Some(25_000));
    run.blocks(9000, 0, 0, 19_000, Some(20_000));
    run.minor(0, 20 * MS, 5 * MS, 300_000, 102_300);
    run.minor(0, 30 * MS, MS, 30_000, 0);
    run.reading(0, 100 * MS);
    let report = run.report(&options(10));
    let worst = &report.worst[0];
    assert_eq!((worst.start, worst.length), (0.02, 0.005));
    assert_eq!(worst.promoted_words, Some(102_300));
    assert_eq!(worst.allocated_words, Some(300_000));
    let promoted = worst.promoted.as_ref().unwrap();
    assert_eq!(promoted.total.bytes.value, 9300.0 * 88.0);
    let names: Vec<_> = promoted.rows.iter().map(|row| &*row.label.name).collect();
    assert_eq!(names, ["Parse.build", "Cache.add"]);
    assert_eq!(
        text(&worst.causes[0].sentence),
        "Promoted 818400 B, most of it allocated by Parse.build (parse.ml:10:1)."
    );
    assert_eq!(causes(worst), [PauseCauseKind::Promotion]);
    let first = report
        .worst
        .iter()
        .find(|pause| pause.start == 0.01)
        .unwrap();
    assert_eq!(first.promoted.as_ref().unwrap().total.samples, 1000);
    // 30,000 words were allocated, and nothing promoted in a millisecond.
    let last = report
        .worst
        .iter()
        .find(|pause| pause.start == 0.03)
        .unwrap();
    assert_eq!(causes(last), [PauseCauseKind::Scanning]);
    assert_eq!(last.promoted.as_ref().unwrap().total.samples, 0);
}

#[test]
fn pauses_have_the_causes_that_counters_tell() {
    let mut run = Run::new();
    run.reading(0, 0);
    run.counters[0].heap_words = 10_000;
    run.slice(0, 10 * MS, 30 * MS);
    run.counters[0].forced_major_collections = 1;
    run.work(0, CollectionKind::Forced, 50 * MS, 20 * MS);
    run.counters[0].heap_words = 4_000;
    run.counters[0].compactions = 1;
    run.slice(0, 80 * MS, 10 * MS);
    run.reading(0, 100 * MS);
    let report = run.report(&options(10));
    let found: Vec<_> = report
        .worst
        .iter()
        .map(|pause| text(&pause.causes[0].sentence))
        .collect();
    assert_eq!(
        found,
        [
            "A slice of a major collection, which marks; the heap has 80000 B.",
            "The program asked for a whole major collection (Gc.full_major, Gc.major or Gc.compact); the heap has 80000 B.",
            "The heap was compacted, from 80000 B to 32000 B.",
        ]
    );
    let heap = report.heap.unwrap();
    assert_eq!(
        (heap.max_words, heap.max_time, heap.end_words),
        (10_000, 0.04, 4_000)
    );
    let series = report.series.heap_words.unwrap();
    assert_eq!(series[..3], [Some(0.0), Some(0.0), Some(0.0)]);
    assert_eq!((series[4], series[9]), (Some(10_000.0), Some(4_000.0)));
}

#[test]
fn a_stop_names_the_domain_that_held_up_the_others() {
    let mut run = Run::new();
    for lane in 0..3 {
        run.reading(lane, 0);
    }
    // All begin within a millisecond, but domain 2 takes longest.
    run.minor(0, 10 * MS, 3 * MS, 1000, 100);
    run.minor(1, 10 * MS + 500_000, 2 * MS, 1000, 100);
    run.minor(2, 10 * MS + 200_000, 9 * MS, 1000, 2000);
    // The others wait 8 ms for domain 1.
    run.minor(0, 50 * MS, 10 * MS, 1000, 100);
    run.minor(2, 51 * MS, 9 * MS, 1000, 100);
    run.minor(1, 58 * MS, 2 * MS, 1000, 100);
    // One that a domain has for itself is no stop.
    run.minor(0, 70 * MS, MS, 10, 1);
    for lane in 0..3 {
        run.reading(lane, 100 * MS);
    }
    let report = run.report(&options(10));
    let stops = report.stops.as_ref().unwrap();
    assert_eq!(stops.lengths.count, 2);
    assert_eq!(stops.lengths.max, Some(0.01));
    let worst = stops.worst_gathering.unwrap();
    assert_eq!(
        (worst.start, worst.gathering, worst.domains),
        (0.05, 0.008, 3)
    );
    assert_eq!((worst.arrived_last, worst.longest), (1, 0));
    let [first, second, third] = stops.domains[..] else {
        panic!("{stops:?}");
    };
    assert_eq!(
        (second.arrived_last, first.arrived_last, third.longest),
        (2, 0, 1)
    );
    assert_eq!(second.held_up, 0.0158);
    assert_eq!(second.held_up, stops.waited);

    let waiting = &report.worst[0];
    assert_eq!((waiting.domain, waiting.start), (0, 0.05));
    assert_eq!(causes(waiting), [PauseCauseKind::Waiting]);
    assert_eq!(
        text(&waiting.causes[0].sentence),
        "It waited 0.008 s for domain 1, which arrived last of 3."
    );
    assert_eq!(report.counts.unwrap().minor_collections, 7);
}
