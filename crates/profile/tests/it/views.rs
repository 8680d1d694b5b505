//! Reports for pictures: what they show is what a query of the same blocks says.

use std::path::Path;

use clap::ValueEnum as _;
use heapline_formats::{Options, Reader};
use heapline_profile::query::{Pattern, TimeError, TimePoint, Window};
use heapline_profile::reports::{
    HeatmapOptions, Hotspot, HotspotOptions, Measure, PeakOptions, Series, SeriesOptions, SortBy,
    SummaryOptions, TreeOptions, heatmap, hotspots, names, peak, series, summary, tree,
};
use heapline_profile::{Estimator, GroupBy, Look, Profile, Query, Scope, Share, StoreOptions};

fn load() -> Profile {
    load_from("mix-ocaml53/trace.ctf")
}

fn load_from(trace: &str) -> Profile {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let path = fixtures.join(trace);
    let bytes = std::fs::read(path).unwrap();
    let bytes = std::io::Cursor::new(bytes.clone());
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn scope<'a>(profile: &'a Profile, query: &str) -> Scope<'a> {
    let query = Query::parse(query).unwrap();
    Scope::new(profile, &query, Estimator::default())
}

/// A series whose window is in the run.
fn curve(scope: &Scope<'_>, options: &SeriesOptions) -> Series {
    series(scope, options).unwrap()
}

fn assert_near(a: f64, b: f64, what: &str) {
    assert!(
        (a - b).abs() <= 1e-6 * a.abs().max(1.0),
        "{what}: {a} and {b}"
    );
}

#[test]
fn cells_of_the_heat_map_are_queries() {
    let profile = load();
    for only in ["", "heap = major", "inside \"Mix.words\""] {
        let map = heatmap(&scope(&profile, only), &HeatmapOptions { times: 9 });
        let and = if only.is_empty() { "" } else { " and " };
        let mut blocks = 0.0;
        for (i, time) in map.times.windows(2).enumerate() {
            let then = format!("{only}{and}allocated in {}s..{}s", time[0], time[1]);
            for (j, age) in map.ages.windows(2).enumerate() {
                let cell = format!(
                    "{then} and lifetime in {}s..{}s and collected",
                    age[0], age[1]
                );
                let cell = scope(&profile, &cell).total();
                // A block that was promoted dies on the minor heap, but is not collected there.
                if only != "heap = major" {
                    assert_near(map.bytes[i][j], cell.bytes.value, "bytes");
                    assert_near(map.blocks[i][j], cell.blocks.value, "blocks");
                }
                blocks += map.blocks[i][j];
            }
            let alive = scope(&profile, &format!("{then} and live at end")).total();
            assert_near(map.alive_bytes[i], alive.bytes.value, "alive bytes");
            assert_near(map.alive_blocks[i], alive.blocks.value, "alive blocks");
            blocks += alive.blocks.value;
        }
        assert_near(blocks, scope(&profile, only).total().blocks.value, only);
    }
}

#[test]
fn blocks_that_are_promoted_are_not_collected_from_the_minor_heap() {
    let profile = load();
    for query in [
        "heap = minor",
        "heap = minor and promoted",
        "heap = major",
        "heap != external",
        "",
    ] {
        let report = summary(&scope(&profile, query), &SummaryOptions::default());
        let and = if query.is_empty() { "" } else { " and " };
        let collected = scope(&profile, &format!("{query}{and}collected")).total();
        assert_near(report.collected.bytes.value, collected.bytes.value, query);
    }
    let promoted = scope(&profile, "heap = minor and promoted");
    let report = summary(&promoted, &SummaryOptions::default());
    assert_near(report.collected.bytes.value, 0.0, "promoted");
}

