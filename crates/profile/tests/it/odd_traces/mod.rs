//! Every report on every odd trace: nothing panics, nothing is infinite, and sums are sums.

mod changes;
mod traces;
mod trees;

use heapline_profile::reports::{
    Figures, HotspotOptions, LeakOptions, Measure, SeriesOptions, SortBy, StatsOptions,
    SummaryOptions, hotspots, leaks, series, stats, summary,
};
use heapline_profile::{Estimator, GroupBy, Query, Scope, Share, StoreOptions};
use traces::{assert_finite, assert_no_null, load, odd_traces};

const ALL_BY: [GroupBy; 9] = [
    GroupBy::Site,
    GroupBy::Address,
    GroupBy::Function,
    GroupBy::File,
    GroupBy::Module,
    GroupBy::Crate,
    GroupBy::Domain,
    GroupBy::Size,
    GroupBy::Age,
];
const ALL_SORTS: [SortBy; 9] = [
    SortBy::Allocated,
    SortBy::Inclusive,
    SortBy::Peak,
    SortBy::End,
    SortBy::Blocks,
    SortBy::Size,
    SortBy::Lifetime,
    SortBy::Promoted,
    SortBy::Name,
];
const ALL_MEASURES: [Measure; 8] = [
    Measure::LiveBytes,
    Measure::LiveBlocks,
    Measure::LiveWords,
    Measure::AllocatedWords,
    Measure::AllocatedBytes,
    Measure::AllocationRate,
    Measure::PromotedBytes,
    Measure::PromotionRate,
];
const QUERIES: [&str; 5] = [
    "",
    "live at peak",
    "heap = minor",
    "heap = major",
    "size > 1TiB",
];

/// Calls `f` with every odd trace, a few queries and both estimators.
fn for_each_scope(f: impl Fn(&str, &Scope<'_>)) {
    for (name, bytes) in odd_traces() {
        let profile = load(&bytes, StoreOptions::default());
        for query in QUERIES {
            for estimator in [Estimator::HorvitzThompson, Estimator::Count] {
                let text = format!("{name}, `{query}`, {estimator:?}");
                let query = Query::parse(query).unwrap();
                f(&text, &Scope::new(&profile, &query, estimator));
            }
        }
    }
}

#[track_caller]
fn close(name: &str, a: f64, b: f64) {
    assert!(
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + 1e-6,
        "{name}: {a} and {b}"
    );
}

#[track_caller]
fn same(name: &str, a: &Figures, b: &Figures) {
    close(name, a.bytes.value, b.bytes.value);
    close(name, a.blocks.value, b.blocks.value);
    assert_eq!(a.samples, b.samples, "{name}");
}

fn sum<'a>(figures: impl IntoIterator<Item = &'a Figures>) -> Figures {
    let mut sum = Figures::default();
    for figures in figures {
        sum.bytes.value += figures.bytes.value;
        sum.blocks.value += figures.blocks.value;
        sum.samples += figures.samples;
    }
    sum
}

#[test]
fn summaries_add_up() {
    for_each_scope(|name, scope| {
        let total = scope.total();
        let options = SummaryOptions {
            by: GroupBy::Function,
            ..SummaryOptions::default()
        };
        let report = summary(scope, &options);
        assert_finite(name, &report);
        assert_no_null(name, &report, &["allocation_rate", "promotion_rate"]);
        close(name, report.allocated.bytes.value, total.bytes.value);
        let all = report.allocated.bytes.value;
        for part in [&report.promoted, &report.live_at_end, &report.live_at_peak] {
            assert!(part.bytes.value <= all * (1.0 + 1e-9), "{name}");
        }
        let gone_or_live = report.collected.bytes.value + report.live_at_end.bytes.value;
        if name.contains("heap") {
            // Blocks may also leave a heap by a promotion.
            assert!(gone_or_live <= all * (1.0 + 1e-9), "{name}");
        } else {
            close(name, gone_or_live, all);
        }
        for list in &report.lists {
            let rows = sum(list.rows.iter().map(|row| &row.figures));
            assert!(
                rows.bytes.value <= list.total.bytes.value * (1.0 + 1e-9),
                "{name}"
            );
            assert!(list.total.bytes.value <= all * (1.0 + 1e-9), "{name}");
            let percent: f64 = list.rows.iter().map(|row| row.percent).sum();
            assert!(percent <= 100.0 + 1e-6, "{name}");
            if list.hidden_rows == 0 {
                same(name, &rows, &list.total);
            }
        }
    });
}

