//! Traces for Perfetto have all collections, nested, and counters in the units that they name.

use crate::common;

use std::collections::BTreeMap;

use common::{Full, load, profiles, whole};
use heapline_export::perfetto;
use heapline_model::CollectionKind;
use heapline_profile::{Profile, Scope};
use serde_json::Value;

fn export(scope: &Scope<'_>) -> Value {
    let mut text = Vec::new();
    perfetto(scope, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn events<'a>(file: &'a Value, kind: &str) -> Vec<&'a Value> {
    let events = file["traceEvents"].as_array().unwrap();
    events.iter().filter(|event| event["ph"] == kind).collect()
}

/// A time in the format, in nanoseconds.
fn nanos(time: &Value) -> u64 {
    let nanos = time.as_f64().unwrap() * 1000.0;
    assert!((nanos - nanos.round()).abs() < 1e-3, "{nanos}");
    format!("{nanos:.0}").parse().unwrap()
}

/// The spans of each track, in the order of the file.
fn tracks(file: &Value) -> BTreeMap<u64, Vec<&Value>> {
    let mut tracks: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for span in events(file, "X") {
        tracks
            .entry(span["tid"].as_u64().unwrap())
            .or_default()
            .push(span);
    }
    tracks
}

/// Every span lies within those that have not ended when it starts.
fn check_nesting(name: &str, file: &Value) {
    for spans in tracks(file).values() {
        let mut open: Vec<u64> = Vec::new();
        let mut before = 0;
        for span in spans {
            let start = nanos(&span["ts"]);
            let end = start + nanos(&span["dur"]);
            assert!(start >= before, "{name}: {span}");
            before = start;
            open.retain(|&open| open > start);
            assert!(open.iter().all(|&open| end <= open), "{name}: {span}");
            open.push(end);
        }
    }
}

fn work(profile: &Profile, lane: u16) -> Vec<heapline_model::Collection> {
    let all = profile.collections().of_lane(lane);
    all.filter(|one| one.kind != CollectionKind::Reading)
        .collect()
}

#[test]
fn every_collection_is_a_span_on_the_track_of_its_domain() {
    let profile = load("generated/collector.ctf");
    let file = export(&whole(&profile));
    check_nesting("collector", &file);
    let tracks = tracks(&file);
    assert_eq!(tracks.len(), 2);
    for (lane, spans) in (0..).zip(tracks.values()) {
        let mut expected = work(&profile, lane);
        expected.sort_by_key(|one| (one.start, std::cmp::Reverse(one.length)));
        assert_eq!(spans.len(), expected.len());
        for (span, one) in spans.iter().zip(&expected) {
            assert_eq!(nanos(&span["ts"]), one.start);
            assert_eq!(nanos(&span["dur"]), one.length);
            assert_eq!(span["name"], one.kind.name());
        }
        let promoted = spans
            .iter()
            .filter_map(|span| span["args"]["promoted_words"].as_u64());
        let last = expected.iter().rev().find_map(|one| one.counters).unwrap();
        assert_eq!(promoted.sum::<u64>(), last.promoted_words);
    }
    let names: Vec<_> = events(&file, "M")
        .into_iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Domain 0", "Domain 1"]);
}

#[test]
fn counters_are_in_the_units_that_they_name() {
    let profile = load("generated/collector.ctf");
    let scope = whole(&profile);
    let file = export(&scope);
    let counters = events(&file, "C");
    let of = |name: &str| -> Vec<&Value> {
        let found = counters.iter().filter(|event| event["name"] == name);
        found.copied().collect()
    };
    let live = of("live memory, estimated,");
    let end = scope.live_at(profile.end()).total().bytes.value;
    let last = live.last().unwrap()["args"]["bytes"].as_f64().unwrap();
    assert!((last - end).abs() < 1.0, "{last} {end}");

    // The area under the rate is all that was promoted.
    let rate = of("promotion rate,");
    let area: f64 = rate
        .windows(2)
        .map(|pair| {
            let seconds = (pair[1]["ts"].as_f64().unwrap() - pair[0]["ts"].as_f64().unwrap()) / 1e6;
            pair[0]["args"]["words/s"].as_f64().unwrap() * seconds
        })
        .sum();
    let lanes = profile.collections().lanes();
    let promoted: u64 = lanes
        .map(|lane| {
            work(&profile, lane)
                .last()
                .unwrap()
                .counters
                .unwrap()
                .promoted_words
        })
        .sum();
    assert!(
        (area / promoted as f64 - 1.0).abs() < 1e-3,
        "{area} {promoted}"
    );
    assert_eq!(rate.last().unwrap()["args"]["words/s"], 0);

    let heap = of("major heap, domain 1,");
    let last = work(&profile, 1).last().unwrap().counters.unwrap();
    let args = &heap.last().unwrap()["args"];
    assert_eq!(args["free words"], last.free_words);
    assert_eq!(args["used words"], last.heap_words - last.free_words);
    assert!(
        heap.windows(2)
            .all(|pair| pair[0]["ts"].as_f64() < pair[1]["ts"].as_f64())
    );
    assert!(
        file["otherData"]["live memory"]
            .as_str()
            .unwrap()
            .contains("estimates")
    );
}

#[test]
fn traces_without_collections_have_live_memory() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        let file = export(&scope);
        check_nesting(name, &file);
        if profile.collections().is_empty() {
            assert_eq!(events(&file, "X").len(), 0, "{name}");
        }
        let live = events(&file, "C");
        let live = live.last().unwrap()["args"]["bytes"].as_f64().unwrap();
        let end = scope.live_at(profile.end()).total().bytes.value;
        assert!((live - end).abs() < 1.0, "{name}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    let profile = load("generated/collector.ctf");
    assert!(perfetto(&whole(&profile), &mut Full).is_err());
}
