//! The numbers of memtrace's viewer, where it is right; and a list of where it is not.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use heapline_formats::{Options, Reader};
use heapline_profile::reports::{HotspotOptions, Measure, SeriesOptions, hotspots, series};
use heapline_profile::{
    Estimator, FunctionId, GroupBy, IdVec, Look, Profile, Query, Scope, StoreOptions,
};
use heapline_testkit::fixtures;

/// The viewer's filters, and the queries that mean the same.
const FILTERS: [(&str, &str); 5] = [
    ("", ""),
    ("_live-at-peak", "live at peak"),
    ("_live-at-end", "live at end"),
    ("_major", "heap = major"),
    ("_minor", "heap = minor"),
];

/// Where the viewer is wrong, and why: trace, filter, and what it makes of it.
const DEFECTS: [(&str, &str, &str); 1] = [(
    "viewer_test",
    "_live-at-peak",
    "decides by microseconds what is alive, so that what is collected in that of the peak is not",
)];

/// From so many allocations on the viewer counts in a way that loses some.
const LOSSY: usize = 20_000;

struct Golden {
    /// Bytes of every location above 0.5 %.
    locations: BTreeMap<String, f64>,
    /// Time in nanoseconds and bytes.
    graph: Vec<(f64, f64)>,
    peak: f64,
    peak_time: f64,
    total: f64,
}

fn load(folder: &Path) -> Profile {
    let mut reader = Reader::open(folder.join("trace.ctf"), Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).ok()?)
        .read_to_string(&mut text)
        .unwrap();
    Some(text)
}

fn golden(folder: &Path, filter: &str) -> Option<Golden> {
    let singletons = text(&folder.join(format!("viewer_singletons{filter}.txt.gz")))?;
    let graph = text(&folder.join(format!("viewer_graph{filter}.txt.gz")))?;
    let number = |line: &str, n: usize| line.split_whitespace().nth(n).unwrap().parse().unwrap();
    let mut lines = singletons.lines();
    let (peak, total) = (lines.next().unwrap(), lines.next().unwrap());
    Some(Golden {
        peak: number(peak, 1),
        peak_time: number(peak, 4),
        total: number(total, 1),
        locations: lines
            .map(|line| {
                let (bytes, name) = line.split_once(' ').unwrap();
                (name.to_owned(), bytes.parse().unwrap())
            })
            .collect(),
        graph: graph
            .lines()
            .skip(2)
            .take(450)
            .map(|line| (number(line, 0), number(line, 1)))
            .collect(),
    })
}

fn folders() -> Vec<PathBuf> {
    let mut folders = vec![
        fixtures::folder().join("mix-ocaml413"),
        fixtures::folder().join("mix-ocaml53"),
    ];
    if let Some(reference) = fixtures::reference_folder() {
        for name in [
            "lists_and_sets",
            "ocamlopt_big",
            "ocamlopt_small",
            "viewer_test",
        ] {
            folders.push(reference.join("public").join(name));
        }
    }
    folders
}

/// Our amount for each location, by the viewer's names.
fn locations(scope: &Scope<'_>) -> BTreeMap<String, f64> {
    let table = |by| {
        hotspots(
            scope,
            &HotspotOptions {
                by,
                rows: usize::MAX,
                look: Look {
                    all_code: true,
                    ..Look::default()
                },
                ..HotspotOptions::default()
            },
        )
        .rows
    };
    let total = scope.total().bytes.value;
    let mut all = BTreeMap::from([
        ("(toplevel)".to_owned(), total),
        ("(allocator)".to_owned(), total),
    ]);
    let raw = |label: &heapline_profile::Label| {
        label.raw_name.clone().unwrap_or_else(|| label.name.clone())
    };
    for row in table(GroupBy::Function) {
        all.insert(raw(&row.label), row.own.allocated.bytes.value);
    }
    // Functions that allocate nothing themselves are in no row of their own.
    for (name, bytes) in inclusive(scope) {
        all.insert(name, bytes);
    }
    for row in table(GroupBy::Site) {
        let place = row.label.place.clone().unwrap_or_default();
        let name = format!("A:{place}@{}", raw(&row.label));
        all.insert(name, row.own.allocated.bytes.value);
    }
    all
}

fn inclusive(scope: &Scope<'_>) -> BTreeMap<String, f64> {
    let symbols = scope.profile().symbols();
    let mut totals = IdVec::like(symbols.functions(), 0.0);
    for (stack, amount) in scope.by_stack().enumerate() {
        let mut functions: Vec<FunctionId> = scope
            .profile()
            .stack(stack)
            .into_iter()
            .map(|frame| symbols.frames()[frame].function)
            .collect();
        functions.sort_unstable();
        functions.dedup();
        for function in functions {
            totals[function] += amount.bytes.value;
        }
    }
    symbols
        .functions()
        .iter()
        .zip(&totals)
        .map(|(function, &total)| (function.raw.clone(), total))
        .collect()
}