#[test]
fn rows_of_hotspots_add_up() {
    for_each_scope(|name, scope| {
        let total = scope.total();
        for by in ALL_BY {
            for sort in ALL_SORTS {
                let name = format!("{name}, by {by:?}, sorted by {sort:?}");
                let options = HotspotOptions {
                    by,
                    sort,
                    rows: 3,
                    ..HotspotOptions::default()
                };
                let report = hotspots(scope, &options);
                assert_finite(&name, &report);
                assert_no_null(
                    &name,
                    &report,
                    &[
                        "inclusive",
                        "promoted_percent",
                        "p50",
                        "p90",
                        "p99",
                        "oldest",
                    ],
                );
                close(&name, report.total.allocated.bytes.value, total.bytes.value);
                let all = |part: fn(&heapline_profile::reports::Totals) -> &Figures| {
                    let rows = report.rows.iter().map(|row| part(&row.own));
                    same(
                        &name,
                        &sum(rows.chain([part(&report.hidden)])),
                        part(&report.total),
                    );
                };
                all(|totals| &totals.allocated);
                all(|totals| &totals.live_at_peak);
                all(|totals| &totals.live_at_end);
                for row in &report.rows {
                    let own = row.own.allocated.bytes.value;
                    for part in [row.own.live_at_peak, row.own.live_at_end] {
                        assert!(part.bytes.value <= own * (1.0 + 1e-9), "{name}");
                    }
                    if let Some(inclusive) = row.inclusive {
                        assert!(
                            own <= inclusive.bytes.value * (1.0 + 1e-9),
                            "{name}: {row:?}"
                        );
                        assert!(
                            inclusive.bytes.value <= total.bytes.value * (1.0 + 1e-9),
                            "{name}"
                        );
                    }
                }
            }
        }
    });
}

