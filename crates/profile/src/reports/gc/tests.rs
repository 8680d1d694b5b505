#![expect(clippy::float_cmp, reason = "what is exact is to be exact")]

use heapline_model::{
    Batch, Birth, Capabilities, Collection, CollectorCounters, Damage, Frame, Header, InputSize,
    LocationId, Phase, Runtime, Scheme, Space,
};
use proptest::prelude::*;

use super::*;
use crate::estimate::Estimate;
use crate::query::Query;
use crate::reports::Phrase;
use crate::sampling::Estimator;
use crate::store::{Store, StoreOptions};
use crate::testing::exact_header;

const MS: u64 = 1_000_000;

/// A program whose collections are described one after another.
struct Run {
    batch: Batch,
    /// By lane.
    counters: Vec<CollectorCounters>,
    rate: f64,
    blocks: u64,
}

impl Run {
    fn new() -> Self {
        let mut batch = Batch::default();
        for (id, name) in [
            (0, &b"Parse.build"[..]),
            (1, b"Cache.add"),
            (2, b"Main.run"),
        ] {
            let frame = Frame {
                file: b"parse.ml",
                name,
                line: 10 + id,
                ..Frame::UNKNOWN
            };
            batch.define(LocationId(id), 0x1000 + u64::from(id), [frame]);
        }
        Self {
            batch,
            counters: vec![CollectorCounters::default(); 4],
            rate: 1.0,
            blocks: 0,
        }
    }

    fn work(&mut self, lane: u16, kind: CollectionKind, start: u64, length: u64) -> &mut Self {
        let phase = (kind == CollectionKind::Slice).then_some(Phase::Mark);
        let counters = Some(self.counters[usize::from(lane)]);
        self.batch.collection(Collection {
            lane,
            kind,
            start,
            length,
            phase,
            counters,
        });
        self
    }

    fn reading(&mut self, lane: u16, time: u64) -> &mut Self {
        self.work(lane, CollectionKind::Reading, time, 0)
    }

    fn slice(&mut self, lane: u16, start: u64, length: u64) -> &mut Self {
        self.work(lane, CollectionKind::Slice, start, length)
    }

    /// A minor collection after so many words were allocated on the minor heap, which promotes some of them.
    fn minor(
        &mut self,
        lane: u16,
        start: u64,
        length: u64,
        words: u64,
        promoted: u64,
    ) -> &mut Self {
        let counters = &mut self.counters[usize::from(lane)];
        counters.minor_words += words;
        counters.promoted_words += promoted;
        counters.major_words += promoted;
        for counters in &mut self.counters {
            counters.minor_collections += 1;
        }
        self.work(lane, CollectionKind::Minor, start, length)
    }

    /// Blocks of 10 words and a header, which live at a time on the heap of a lane. They are promoted at another time.
    fn blocks(
        &mut self,
        n: u64,
        site: u32,
        lane: u16,
        micros: u64,
        promoted: Option<u64>,
    ) -> &mut Self {
        for _ in 0..n {
            let birth = Birth {
                size: 80,
                samples: 1,
                space: Space::Minor,
                ..Birth::default()
            };
            let stack = [LocationId(2), LocationId(site)];
            self.batch
                .birth(micros, lane, self.blocks, birth, stack.into_iter());
            if let Some(time) = promoted {
                self.batch.promotion(time, lane, self.blocks);
            }
            self.blocks += 1;
        }
        self
    }

    fn header(&self) -> Header {
        Header {
            format: "memtrace",
            runtime: Runtime::OCaml {
                parameters: String::new(),
            },
            word_bytes: 8,
            scheme: Scheme::PerUnit {
                rate: self.rate,
                unit_bytes: 8,
            },
            tells: Capabilities {
                gc_parameters: true,
                ..exact_header().tells
            },
            ..exact_header()
        }
    }

    fn profile(&self) -> Profile {
        let mut store = Store::new(self.header(), StoreOptions::default());
        store.append(&self.batch);
        store.finish(Damage::default(), InputSize::default())
    }

    fn report(&self, options: &GcOptions) -> Gc {
        report(&self.profile(), options)
    }
}

fn report(profile: &Profile, options: &GcOptions) -> Gc {
    let scope = Scope::new(profile, &Query::default(), Estimator::default());
    gc(&scope, options).unwrap()
}

fn options(points: usize) -> GcOptions {
    GcOptions {
        points,
        ..GcOptions::default()
    }
}

fn kind(report: &Gc, kind: CollectionKind) -> Lengths {
    let found = report.kinds.iter().find(|times| times.kind == kind);
    found.map_or_else(Lengths::default, |times| times.lengths)
}

