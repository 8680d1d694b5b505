//! Profiles for pprof hold what the trace amounts to.

use crate::common;

use std::collections::BTreeMap;
use std::io::Read;

use common::{Full, about, functions, load, odd, profiles, whole};
use flate2::read::GzDecoder;
use heapline_export::pprof::{pprof, proto};
use heapline_profile::{Estimator, Moment, Query, Scope};
use prost::Message;

fn export(scope: &Scope<'_>, live: Moment) -> proto::Profile {
    let mut file = Vec::new();
    pprof(scope, live, &mut file).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
    proto::Profile::decode(&bytes[..]).unwrap()
}

fn string(profile: &proto::Profile, number: i64) -> &str {
    &profile.string_table[usize::try_from(number).unwrap()]
}

fn column(profile: &proto::Profile, column: usize) -> f64 {
    let values = profile.sample.iter().map(|sample| sample.value[column]);
    values.map(|value| value as f64).sum()
}

fn label(profile: &proto::Profile, sample: &proto::Sample, key: &str) -> proto::Label {
    let mut labels = sample.label.iter();
    *labels
        .find(|label| string(profile, label.key) == key)
        .unwrap()
}

#[test]
fn columns_add_up_to_what_was_allocated_and_is_alive() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        let peak = profile.peak(Estimator::default()).moment;
        for moment in [profile.end(), peak] {
            let written = export(&scope, moment);
            let (all, live) = (scope.total(), scope.live_at(moment).total());
            let expected = [
                all.blocks.value,
                all.bytes.value,
                live.blocks.value,
                live.bytes.value,
            ];
            for (i, expected) in expected.into_iter().enumerate() {
                let sum = column(&written, i);
                assert!(
                    about(expected, sum, written.sample.len()),
                    "{name}: column {i} is {sum}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn stacks_are_those_of_the_trace() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        let written = export(&scope, profile.end());
        let mut locations = BTreeMap::new();
        for location in &written.location {
            assert_eq!(location.mapping_id, 1);
            let [line] = location.line[..] else {
                panic!("{location:?}")
            };
            assert!(locations.insert(location.id, line).is_none());
        }
        let mut names = BTreeMap::new();
        for function in &written.function {
            let name = string(&written, function.name);
            assert!(names.insert(function.id, name).is_none());
        }
        assert!(!locations.contains_key(&0) && !names.contains_key(&0));

        let mut found: BTreeMap<Vec<(&str, i64)>, f64> = BTreeMap::new();
        for sample in &written.sample {
            let stack = sample.location_id.iter().rev().map(|id| {
                let line = locations[id];
                (names[&line.function_id], line.line)
            });
            *found.entry(stack.collect()).or_default() += sample.value[1] as f64;
        }
        let mut expected: BTreeMap<Vec<(&str, i64)>, f64> = BTreeMap::new();
        for (stack, amount) in scope.by_stack().enumerate() {
            if amount.is_empty() {
                continue;
            }
            let frames = profile.stack(stack).into_iter().rev();
            let mut lines: Vec<i64> = frames
                .map(|frame| i64::from(profile.symbols().frames()[frame].line))
                .collect();
            lines.resize(lines.len().max(1), 0);
            let stack = functions(&profile, stack).into_iter().zip(lines);
            *expected.entry(stack.collect()).or_default() += amount.bytes.value;
        }
        assert_eq!(found.len(), expected.len(), "{name}");
        for (stack, bytes) in expected {
            assert!(
                about(bytes, found[&stack], written.sample.len()),
                "{stack:?}"
            );
        }
    }
}

#[test]
fn labels_tell_domains_heaps_and_sizes_apart() {
    let profile = load("generated/domains.ctf");
    let scope = whole(&profile);
    let written = export(&scope, profile.end());
    let mut found: BTreeMap<(String, String, i64), i64> = BTreeMap::new();
    for sample in &written.sample {
        let text = |key| {
            let label = label(&written, sample, key);
            string(&written, label.str).to_owned()
        };
        let size = label(&written, sample, "bytes");
        assert_eq!(string(&written, size.num_unit), "bytes");
        *found
            .entry((text("domain"), text("heap"), size.num))
            .or_default() += sample.value[1];
    }
    let mut expected: BTreeMap<(String, String, i64), f64> = BTreeMap::new();
    scope.for_each_block(|block| {
        let words = block.size / 8 + u64::from(block.space.name() != "external");
        let class = i64::try_from((words * 8).next_power_of_two()).unwrap();
        let key = (block.lane.to_string(), block.space.name().to_owned(), class);
        *expected.entry(key).or_default() += block.amount.bytes.value;
    });
    assert!(expected.len() > 20);
    assert_eq!(found.len(), expected.len());
    for (key, bytes) in expected {
        assert!(
            about(bytes, found[&key] as f64, written.sample.len()),
            "{key:?}"
        );
    }
    // Far fewer than blocks, or the labels would be of no use.
    assert!(written.sample.len() <= profile.len());
}

#[test]
fn readers_learn_what_the_numbers_are() {
    let profile = load("mix-ocaml413/trace.ctf");
    let query = Query::parse("domain = 0").unwrap();
    let written = export(
        &Scope::new(&profile, &query, Estimator::Count),
        profile.end(),
    );
    let text = |number| string(&written, number);
    let types: Vec<_> = written
        .sample_type
        .iter()
        .map(|of| (text(of.r#type), text(of.unit)))
        .collect();
    assert_eq!(
        types,
        [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ]
    );
    assert_eq!(text(0), "");
    assert_eq!(text(written.default_sample_type), "inuse_space");
    let period = written.period_type.unwrap();
    assert_eq!((text(period.r#type), text(period.unit)), ("space", "bytes"));
    assert_eq!(written.period, 8000);
    assert_eq!(
        written.time_nanos / 1000,
        i64::try_from(profile.header().start_time).unwrap()
    );
    let duration = written.duration_nanos as f64 / 1e9;
    assert!((duration - profile.duration()).abs() < 1e-9);
    assert!(text(written.comment[0]).contains("estimates"));
    assert!(text(written.comment[0]).contains("(count)"));
    assert_eq!(text(written.mapping[0].filename), profile.header().program);
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let profile = load("generated/domains.ctf");
    let [a, b] = [(); 2].map(|()| {
        let mut file = Vec::new();
        pprof(&whole(&profile), profile.end(), &mut file).unwrap();
        file
    });
    assert!(a == b);
}

#[test]
fn a_full_disk_is_reported() {
    let profile = odd();
    assert!(pprof(&whole(&profile), profile.end(), &mut Full).is_err());
}