/// The end of a window is not part of it, in queries, peaks and curves.
#[test]
fn a_window_ends_before_what_happens_at_its_end() {
    let profile = load();
    let all = scope(&profile, "");
    let micros = |time: f64| Window::parse(&format!("10ms..{}us", (time * 1e6).round())).unwrap();
    let peak_of = |window: &Window| {
        let options = PeakOptions {
            window: Some(window.clone()),
            ..PeakOptions::default()
        };
        peak(&all, &options).unwrap().peak
    };
    // Something happens at the time of the peak of a part: the last one before it is lower.
    let part = micros(0.025);
    let top = peak_of(&part);
    let window = micros(top.time);
    let (from, to) = window.bounds();
    let line = |measure| {
        let options = SeriesOptions {
            measure,
            points: Some(3),
            from: Some(from.clone()),
            to: Some(to.clone()),
            ..SeriesOptions::default()
        };
        curve(&all, &options).total
    };
    let highest = line(Measure::LiveBytes)
        .high
        .into_iter()
        .fold(0.0, f64::max);
    let before = peak_of(&window).live.bytes.value;
    assert_near(highest, before, "highest");
    assert!(before < top.live.bytes.value);
    let then = scope(&profile, &format!("allocated in {}", window.text())).total();
    let earlier = scope(&profile, "allocated < 10ms").total();
    let sum = line(Measure::AllocatedBytes);
    assert_near(
        sum.values[2] - earlier.bytes.value,
        then.bytes.value,
        "allocated",
    );
}

#[test]
fn windows_that_are_not_in_the_run_are_refused() {
    let profile = load();
    let all = scope(&profile, "");
    for text in ["30ms..10ms", "10s..", "10s..20s", "20ms..20ms"] {
        let window = Window::parse(text).unwrap();
        let (from, to) = window.bounds();
        let options = SeriesOptions {
            from: Some(from.clone()),
            to: Some(to.clone()),
            ..SeriesOptions::default()
        };
        let refused = |error| matches!(error, TimeError::EmptyWindow(..));
        assert!(series(&all, &options).is_err_and(refused), "{text}");
        let options = PeakOptions {
            window: Some(window),
            ..PeakOptions::default()
        };
        assert!(peak(&all, &options).is_err_and(refused), "{text}");
    }
    for (time, is_in_the_run) in [("41ms", true), ("end", true), ("100s", false)] {
        let query = Query::parse(&format!("size > 1 or not live at {time}")).unwrap();
        assert_eq!(query.check_times(&profile).is_ok(), is_in_the_run, "{time}");
    }
}

#[test]
fn a_part_of_a_series_has_the_values_of_the_whole() {
    let profile = load();
    let all = scope(&profile, "");
    let part = |measure, points| {
        curve(
            &all,
            &SeriesOptions {
                measure,
                points: Some(points),
                from: Some(TimePoint::Micros(10_000)),
                to: Some(TimePoint::Micros(30_000)),
                by: Some(GroupBy::Function),
                top: 3,
                ..SeriesOptions::default()
            },
        )
    };
    let live = part(Measure::LiveBytes, 11);
    assert_eq!(live.times.len(), 11);
    assert_near(live.times[10], 0.03, "the end");
    let mut highest = 0.0_f64;
    for (i, time) in live.times.iter().enumerate() {
        let then = scope(&profile, &format!("live at {time}s")).total();
        assert_near(live.total.values[i], then.bytes.value, "live");
        let groups: f64 = live.groups.iter().map(|group| group.line.values[i]).sum();
        assert_near(groups, then.bytes.value, "groups");
        assert!(live.total.low[i] <= live.total.values[i] + 1e-6);
        highest = highest.max(live.total.high[i]);
    }
    // The peak of the run is within.
    assert_near(highest, all.at_peak().total().bytes.value, "peak");

    let sum = part(Measure::AllocatedBytes, 4);
    for (i, time) in sum.times.iter().enumerate() {
        let by_then = scope(&profile, &format!("allocated <= {time}s")).total();
        assert_near(sum.total.values[i], by_then.bytes.value, "allocated");
        let error = 1.96 * by_then.bytes.variance.sqrt();
        assert_near(sum.error[i], error, "error of what was allocated");
    }
    let rate = part(Measure::AllocationRate, 1);
    let meanwhile = sum.total.values[3] - scope(&profile, "allocated <= 10ms").total().bytes.value;
    assert_near(rate.total.values[0], meanwhile / 0.02, "rate");
    let variance = scope(&profile, "allocated in 10001us..30001us")
        .total()
        .bytes
        .variance;
    assert_near(
        rate.error[0],
        1.96 * variance.sqrt() / 0.02,
        "error of the rate",
    );
}