fn causes(pause: &WorstPause) -> Vec<PauseCauseKind> {
    pause.causes.iter().map(|cause| cause.kind).collect()
}

/// A sentence with amounts in bytes and seconds.
fn text(sentence: &[Phrase]) -> String {
    let text = |phrase: &Phrase| match phrase {
        Phrase::Text(text) | Phrase::Name(text) => text.clone(),
        Phrase::Bytes(bytes) => format!("{} B", bytes.value),
        Phrase::Percent(percent) => format!("{percent:.1} %"),
        Phrase::Seconds(seconds) => format!("{seconds} s"),
        Phrase::Count(n) => n.to_string(),
        other => format!("{other:?}"),
    };
    sentence.iter().map(text).collect()
}

/// A second with a collection each 10 ms: a minor collection of 1 ms, and a slice of 2 ms right after it.
fn steady() -> Run {
    let mut run = Run::new();
    run.reading(0, 0);
    for i in 0..100 {
        let start = i * 10 * MS + 5 * MS;
        run.minor(0, start, MS, 1000, 100);
        run.slice(0, start + MS + 500, 2 * MS);
    }
    run.reading(0, 1000 * MS);
    run
}

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

    // Nothing is exact if the end was not recorded.
    run.slice(0, 110 * MS, MS);
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
        part.iter()
            .for_each(|collection| batch.collection(*collection));
        store.append(&batch);
        let profile = store.snapshot(Damage::default(), InputSize::default());
        reports.push(report(&profile, &options(10)));
    }
    assert!(reports.is_sorted_by(|a, b| a.pauses.count < b.pauses.count));
    assert!(reports[0].words.unwrap().to < 0.3);
    assert_eq!(reports.last(), Some(&whole.report(&options(10))));
}

fn any_collection() -> impl Strategy<Value = Collection> {
    let number = || (any::<u64>(), 0..64_u32).prop_map(|(n, shift)| n >> shift);
    let small = || prop_oneof![0..200_u64, number()];
    let counters = prop::array::uniform9(small()).prop_map(|n| CollectorCounters {
        minor_words: n[0],
        promoted_words: n[1],
        major_words: n[2],
        heap_words: n[3],
        free_words: n[4],
        minor_collections: n[5],
        major_collections: n[6],
        compactions: n[7],
        forced_major_collections: n[8],
    });
    let kinds = [
        CollectionKind::Minor,
        CollectionKind::Slice,
        CollectionKind::Forced,
        CollectionKind::Finalisers,
        CollectionKind::Reading,
    ];
    (
        0..3_u16,
        prop::sample::select(kinds.to_vec()),
        small(),
        small(),
        prop::option::of(counters),
    )
        .prop_map(|(lane, kind, start, length, counters)| Collection {
            lane,
            kind,
            start,
            length,
            phase: None,
            counters,
        })
}

proptest! {
    /// Whatever a file claims, there is a report, and its numbers can be.
    #[test]
    fn any_collections_have_a_report(
        collections in prop::collection::vec(any_collection(), 1..60),
        window in prop::option::of(Just("0s..0.0001s")),
        points in 1..20_usize,
    ) {
        let mut run = Run::new();
        run.blocks(5, 0, 1, 30, Some(60));
        for collection in &collections {
            run.batch.collection(*collection);
        }
        let options = GcOptions {
            window: window.map(|window| Window::parse(window).unwrap()),
            ..options(points)
        };
        let profile = run.profile();
        prop_assume!(!profile.collections().is_empty());
        let report = report(&profile, &options);
        let share = report.collector.percent;
        prop_assert!((0.0..=100.0).contains(&share), "{}", share);
        prop_assert!(report.series.collector_percent.iter().all(|share| (0.0..=100.0).contains(share)));
        let busy: f64 = report.domains.iter().map(|domain| domain.collector.seconds).sum();
        prop_assert!((busy - report.collector.seconds).abs() <= 1e-6 * busy);
        // All work is within the pauses.
        if options.window.is_none() {
            let kinds: f64 = report.kinds.iter().map(|times| times.lengths.total).sum();
            prop_assert!((busy - kinds).abs() <= 1e-6 * busy, "{} {}", busy, kinds);
            prop_assert!(busy <= report.pauses.total * (1.0 + 1e-9));
        }
        prop_assert!(report.worst.is_sorted_by(|a, b| a.length >= b.length));
        prop_assert!(serde_json::to_string(&report).is_ok());
    }
}
