//! Profiles for the Firefox Profiler are balanced.

use crate::common;

use std::collections::BTreeMap;

use common::{Full, about, functions, load, odd, profiles, whole};
use heapline_export::{Leaf, firefox};
use heapline_model::CollectionKind;
use heapline_profile::Scope;
use serde_json::Value;

fn export(scope: &Scope<'_>, leaf: Leaf) -> Value {
    let mut text = Vec::new();
    firefox(scope, leaf, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// A column of numbers.
fn numbers(table: &Value, column: &str) -> Vec<f64> {
    let column = table[column].as_array().unwrap_or(const { &Vec::new() });
    column.iter().map(|n| n.as_f64().unwrap()).collect()
}

/// The names of a stack, outermost first.
fn stack(thread: &Value, index: &Value) -> Vec<String> {
    let at = |table: &str, column: &str, index: &Value| {
        let index = usize::try_from(index.as_u64().unwrap()).unwrap();
        thread[table][column][index].clone()
    };
    let mut names = Vec::new();
    let mut next = index.clone();
    while !next.is_null() {
        let func = at("frameTable", "func", &at("stackTable", "frame", &next));
        let name = at("funcTable", "name", &func).as_u64().unwrap();
        let name = &thread["stringArray"][usize::try_from(name).unwrap()];
        names.push(name.as_str().unwrap().to_owned());
        next = at("stackTable", "prefix", &next);
    }
    names.reverse();
    names
}

/// Checks a profile against the scope that it was made of.
fn check(name: &str, scope: &Scope<'_>, file: &Value) {
    let profile = scope.profile();
    let thread = &file["threads"][0];
    let table = &thread["nativeAllocations"];
    let times = numbers(table, "time");
    assert!(times.is_sorted(), "{name}");
    let weights = numbers(table, "weight");
    let mut live: BTreeMap<u64, (f64, &Value)> = BTreeMap::new();
    let mut allocated = 0.0;
    for (i, &weight) in weights.iter().enumerate() {
        let address = table["memoryAddress"][i].as_u64().unwrap();
        let stack = &table["stack"][i];
        if weight > 0.0 {
            allocated += weight;
            assert!(live.insert(address, (weight, stack)).is_none());
        } else {
            let birth = live.remove(&address);
            assert_eq!(birth, Some((-weight, stack)), "{name}: not balanced");
        }
    }
    let roundings = weights.len();
    assert!(
        about(scope.total().bytes.value, allocated, roundings),
        "{name}"
    );

    let end = scope.live_at(profile.end());
    let left: f64 = live.values().map(|(bytes, _)| bytes).sum();
    assert!(about(end.total().bytes.value, left, roundings), "{name}");
    let curve: f64 = numbers(&file["counters"][0]["samples"], "count")
        .iter()
        .sum();
    assert!((curve - end.total().bytes.value).abs() < 1.0, "{name}");

    let mut found: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for (bytes, index) in live.values() {
        *found.entry(stack(thread, index)).or_default() += bytes;
    }
    let mut expected: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for (stack, amount) in end.by_stack().enumerate() {
        if !amount.is_empty() {
            let names = functions(profile, stack).into_iter().map(str::to_owned);
            *expected.entry(names.collect()).or_default() += amount.bytes.value;
        }
    }
    assert_eq!(found.len(), expected.len(), "{name}");
    for (stack, bytes) in expected {
        assert!(about(bytes, found[&stack], roundings), "{name}: {stack:?}");
    }
}

#[test]
fn what_is_not_collected_is_alive_at_the_end() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        check(name, &scope, &export(&scope, Leaf::Function));
    }
}

#[test]
fn stacks_can_end_with_the_place_of_allocation() {
    let profile = load("mix-ocaml413/trace.ctf");
    let file = export(&whole(&profile), Leaf::Site);
    let thread = &file["threads"][0];
    let stacks = thread["nativeAllocations"]["stack"].as_array().unwrap();
    let big = stacks
        .iter()
        .map(|index| stack(thread, index))
        .find(|stack| stack.ends_with(&["Mix.big".to_owned(), "mix.ml:11".to_owned()]));
    assert!(big.is_some());
}

#[test]
fn a_full_disk_is_reported() {
    let profile = odd();
    assert!(firefox(&whole(&profile), Leaf::Function, &mut Full).is_err());
}

#[test]
fn collections_are_markers_in_the_thread_of_their_domain() {
    let profile = load("generated/collector.ctf");
    let file = export(&whole(&profile), Leaf::Function);
    let threads = file["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 3);
    for (lane, thread) in (0..).zip(&threads[1..]) {
        assert_eq!(thread["name"], format!("Domain {lane}"));
        let expected: Vec<_> = profile
            .collections()
            .of_lane(lane)
            .filter(|one| one.kind != CollectionKind::Reading)
            .collect();
        let markers = &thread["markers"];
        let starts = numbers(markers, "startTime");
        let ends = numbers(markers, "endTime");
        assert_eq!(starts.len(), expected.len());
        let length: f64 = starts
            .iter()
            .zip(&ends)
            .map(|(start, end)| end - start)
            .sum();
        let expected_length: u64 = expected.iter().map(|one| one.length).sum();
        assert!((length - expected_length as f64 / 1e6).abs() < 1e-3);
        let data = markers["data"].as_array().unwrap();
        let promoted: f64 = data
            .iter()
            .filter_map(|data| data["promoted"].as_f64())
            .sum();
        let last = expected.last().unwrap().counters.unwrap();
        assert!((promoted - last.promoted_words as f64).abs() < 0.5);
        let names = markers["name"].as_array().unwrap().iter();
        let names: Vec<_> = names
            .map(|name| &thread["stringArray"][usize::try_from(name.as_u64().unwrap()).unwrap()])
            .collect();
        assert!(names.iter().any(|name| *name == "minor collection"));
        assert!(names.iter().any(|name| *name == "major slice"));
    }
    let schemas = file["meta"]["markerSchema"].as_array().unwrap();
    let schema = schemas.iter().find(|schema| schema["name"] == "OCaml GC");
    assert!(schema.is_some());
}