#[test]
fn callers_are_those_of_the_tree() {
    let profile = load();
    let all = scope(&profile, "");
    let up = tree(
        &all,
        &TreeOptions {
            bottom_up: true,
            min: Share(0.0),
            ..TreeOptions::default()
        },
    );
    let callers = |functions: &[&str]| {
        curve(
            &all,
            &SeriesOptions {
                measure: Measure::AllocatedBytes,
                points: Some(1),
                top: 100,
                callers_of: functions.iter().map(|name| Pattern::glob(name)).collect(),
                ..SeriesOptions::default()
            },
        )
    };
    let mut checked = 0;
    for (place, node) in up
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.depth < 3)
    {
        let mut path = vec![&*node.label.name];
        let mut above = node.parent;
        while let Some(parent) = above {
            path.insert(0, &up.nodes[parent].label.name);
            above = up.nodes[parent].parent;
        }
        let report = callers(&path);
        assert_near(
            report.total.values[0],
            node.total.bytes.value,
            &path.join(" < "),
        );
        let names: Vec<String> = path.iter().map(|name| format!("{name:?}")).collect();
        let query = format!("function = {}", names.join(" called by "));
        let selected = scope(&profile, &query).total().bytes.value;
        assert_near(selected, node.total.bytes.value, &query);
        let children: Vec<_> = up
            .nodes
            .iter()
            .filter(|n| n.parent == Some(place))
            .collect();
        for group in &report.groups {
            let bytes = match children.iter().find(|n| n.label == group.label) {
                Some(child) => child.total.bytes.value,
                None => {
                    assert_eq!(group.label.name, "(the program itself)");
                    node.own.bytes.value
                }
            };
            assert_near(group.line.values[0], bytes, &group.label.name);
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
    assert_eq!(callers(&["No.such"]).total.values, [0.0]);
}

/// A query can select the blocks of each layer of a series, also if functions are left out of stacks.
#[test]
fn queries_select_what_a_series_is_split_into() {
    let profile = load();
    let looks = [
        (
            "",
            "",
            Look {
                all_code: true,
                ..Look::default()
            },
        ),
        (
            "",
            " hiding \"Stdlib.Map.*\" hiding /Bigarray/",
            Look {
                hide: vec![
                    Pattern::glob("Stdlib.Map.*"),
                    Pattern::parse("/Bigarray/").unwrap(),
                ],
                all_code: true,
                ..Look::default()
            },
        ),
        (
            "own ",
            "",
            Look {
                own_code: true,
                ..Look::default()
            },
        ),
    ];
    let kinds = [
        (GroupBy::Function, "function"),
        (GroupBy::Module, "module"),
        (GroupBy::File, "file"),
    ];
    let mut checked = 0;
    for (own, hiding, look) in &looks {
        for (by, field) in kinds {
            let layers = |callers_of: &[Pattern]| {
                let options = SeriesOptions {
                    measure: Measure::AllocatedBytes,
                    by: Some(by),
                    points: Some(1),
                    top: 100,
                    callers_of: callers_of.to_vec(),
                    look: look.clone(),
                    ..SeriesOptions::default()
                };
                let lines = curve(&scope(&profile, ""), &options).groups.into_iter();
                let named = lines.filter(|line| !line.label.name.starts_with('('));
                named
                    .map(|line| (Pattern::literal(&line.label.name), line.line.values[0]))
                    .collect::<Vec<_>>()
            };
            for (first, bytes) in layers(&[]) {
                let query = format!("{own}{field} = {first}{hiding}");
                let selected = scope(&profile, &query).total().bytes.value;
                assert_near(selected, bytes, &query);
                for (second, bytes) in layers(std::slice::from_ref(&first)) {
                    let query = format!("{own}{field} = {first} called by {second}{hiding}");
                    let selected = scope(&profile, &query).total().bytes.value;
                    assert_near(selected, bytes, &query);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 20, "{checked}");
    let none = scope(
        &profile,
        "function = Mix.big and function != \"Mix.big\" called by Mix",
    );
    assert_eq!(none.total().samples, 0);
}

#[test]
fn names_are_those_of_all_stacks() {
    let profile = load();
    let all = scope(&profile, "");
    for (by, query) in [
        (GroupBy::Function, "inside"),
        (GroupBy::File, "inside file"),
        (GroupBy::Module, "inside module"),
        (GroupBy::Crate, "inside crate"),
    ] {
        let names = names(&all, by);
        assert!(names.len() > 1);
        assert!(names.windows(2).all(|two| two[0].bytes >= two[1].bytes));
        for name in names {
            let inside = scope(&profile, &format!("{query} \"{}\"", name.name)).total();
            assert_near(name.bytes, inside.bytes.value, &name.name);
        }
    }
}

#[test]
fn rows_say_what_all_that_they_call_allocates() {
    let profile = load();
    let table = |scope: &Scope<'_>, by, sort| {
        let options = HotspotOptions {
            by,
            sort,
            rows: 1000,
            ..HotspotOptions::default()
        };
        hotspots(scope, &options).rows
    };
    for query in ["", "live at peak"] {
        let scope = scope(&profile, query);
        for by in [
            GroupBy::Function,
            GroupBy::File,
            GroupBy::Module,
            GroupBy::Crate,
        ] {
            let all = names(&scope, by);
            for row in table(&scope, by, SortBy::Allocated) {
                let name = all.iter().find(|name| name.name == row.label.name);
                let inclusive = row.inclusive.unwrap().bytes.value;
                assert_near(inclusive, name.unwrap().bytes, &row.label.name);
            }
        }
        let sites = table(&scope, GroupBy::Site, SortBy::Inclusive);
        let inclusive = |row: &Hotspot| row.inclusive.unwrap().bytes.value;
        assert!(
            sites.is_sorted_by(|a, b| inclusive(a) >= inclusive(b) - 1e-6),
            "{query}"
        );
    }
}

#[test]
fn the_peak_that_is_followed_while_reading_is_that_of_all_blocks() {
    // The domains of the second one have to be put in the order of time first.
    for trace in ["mix-ocaml53/trace.ctf", "generated/domains.ctf"] {
        let profile = load_from(trace);
        for estimator in [Estimator::default(), Estimator::Count] {
            let all = Scope::new(&profile, &Query::default(), estimator);
            assert_eq!(profile.peak(estimator).moment, all.peak(), "{trace}");
        }
    }
}

#[test]
fn rows_are_the_first_of_all_by_every_column() {
    let profile = load();
    let all = scope(&profile, "");
    let table = |sort, reverse, rows| {
        let options = HotspotOptions {
            sort,
            reverse,
            rows,
            ..HotspotOptions::default()
        };
        hotspots(&all, &options)
    };
    let key = |row: &Hotspot, sort| match sort {
        SortBy::Allocated => row.own.allocated.bytes.value,
        SortBy::Inclusive => row.inclusive.unwrap().bytes.value,
        SortBy::Peak => row.own.live_at_peak.bytes.value,
        SortBy::End => row.own.live_at_end.bytes.value,
        SortBy::Blocks => row.own.allocated.blocks.value,
        SortBy::Size => row.mean_size,
        SortBy::Promoted => row.promoted_percent.unwrap_or(-1.0),
        SortBy::Lifetime => match (row.lifetime.p50, row.oldest) {
            (median, Some(_)) => median.unwrap_or(f64::INFINITY),
            (_, None) => -1.0,
        },
        SortBy::Name => 0.0,
    };
    for &sort in SortBy::value_variants() {
        let whole = table(sort, false, 1000);
        assert_eq!(whole.hidden_rows, 0);
        let is_sorted = |rows: &[Hotspot]| {
            rows.windows(2).all(|pair| match sort {
                SortBy::Name => pair[0].label.name <= pair[1].label.name,
                _ => key(&pair[0], sort) >= key(&pair[1], sort),
            })
        };
        assert!(is_sorted(&whole.rows), "{sort:?}");
        let few = table(sort, false, 3);
        assert_eq!(few.rows, whole.rows[..3], "{sort:?}");
        assert_eq!(few.hidden_rows, whole.rows.len() - 3);
        let mut reversed = table(sort, true, 1000).rows;
        reversed.reverse();
        assert!(is_sorted(&reversed), "{sort:?} reversed");
    }
}

#[test]
fn a_median_that_is_not_known_is_longer_than_the_oldest_block() {
    let profile = load();
    let late = scope(&profile, "allocated in 50%..");
    let options = HotspotOptions {
        rows: 1000,
        ..HotspotOptions::default()
    };
    let report = hotspots(&late, &options);
    let half = report.subject.duration / 2.0;
    let unknown = |row: &&Hotspot| row.lifetime.p50.is_none();
    assert!(report.rows.iter().any(|row| unknown(&row)));
    for row in report.rows.iter().filter(unknown) {
        let oldest = row.oldest.unwrap();
        assert!(
            0.0 < oldest && oldest <= half,
            "{}: {oldest}",
            row.label.name
        );
    }
}
