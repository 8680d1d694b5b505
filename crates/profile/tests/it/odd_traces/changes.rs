//! Comparisons, budgets, and the order of events.

use heapline_profile::query::{TimePoint, Window};
use heapline_profile::reports::{
    Budget, Comparison, DiffOptions, Outcome, alloc_stats, check_against, compare_files, diff,
    diff_sides,
};
use heapline_profile::{Estimator, Query, Scope, StoreOptions};
use heapline_testkit::generate;
use heapline_trace::{Block, Source, Writer};

use super::traces::{assert_finite, assert_no_null, load, odd_traces};
use super::{ALL_BY, close, for_each_scope};

#[test]
fn nothing_differs_from_itself() {
    for_each_scope(|name, scope| {
        let profile = scope.profile();
        for by in ALL_BY {
            let options = DiffOptions {
                by,
                ..DiffOptions::default()
            };
            let report = diff(scope, scope, &options);
            assert_finite(name, &report);
            assert_no_null(name, &report, &["percent"]);
            assert_eq!(report.real_changes, 0, "{name}");
            for change in report
                .rows
                .iter()
                .map(|row| &row.change)
                .chain([&report.total])
            {
                assert!(change.bytes.value.abs() < 1e-6 && !change.is_real, "{name}");
                assert!(
                    change.bytes.error < 1e-6,
                    "{name}: what is in both cancels out"
                );
            }
            // Two halves of the run.
            let half = |text| {
                let window = Window::parse(text).unwrap();
                // The empty run has no halves.
                let moments = window.moments(profile, scope.estimator());
                scope.allocated_in(moments.unwrap_or_default())
            };
            let (first, second) = (half("..50%"), half("50%.."));
            let halves = Comparison {
                scale: 2.0,
                ..Comparison::unscaled(first, second)
            };
            let report = diff_sides(&halves, &options);
            assert_finite(name, &report);
            let both = report.total.before.bytes.value + report.total.after.bytes.value / 2.0;
            close(name, both, scope.total().bytes.value);
            let rows = report
                .rows
                .iter()
                .map(|row| row.change.bytes.value)
                .sum::<f64>();
            if report.hidden_rows == 0 {
                close(name, rows, report.total.bytes.value);
            }
            for change in report.rows.iter().map(|row| &row.change) {
                assert!((0.0..=1.0).contains(&change.p_value), "{name}");
            }
        }
        assert!(compare_files(scope, scope).is_empty(), "{name}");
    });
}

/// Blocks that were not sampled may be there nevertheless, unless everything was recorded.
#[test]
fn budgets_for_what_was_not_seen_are_not_called_kept() {
    for (name, bytes) in odd_traces() {
        let profile = load(&bytes, StoreOptions::default());
        let expected = if profile.sampling().is_exact() {
            Outcome::Kept
        } else {
            Outcome::TooClose
        };
        for what in [
            "allocated",
            "peak",
            "blocks allocated",
            "blocks live at end",
        ] {
            let budget = Budget::parse(&format!("{what} where size > 99TiB < 1")).unwrap();
            let verdict = budget.check(&profile, Estimator::default());
            assert_eq!(verdict.outcome, expected, "{name}: {verdict:?}");
        }
    }
}

#[test]
fn budgets_and_alloc_stats_are_computed() {
    let budgets = Budget::parse_file(
        "allocated < 1GiB\npromoted <= 3w\npeak where size > 3 < 10\nlive at 50% > 1KiB\n\
         blocks live at end < 7\nblocks allocated where inside \"*\" >= 1",
    )
    .unwrap();
    for (name, bytes) in odd_traces() {
        let profile = load(&bytes, StoreOptions::default());
        let stats = alloc_stats(&profile);
        assert_finite(&name, &stats);
        for estimator in [Estimator::HorvitzThompson, Estimator::Count] {
            for budget in &budgets {
                let verdict = budget.check(&profile, estimator);
                assert_finite(&name, &verdict);
                assert_no_null(&name, &verdict, &["change", "before", "excess"]);
            }
            for verdict in check_against(&profile, &profile, 0.05, estimator) {
                assert_finite(&name, &verdict);
                assert!(
                    verdict.outcome != Outcome::Broken,
                    "{name}: worse than itself: {verdict:?}"
                );
            }
        }
    }
}

/// Another domain may note a promotion before the file has the allocation, or after it has the
/// collection.
#[test]
fn promotions_are_kept_whatever_the_order_of_the_file() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
        for event in order {
            let block = Block {
                length: 3,
                samples: 1,
                source: Source::Minor,
            };
            match event {
                0 => writer.alloc(0, 10, 0, block, &[], |_, _| ()),
                1 => writer.promote(1, 20, 0),
                _ => writer.collect(2, 30, 0),
            }
            .unwrap();
        }
        let profile = load(&writer.finish().unwrap(), StoreOptions::default());
        Scope::new(&profile, &Query::default(), Estimator::Count).for_each_block(|block| {
            let times = (block.allocated, block.promoted, block.collected);
            assert_eq!(times, (10, Some(20), Some(30)), "{order:?}");
        });
        let end = TimePoint::parse("25us")
            .unwrap()
            .moment(&profile, Estimator::Count);
        let major = Query::parse("heap = major").unwrap();
        let scope = Scope::new(&profile, &major, Estimator::Count);
        assert_eq!(scope.live_at(end).total().samples, 1, "{order:?}");
    }
}
