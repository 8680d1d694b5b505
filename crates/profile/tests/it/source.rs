//! Memory by line of source, of programs whose truth is known.
#![expect(clippy::float_cmp, reason = "what is exact is to be exact")]

use std::collections::BTreeMap;

use heapline_formats::{Options, Reader};
use heapline_profile::query::Pattern;
use heapline_profile::reports::{
    HotspotOptions, Source, SourceError, SourceFile, SourceOptions, WantedSource, hotspots, source,
};
use heapline_profile::{Estimator, GroupBy, Look, Profile, Query, Scope, StoreOptions};
use heapline_testkit::generate::Program;
use heapline_testkit::lives::{self, Life};

fn read(bytes: Vec<u8>) -> Profile {
    let mut reader = Reader::new(std::io::Cursor::new(bytes), Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

/// Main.run calls Cache.add in line 3, and itself in line 4; Cache.add allocates in two lines.
fn profile() -> Profile {
    let lives = [
        Life::new(
            80,
            1000,
            &["Main.run@main.ml:3", "Cache.add@src/cache.ml:7"],
        )
        .until(5000),
        Life::new(
            160,
            2000,
            &["Main.run@main.ml:3", "Cache.add@src/cache.ml:9"],
        ),
        Life::new(
            320,
            3000,
            &[
                "Main.run@main.ml:3",
                "Cache.add@src/cache.ml:7",
                "Stdlib.List.map@list.ml:5",
            ],
        )
        .until(4000),
        Life::new(640, 3500, &["Main.run@main.ml:4", "Main.go@main.ml:4"]).until(6000),
        Life::new(16, 7000, &["Other.add@other.ml:1"]),
    ];
    read(lives::trace(&lives, 1.0, 0))
}

fn text(lines: usize) -> impl Fn(WantedSource<'_>) -> Result<SourceFile, String> {
    move |wanted| {
        Ok(SourceFile {
            path: format!("/src/{}", wanted.file),
            text: "line\n".repeat(lines),
            modified: None,
        })
    }
}

fn named(name: &str) -> SourceOptions {
    SourceOptions {
        name: name.to_owned(),
        ..SourceOptions::default()
    }
}

fn ask(profile: &Profile, query: &str, options: &SourceOptions) -> Result<Source, SourceError> {
    let query = Query::parse(query).unwrap();
    let scope = Scope::new(profile, &query, Estimator::default());
    source(&scope, options, &text(20))
}

/// The own and inclusive bytes of each line: allocated, live at the peak, live at the end.
fn bytes(report: &Source) -> BTreeMap<u32, [[f64; 3]; 2]> {
    let lines = report.lines.iter();
    lines
        .filter_map(|line| {
            let memory = line.memory?;
            let bytes = [memory.own, memory.inclusive].map(|totals| {
                [totals.allocated, totals.live_at_peak, totals.live_at_end]
                    .map(|figures| figures.bytes.value)
            });
            Some((line.line, bytes))
        })
        .collect()
}

#[test]
fn lines_have_their_own_memory_and_that_of_callees() {
    let profile = profile();
    let cache = ask(&profile, "", &named("src/cache.ml")).unwrap();
    // The peak is at 3.5 ms, with all blocks but the last.
    let expected = BTreeMap::from([
        (7, [[80.0, 80.0, 0.0], [400.0, 400.0, 0.0]]),
        (9, [[160.0; 3], [160.0; 3]]),
    ]);
    assert_eq!(bytes(&cache), expected);
    assert_eq!(cache.in_file.own.allocated.bytes.value, 240.0);
    assert_eq!(cache.in_file.inclusive.allocated.bytes.value, 560.0);
    assert_eq!(cache.total.allocated.bytes.value, 1216.0);
    assert_eq!(
        (cache.path.as_deref(), cache.line_count),
        (Some("/src/src/cache.ml"), Some(20))
    );
    // Two functions of the same line are in one stack: the block counts once.
    let main = ask(&profile, "", &named("main.ml")).unwrap();
    let expected = BTreeMap::from([
        (3, [[0.0; 3], [560.0, 560.0, 160.0]]),
        (4, [[640.0, 640.0, 0.0], [640.0, 640.0, 0.0]]),
    ]);
    assert_eq!(bytes(&main), expected);

    let end = ask(&profile, "live at end", &named("src/cache.ml")).unwrap();
    assert_eq!(bytes(&end), BTreeMap::from([(9, [[160.0; 3], [160.0; 3]])]));
    let window = ask(
        &profile,
        "allocated in 2500us..3200us",
        &named("src/cache.ml"),
    )
    .unwrap();
    assert_eq!(bytes(&window)[&7][1][0], 320.0);
    assert_eq!(window.hidden_lines, 0);
}

#[test]
fn memory_of_libraries_and_hidden_functions_is_that_of_the_calling_line() {
    let profile = profile();
    for look in [
        Look {
            own_code: true,
            ..Look::default()
        },
        Look {
            hide: vec![Pattern::glob("Stdlib.*")],
            ..Look::default()
        },
    ] {
        let options = SourceOptions {
            look,
            ..named("src/cache.ml")
        };
        assert_eq!(
            bytes(&ask(&profile, "", &options).unwrap())[&7][0][0],
            400.0
        );
        let list = SourceOptions {
            name: "list.ml".into(),
            ..options
        };
        assert!(bytes(&ask(&profile, "", &list).unwrap()).is_empty());
    }
}

#[test]
fn lines_add_up_to_the_sites_of_hotspots() {
    let profile = read(
        Program {
            allocations: 5000,
            ..Program::default()
        }
        .trace(),
    );
    let query = Query::parse("live at peak").unwrap();
    let scope = Scope::new(&profile, &query, Estimator::default());
    let by_site = HotspotOptions {
        by: GroupBy::Site,
        rows: 100_000,
        ..HotspotOptions::default()
    };
    let mut sites: BTreeMap<(String, u32), f64> = BTreeMap::new();
    for row in hotspots(&scope, &by_site).rows {
        let place = row.label.place.unwrap_or_default();
        let mut parts = place.split(':');
        let file = parts.next().unwrap().to_owned();
        let line = parts.next().map_or(0, |line| line.parse().unwrap());
        *sites.entry((file, line)).or_default() += row.own.allocated.bytes.value;
    }
    let files: std::collections::BTreeSet<&String> = sites.keys().map(|(file, _)| file).collect();
    assert!(files.len() > 1);
    for file in files {
        let options = SourceOptions {
            all: true,
            ..named(file)
        };
        let report = source(&scope, &options, &|_| Err("none".into())).unwrap();
        for line in &report.lines {
            let own = line.memory.unwrap().own.allocated.bytes.value;
            let expected = sites
                .get(&(file.clone(), line.line))
                .copied()
                .unwrap_or(0.0);
            assert!(
                (own - expected).abs() < 1e-6 * (1.0 + own),
                "{file}:{}",
                line.line
            );
        }
        let by_file = HotspotOptions {
            by: GroupBy::File,
            rows: 100_000,
            ..HotspotOptions::default()
        };
        let rows = hotspots(&scope, &by_file).rows;
        let row = rows.iter().find(|row| row.label.name == *file).unwrap();
        assert_eq!(report.in_file.own.allocated, row.own.allocated);
        let inclusive = report.in_file.inclusive.allocated.bytes.value;
        let expected = row.inclusive.unwrap().bytes.value;
        assert!((inclusive - expected).abs() < 1e-6 * expected, "{file}");
    }
}

#[test]
fn functions_files_and_lines_are_found_by_the_ends_of_their_names() {
    let profile = profile();
    let found = |name: &str| {
        let report = ask(&profile, "", &named(name)).unwrap();
        (
            report.file,
            report.function.map(|label| label.name),
            report.focus,
        )
    };
    let add = Some("Cache.add".to_owned());
    assert_eq!(found("Cache.add"), ("src/cache.ml".into(), add, vec![7, 9]));
    assert_eq!(found("cache.ml"), ("src/cache.ml".into(), None, vec![]));
    assert_eq!(found("cache.ml:9"), ("src/cache.ml".into(), None, vec![9]));
    assert_eq!(
        found("src/cache.ml:7:0-1"),
        ("src/cache.ml".into(), None, vec![7])
    );
    assert_eq!(found("go").1.as_deref(), Some("Main.go"));
    let problem = |name: &str| ask(&profile, "", &named(name)).unwrap_err().to_string();
    assert_eq!(
        problem("add"),
        "2 functions end with `add`: Cache.add (src/cache.ml), Other.add (other.ml); give one of them"
    );
    assert_eq!(
        problem("Cache.ad"),
        "the trace has no function \"Cache.ad\"; did you mean \"Cache.add\"?"
    );
    assert_eq!(
        problem("cach.ml"),
        "the trace has no file \"cach.ml\"; did you mean \"src/cache.ml\"?"
    );
    assert!(named("").validate().is_err());
}

#[test]
fn only_the_surroundings_of_memory_are_shown() {
    let profile = profile();
    let lines = |options: &SourceOptions, count: usize| {
        let scope = Scope::new(&profile, &Query::default(), Estimator::default());
        let report = source(&scope, options, &text(count)).unwrap();
        let lines: Vec<u32> = report.lines.iter().map(|line| line.line).collect();
        (lines, report.hidden_lines)
    };
    let near = SourceOptions {
        context: 1,
        ..named("cache.ml")
    };
    assert_eq!(lines(&near, 20), (vec![6, 7, 8, 9, 10], 0));
    let one = SourceOptions {
        context: 0,
        ..named("cache.ml:12")
    };
    assert_eq!(lines(&one, 20), (vec![12], 2));
    let all = SourceOptions {
        all: true,
        ..near.clone()
    };
    assert_eq!(lines(&all, 20), ((1..=20).collect(), 0));
    // The file is shorter than the one that was recorded.
    assert_eq!(lines(&near, 7), (vec![6, 7, 9], 0));
    assert_eq!(lines(&all, 0), (vec![7, 9], 0));
}

#[test]
fn the_text_may_be_newer_or_missing_or_long() {
    let profile = profile();
    let scope = Scope::new(&profile, &Query::default(), Estimator::default());
    let start = profile.header().start_time;
    for (modified, is_newer) in [
        (None, false),
        (Some(start - 1), false),
        (Some(start + 1), true),
    ] {
        let lookup = |_: WantedSource<'_>| {
            Ok(SourceFile {
                path: "x".into(),
                text: "a\r\n".repeat(9),
                modified,
            })
        };
        let report = source(&scope, &named("cache.ml"), &lookup).unwrap();
        assert_eq!(report.is_newer, is_newer);
        assert_eq!(report.lines[0].text.as_deref(), Some("a"));
    }
    let report = source(&scope, &named("list.ml"), &|wanted| {
        assert!(wanted.is_standard);
        Err("nowhere".into())
    });
    let report = report.unwrap();
    assert_eq!(
        (report.problem.as_deref(), report.line_count),
        (Some("nowhere"), None)
    );
    assert_eq!(bytes(&report)[&5][0][0], 320.0);
    let long = |wanted: WantedSource<'_>| {
        assert!(!wanted.is_standard);
        let text = "é".repeat(100_000);
        Ok(SourceFile {
            path: "x".into(),
            text,
            modified: None,
        })
    };
    let report = source(&scope, &named("other.ml"), &long).unwrap();
    assert_eq!(report.lines[0].text.as_ref().unwrap().chars().count(), 2001);
}
