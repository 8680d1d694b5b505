//! Sampled blocks of a recording, found in a snapshot.

use std::collections::HashMap;
use std::fs;
use std::io::Cursor;

use heapline_formats::{Options, Reader};
use heapline_heap::Heap;
use heapline_heap::reports::{AllocationNumbers, HeapError, WhyOptions, join, sample_holders, why};
use heapline_model::{Batch, EventKind, Source};
use heapline_profile::query::Pattern;
use heapline_profile::reports::{LeakOptions, leaks};
use heapline_profile::{Estimator, Profile, Query, Scope, Share, StoreOptions};
use heapline_testkit::fixtures;
use heapline_testkit::heap::Snapshot;

fn reader(trace: &[u8]) -> Reader {
    Reader::new(Cursor::new(trace.to_vec()), Options::default()).unwrap()
}

/// The ids of a trace's blocks, in the order of their allocations.
fn ids(trace: &[u8]) -> Vec<u64> {
    let mut reader = reader(trace);
    let (mut batch, mut ids) = (Batch::default(), Vec::new());
    while reader.next_batch(&mut batch).unwrap() {
        let births = batch.events().iter();
        let births = births.filter(|event| event.kind == EventKind::Birth);
        ids.extend(births.map(|birth| birth.block));
        batch.clear();
    }
    ids
}

/// A snapshot with all blocks of a trace that lived to its end, each by itself in one of two definitions.
#[test]
fn estimates_of_paths_are_those_of_the_trace() {
    let trace = fs::read(fixtures::folder().join("mix-ocaml53/trace.ctf")).unwrap();
    let ids = ids(&trace);
    let profile = Profile::load(&mut reader(&trace), StoreOptions::default()).unwrap();
    let all = Scope::new(&profile, &Query::default(), Estimator::default());
    let live = all.at_end();

    let mut snapshot = Snapshot::default();
    let mut halves = [Vec::new(), Vec::new()];
    let mut sites = Vec::new();
    live.for_each_block(|block| {
        let node = snapshot.block(252, block.size / 8);
        halves[block.number % 2].push(node);
        sites.push((node, ids[block.number], block.samples));
    });
    let halves = halves.map(|nodes| snapshot.filled(0, nodes.len() as u64, &nodes));
    for (node, id, samples) in sites {
        snapshot.site(node, id, samples);
    }
    snapshot.module("camlM", &halves);
    let heap = Heap::read(&snapshot.finish()[..]).unwrap();

    let numbers = AllocationNumbers::read(&heap, &mut reader(&trace)).unwrap();
    let options = WhyOptions {
        site: Some(Pattern::glob("Mix.*")),
        ..WhyOptions::default()
    };
    let mine = Scope::new(&profile, &options.recorded(), Estimator::default());
    let samples = join(&heap, &mine, &numbers);
    let report = why(&heap, &options, Some(&samples)).unwrap();
    assert_eq!(why(&heap, &options, None), Err(HeapError::NoRecording));
    let expected = mine.at_end().total();
    let estimated = report.estimated.unwrap();
    assert!(expected.sampled > 100, "{expected:?}");
    assert_eq!(report.selected.blocks, expected.sampled);
    assert!((estimated.value / expected.bytes.value - 1.0).abs() < 1e-9);
    assert!((estimated.error / expected.bytes.estimate().error - 1.0).abs() < 1e-9);
    let sum: f64 = report
        .rows
        .iter()
        .map(|row| row.estimated.unwrap().value)
        .sum();
    assert!((sum / expected.bytes.value - 1.0).abs() < 1e-9);
    for row in &report.rows {
        let sites: f64 = row.sites.iter().map(|site| site.bytes.value).sum();
        assert!((sites / row.estimated.unwrap().value - 1.0).abs() < 1e-9);
        assert!(
            row.sites
                .iter()
                .all(|site| site.site.name.starts_with("Mix."))
        );
    }

    // The other direction: the sites of what a definition holds.
    let samples = join(&heap, &all, &numbers);
    let options = WhyOptions {
        held_by: Some(Pattern::glob("M field 0")),
        ..WhyOptions::default()
    };
    let report = why(&heap, &options, Some(&samples)).unwrap();
    let of_rows = report.rows.iter().flat_map(|row| &row.sites);
    let held: u64 = of_rows.map(|site| site.samples).sum();
    let of_all: u64 = report.sites.iter().map(|site| site.samples).sum();
    let mut expected = 0;
    live.for_each_block(|block| {
        expected += if block.number.is_multiple_of(2) {
            block.samples
        } else {
            0
        };
    });
    assert_eq!([held, of_all], [expected; 2]);
    assert_eq!(report.hidden_sites, 0);
    assert!(report.estimated.is_none());
}

/// Of the blocks of each size that a trace leaves, a third is held by both of two definitions, the others by one.
#[test]
fn leaks_tell_what_holds_them() {
    let trace = fs::read(fixtures::folder().join("mix-ocaml53/trace.ctf")).unwrap();
    let ids = ids(&trace);
    let profile = Profile::load(&mut reader(&trace), StoreOptions::default()).unwrap();
    let all = Scope::new(&profile, &Query::default(), Estimator::default());
    let mut snapshot = Snapshot::default();
    let mut holders = [Vec::new(), Vec::new()];
    let mut sites = Vec::new();
    let mut seen: HashMap<u64, usize> = HashMap::new();
    all.at_end().for_each_block(|block| {
        let node = snapshot.block(252, block.size / 8);
        let before = seen.entry(block.size).or_default();
        match *before % 3 {
            0 => holders.iter_mut().for_each(|held| held.push(node)),
            which => holders[which - 1].push(node),
        }
        *before += 1;
        sites.push((node, ids[block.number], block.samples));
    });
    let holders = holders.map(|nodes| snapshot.filled(0, nodes.len() as u64, &nodes));
    for (node, id, samples) in sites {
        snapshot.site(node, id, samples);
    }
    snapshot.module("camlM", &holders);
    let heap = Heap::read(&snapshot.finish()[..]).unwrap();
    let numbers = AllocationNumbers::read(&heap, &mut reader(&trace)).unwrap();
    let holders = sample_holders(&heap, &numbers, "run.heap");

    let options = LeakOptions {
        tail: Share(0.0),
        ..LeakOptions::default()
    };
    let without = leaks(&all, &options, None);
    let report = leaks(&all, &options, Some(&holders));
    assert_eq!(report.snapshot.as_deref(), Some("run.heap"));
    assert_eq!(without.snapshot, None);
    assert!(!report.rows.is_empty());
    for (row, without) in report.rows.iter().zip(&without.rows) {
        assert_eq!(row.retained, without.retained);
        assert!(without.held_by.is_empty());
        let sum: f64 = row.held_by.iter().map(|holder| holder.bytes.value).sum();
        assert!(
            (sum / row.retained.bytes.value - 1.0).abs() < 1e-9,
            "{row:?}"
        );
        let known = ["M field 0", "M field 1", "M field 0 and others"];
        for holder in &row.held_by {
            assert!(known.contains(&&*holder.name), "{holder:?}");
        }
        assert!(
            row.held_by
                .is_sorted_by(|a, b| a.bytes.value >= b.bytes.value)
        );
    }
    let names = report.rows.iter().flat_map(|row| &row.held_by);
    let shared = names.filter(|holder| holder.name.ends_with("and others"));
    assert!(shared.count() > 0);
}