#[test]
fn lines_of_series_add_up() {
    for_each_scope(|name, scope| {
        let everything = Scope::new(scope.profile(), &Query::default(), scope.estimator());
        let peak = everything.at_peak().total().bytes.value;
        for measure in ALL_MEASURES {
            for groups in std::iter::once(None).chain(ALL_BY.map(Some)) {
                for (points, top) in [(1, 2), (7, 0), (101, 1000)] {
                    let name = format!("{name}, {measure:?}, {groups:?}, {points} points");
                    let options = SeriesOptions {
                        measure,
                        points: Some(points),
                        by: groups,
                        top,
                        ..SeriesOptions::default()
                    };
                    let report = series(scope, &options).unwrap();
                    assert_finite(&name, &report);
                    assert_no_null(&name, &report, &[]);
                    assert_eq!(report.times.len(), points, "{name}");
                    let lines = report.groups.iter().map(|group| &group.line);
                    for line in lines.clone().chain([&report.total]) {
                        for point in 0..points {
                            let value = line.values[point];
                            assert!(
                                line.low[point] <= value && value <= line.high[point],
                                "{name}"
                            );
                        }
                    }
                    for point in 0..points {
                        let total = report.total.values[point];
                        if groups.is_some() {
                            close(
                                &name,
                                lines.clone().map(|line| line.values[point]).sum(),
                                total,
                            );
                        }
                        if measure == Measure::LiveBytes {
                            assert!(
                                report.total.high[point] <= peak * (1.0 + 1e-9) + 1e-6,
                                "{name}"
                            );
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn statistics_and_leaks_add_up() {
    for_each_scope(|name, scope| {
        let total = scope.total();
        for options in [
            StatsOptions::default(),
            StatsOptions {
                segments: 1,
                bins: 1,
                ..StatsOptions::default()
            },
        ] {
            let report = stats(scope, &options);
            assert_finite(name, &report);
            for parts in [&report.segments, &report.phases] {
                let allocated = sum(parts.iter().map(|part| &part.allocated));
                close(name, allocated.bytes.value, total.bytes.value);
                assert_eq!(allocated.samples, total.samples, "{name}");
            }
            let log: f64 = report.sizes.log.iter().map(|bin| bin.bytes).sum();
            close(name, log, total.bytes.value);
            assert!(
                report.sizes.log.iter().all(|bin| bin.low < bin.high),
                "{name}"
            );
            let dead: f64 = report.lifetimes.log.iter().map(|bin| bin.bytes).sum();
            close(
                name,
                dead + report.lifetimes.alive.bytes.value,
                total.bytes.value,
            );
            let survival = &report.lifetimes.survival;
            assert!(
                survival
                    .windows(2)
                    .all(|w| w[0].age <= w[1].age && w[0].alive >= w[1].alive),
                "{name}"
            );
        }
        for by in ALL_BY {
            for tail in [0.0, 0.1, 0.5] {
                let options = LeakOptions {
                    by,
                    tail: Share(tail),
                    rows: 2,
                    ..LeakOptions::default()
                };
                let report = leaks(scope, &options, None);
                assert_finite(name, &report);
                assert_no_null(name, &report, &["since", "rate"]);
                for row in &report.rows {
                    assert!(row.growth.value > row.growth.error, "{name}: {row:?}");
                }
                let rows = sum(report.rows.iter().map(|row| &row.retained));
                let known = rows.bytes.value + report.steady.bytes.value;
                assert!(
                    known <= report.retained.bytes.value * (1.0 + 1e-9),
                    "{name}"
                );
                if report.hidden_rows == 0 {
                    close(name, known, report.retained.bytes.value);
                }
            }
        }
    });
}

#[test]
fn reports_for_pictures_are_finite() {
    use heapline_profile::query::{Pattern, TimePoint};
    use heapline_profile::reports::{
        BlocksOptions, FlameOptions, HeatmapOptions, PeakOptions, TreeOptions, blocks, flame,
        heatmap, names, peak,
    };
    for_each_scope(|name, scope| {
        let map = heatmap(scope, &HeatmapOptions { times: 5 });
        assert_finite(name, &map);
        assert_eq!(map.times.len(), 6);
        assert_eq!(map.bytes[0].len(), map.ages.len() - 1);
        let options = TreeOptions {
            min: Share(0.0),
            sites: true,
            ..TreeOptions::default()
        };
        let options = FlameOptions {
            tree: options,
            max_nodes: 100,
        };
        assert_finite(name, &flame(scope, &options));
        assert_finite(name, &names(scope, GroupBy::Function));
        let found = peak(scope, &PeakOptions::default()).unwrap();
        assert_finite(name, &found);
        assert!(
            found
                .rows
                .iter()
                .all(|row| row.without.saved.value >= -1e-6),
            "{name}"
        );
        assert_finite(name, &blocks(scope, &BlocksOptions::default()));
        for measure in ALL_MEASURES {
            let zoomed = SeriesOptions {
                measure,
                points: Some(3),
                top: 2,
                from: Some(TimePoint::Fraction(0.9)),
                to: Some(TimePoint::Peak),
                callers_of: vec![Pattern::glob("*")],
                ..SeriesOptions::default()
            };
            // There is no such window if the peak is early.
            let Ok(zoomed) = series(scope, &zoomed) else {
                continue;
            };
            assert_finite(name, &zoomed);
            assert_eq!(zoomed.times.len(), 3);
            assert_eq!(zoomed.total.values.len(), 3);
        }
    });
}
