//! Profiles in storages answer as those in memory do.

use heapline_formats::{Options, Reader};
use heapline_testkit::long_run::{Length, LongRun};
use serde::Serialize;
use serde_json::Value;

use super::super::stored::memory;
use super::*;
use crate::groups::GroupBy;
use crate::query::Query;
use crate::reports::{
    BlocksOptions, FlameOptions, HeatmapOptions, HotspotOptions, LeakOptions, Measure, PeakOptions,
    SeriesOptions, StatsOptions, SummaryOptions, TemporaryOptions, TreeOptions, blocks, flame,
    heatmap, hotspots, info, leaks, peak, series, stats, summary, temporary, tree,
};
use crate::sampling::Estimator;
use crate::scope::Scope;
use crate::store::{Profile, StoreOptions};

pub(crate) fn trace(allocations: u64, domains: u16) -> Vec<u8> {
    let run = LongRun {
        seed: 7,
        length: Length::Allocations(allocations),
        domains,
    };
    let mut bytes = Vec::new();
    run.write(&mut bytes).unwrap();
    bytes
}

pub(crate) fn in_memory(trace: &[u8]) -> Profile {
    let mut reader = Reader::new(io::Cursor::new(trace.to_vec()), Options::default()).unwrap();
    Profile::load(&mut reader, StoreOptions::default()).unwrap()
}

pub(crate) fn stored(trace: &[u8], segments: usize) -> Profile {
    let mut reader = Reader::new(io::Cursor::new(trace.to_vec()), Options::default()).unwrap();
    let limit = MemoryLimit {
        bytes: (segments * SEGMENT) as u64 * BLOCK_BYTES * 10 / 6 + 10,
        create: memory::create(),
    };
    assert_eq!(limit.segments(), segments);
    let profile = Profile::load_within(limit, &mut reader, StoreOptions::default()).unwrap();
    assert!(profile.is_stored());
    profile
}

fn json(report: impl Serialize) -> Value {
    serde_json::to_value(report).unwrap()
}

/// All reports on the blocks of a query.
fn reports(profile: &Profile, query: &str) -> Vec<(&'static str, Value)> {
    let query = Query::parse(query).unwrap();
    let scope = Scope::new(profile, &query, Estimator::default());
    let series_by_site = SeriesOptions {
        measure: Measure::LiveBytes,
        by: Some(GroupBy::Site),
        ..SeriesOptions::default()
    };
    vec![
        ("summary", json(summary(&scope, &SummaryOptions::default()))),
        (
            "hotspots",
            json(hotspots(&scope, &HotspotOptions::default())),
        ),
        ("tree", json(tree(&scope, &TreeOptions::default()))),
        ("flame", json(flame(&scope, &FlameOptions::default()))),
        (
            "series",
            json(series(&scope, &SeriesOptions::default()).unwrap()),
        ),
        (
            "series by site",
            json(series(&scope, &series_by_site).unwrap()),
        ),
        ("stats", json(stats(&scope, &StatsOptions::default()))),
        ("heatmap", json(heatmap(&scope, &HeatmapOptions::default()))),
        ("leaks", json(leaks(&scope, &LeakOptions::default(), None))),
        (
            "temporary",
            json(temporary(&scope, &TemporaryOptions::default())),
        ),
        ("peak", json(peak(&scope, &PeakOptions::default()).unwrap())),
        ("blocks", json(blocks(&scope, &BlocksOptions::default()))),
    ]
}

pub(crate) const QUERIES: [&str; 9] = [
    "",
    "live at peak",
    "lifetime in 1MiB..1GiB",
    "live at 50%",
    "allocated in 20%..30% and size >= 64B",
    "live in 40%..45%",
    "heap = major",
    "lifetime > 1s",
    "not promoted and collected in 10%..90%",
];

pub(crate) fn assert_equal(left: &Profile, right: &Profile, queries: &[&str]) {
    assert_eq!(json(info(left)), json(info(right)));
    assert_eq!(left.tallies().to_vec(), right.tallies().to_vec());
    assert_eq!(left.peak(Estimator::Count), right.peak(Estimator::Count));
    for query in queries {
        for ((name, left), (_, right)) in reports(left, query).iter().zip(reports(right, query)) {
            assert_eq!(*left, right, "{name} of {query:?}");
        }
    }
    assert_eq!(left.failure(), None);
}

#[test]
fn reports_do_not_depend_on_where_blocks_are() {
    let trace = trace(500_000, 1);
    assert_equal(&stored(&trace, FEWEST), &in_memory(&trace), &QUERIES);
}

/// A lane is so late that there have to be a million blocks in memory.
#[test]
fn events_are_put_in_order_before_they_are_stored() {
    let trace = trace(1_500_000, 3);
    let stored = stored(&trace, 16);
    assert_eq!(stored.moved_events(), 0);
    assert_equal(&stored, &in_memory(&trace), &QUERIES[..3]);
}

#[test]
fn events_that_come_too_late_are_counted() {
    let trace = trace(500_000, 3);
    let (stored, in_memory) = (stored(&trace, FEWEST), in_memory(&trace));
    assert!(stored.moved_events() > 0);
    let totals = |profile: &Profile| {
        let mut report = json(info(profile));
        report.as_object_mut().unwrap().remove("peak");
        report
    };
    assert_eq!(stored.len(), in_memory.len());
    assert_eq!(stored.tallies().to_vec(), in_memory.tallies().to_vec());
    assert_eq!(totals(&stored)["bytes"], totals(&in_memory)["bytes"]);
}

#[test]
fn small_traces_stay_in_memory() {
    let trace = trace(1000, 1);
    let mut reader = Reader::new(io::Cursor::new(trace), Options::default()).unwrap();
    let limit = MemoryLimit {
        bytes: 0,
        create: Arc::new(|| Err(io::ErrorKind::StorageFull.into())),
    };
    let profile = Profile::load_within(limit, &mut reader, StoreOptions::default()).unwrap();
    assert!(!profile.is_stored());
}

#[test]
fn a_full_disk_is_an_error() {
    let trace = trace(400_000, 1);
    let mut reader = Reader::new(io::Cursor::new(trace), Options::default()).unwrap();
    let limit = MemoryLimit {
        bytes: 0,
        create: Arc::new(|| Err(io::ErrorKind::StorageFull.into())),
    };
    let error = Profile::load_within(limit, &mut reader, StoreOptions::default()).unwrap_err();
    assert!(error.to_string().contains("storage"), "{error}");
}