#[test]
fn numbers_are_those_of_the_viewer() {
    let mut differences = Vec::new();
    let mut defects_seen = 0;
    for folder in folders() {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let profile = load(&folder);
        for (filter, query) in FILTERS {
            let Some(golden) = golden(&folder, filter) else {
                panic!("{name} has no numbers for {filter}");
            };
            let query = Query::parse(query).unwrap();
            let scope = Scope::new(&profile, &query, Estimator::Count);
            let is_known = DEFECTS
                .iter()
                .any(|&(trace, known, _)| (trace, known) == (&*name, filter));
            let mut differ = |what: String, ours: f64, theirs: f64| {
                if is_known {
                    defects_seen += 1;
                    return;
                }
                differences.push(format!(
                    "{name}{filter}: {what}: {ours} instead of {theirs}"
                ));
            };
            let close = |ours: f64, theirs: f64| (ours - theirs).abs() < 0.5;

            let everything = Scope::new(&profile, &Query::default(), Estimator::Count);
            let peak = everything.at_peak().total().bytes.value;
            if !close(peak, golden.peak) {
                differ("peak".into(), peak, golden.peak);
            }
            let peak_time = profile.peak(Estimator::Count).time * 1e9;
            if !close(peak_time, golden.peak_time) {
                differ("time of the peak".into(), peak_time, golden.peak_time);
            }
            let total = scope.total().bytes.value;
            if !close(total, golden.total) {
                differ("total".into(), total, golden.total);
            }
            // Beyond the limit, each ten thousand allocations may lose a sample.
            let lost = if scope.selection().len() < LOSSY {
                0.0
            } else {
                (scope.selection().len() / 10_000) as f64 * profile.sampling().bytes_per_sample()
            };
            let ours = locations(&scope);
            for (location, &theirs) in &golden.locations {
                let ours = ours.get(location).copied().unwrap_or(f64::NAN);
                if !(ours > theirs - 0.5 && ours < theirs + lost + 0.5) {
                    differ(location.clone(), ours, theirs);
                }
            }
            let line = series(
                &scope,
                &SeriesOptions {
                    measure: Measure::LiveBytes,
                    points: Some(450),
                    ..SeriesOptions::default()
                },
            )
            .unwrap();
            assert_eq!(golden.graph.len(), 450);
            let wrong = golden
                .graph
                .iter()
                .zip(&line.total.values)
                .filter(|((_, theirs), ours)| !close(**ours, *theirs))
                .count();
            if wrong > 0 {
                differ("points of the graph".into(), wrong as f64, 0.0);
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    // A defect that is not there any more does not belong on the list.
    assert_eq!(defects_seen > 0, fixtures::reference_folder().is_some());
}

/// `live at peak` is empty in the viewer if the peak is at the end, as that of a leak is: it takes
/// what is never collected for collected at the end.
#[test]
fn live_at_the_peak_is_right_where_the_peak_is_at_the_end() {
    let path = fixtures::folder().join("odd/peakend.ctf");
    let mut reader = Reader::open(path, Options::default()).unwrap();
    let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
    let bytes = |query: &str| {
        let query = Query::parse(query).unwrap();
        Scope::new(&profile, &query, Estimator::Count)
            .total()
            .bytes
            .value
    };
    assert!((bytes("live at peak") - 800_000.0).abs() < 0.5);
    assert!((bytes("live at end") - 800_000.0).abs() < 0.5);
}

/// Liveness is decided by the order of events, not by their microseconds.
#[test]
fn what_is_alive_at_the_peak_is_the_peak() {
    for path in fixtures::traces() {
        let mut reader = Reader::open(&path, Options::default()).unwrap();
        let profile = Profile::load(&mut reader, StoreOptions::default()).unwrap();
        for estimator in [Estimator::HorvitzThompson, Estimator::Count] {
            let all = Scope::new(&profile, &Query::default(), estimator);
            let options = SeriesOptions {
                points: Some(7),
                ..SeriesOptions::default()
            };
            let highest = series(&all, &options)
                .unwrap()
                .total
                .high
                .into_iter()
                .fold(0.0, f64::max);
            let peak = all.at_peak().total().bytes.value;
            assert!((peak - highest).abs() <= 1e-9 * peak, "{}", path.display());
        }
    }
}
