//! Collections that cannot be.

use proptest::prelude::*;

use super::*;

fn any_collection() -> impl Strategy<Value = Collection> {
    let number = || (any::<u64>(), 0..64_u32).prop_map(|(n, shift)| n >> shift);
    let small = || prop_oneof![0..200_u64, number()];
    let counters = prop::array::uniform11(small()).prop_map(|n| CollectorCounters {
        minor_words: n[0],
        promoted_words: n[1],
        major_words: n[2],
        heap_words: n[3],
        free_words: n[4],
        minor_collections: n[5],
        major_collections: n[6],
        compactions: n[7],
        forced_major_collections: n[8],
        sampler_minor_words: n[9],
        sampler_major_words: n[10],
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
