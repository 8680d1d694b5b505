//! Folded stacks, flame graphs and speedscope files hold what the trace amounts to.

use crate::common;

use std::collections::BTreeMap;

use common::{Full, about, functions, load, odd, parse, profiles, whole};
use heapline_export::{Leaf, SvgOptions, collapsed, speedscope, svg};
use heapline_profile::reports::{HotspotOptions, TreeOptions, hotspots, tree};
use heapline_profile::{Look, Profile, Scope, Share};
use heapline_testkit::generate;
use heapline_trace::{Block, Source, Writer};
use serde_json::Value;

fn lines(scope: &Scope<'_>, leaf: Leaf) -> Vec<(String, u64)> {
    let mut text = Vec::new();
    collapsed(scope, leaf, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines()
        .map(|line| {
            let (stack, bytes) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), bytes.parse().unwrap())
        })
        .collect()
}

/// Bytes by the names of functions.
fn by_names<'a>(profile: &'a Profile, scope: &Scope<'_>) -> BTreeMap<Vec<&'a str>, f64> {
    let mut sums = BTreeMap::new();
    for (stack, amount) in scope.by_stack().enumerate() {
        if !amount.is_empty() {
            *sums.entry(functions(profile, stack)).or_default() += amount.bytes.value;
        }
    }
    sums
}

fn picture(scope: &Scope<'_>, options: &SvgOptions) -> String {
    let mut text = Vec::new();
    svg(scope, options, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut reader = quick_xml::Reader::from_str(&text);
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Text(text) => drop(text.xml10_content().unwrap()),
            _ => (),
        }
    }
    text
}

#[test]
fn each_stack_of_functions_is_one_line() {
    for (name, profile) in profiles() {
        if name == "odd" {
            continue;
        }
        let scope = whole(&profile);
        let expected = by_names(&profile, &scope);
        let lines = lines(&scope, Leaf::Function);
        assert_eq!(lines.len(), expected.len(), "{name}");
        for (stack, bytes) in lines {
            let stack: Vec<&str> = stack.split(';').collect();
            assert!(
                about(expected[&stack], bytes as f64, 1),
                "{name}: {stack:?}"
            );
        }
    }
}

#[test]
fn names_cannot_break_lines() {
    let profile = odd();
    let stacks: Vec<_> = lines(&whole(&profile), Leaf::Function);
    let name = "M.\"f\"<a&b>__12";
    let expected = [
        ("(unknown)".to_owned(), 8004),
        ("0x3".to_owned(), 8004),
        (name.to_owned(), 8004),
        (format!("{name};(unknown)"), (1 << 48) * 8),
        (format!("_ g_12;{name}"), 8004),
    ];
    for (stack, bytes) in &expected {
        let found = stacks.iter().find(|(found, _)| found == stack);
        let found = found.unwrap_or_else(|| panic!("{stack} is not in {stacks:?}"));
        assert!(found.1.abs_diff(*bytes) < 10, "{stack}: {found:?}");
    }
    assert_eq!(stacks.len(), expected.len());
}

/// A stack of which only the address of the allocation is known, and one of which nothing is known or left.
#[test]
fn stacks_without_functions_are_named_as_in_trees_and_tables() {
    let profile = odd();
    let own_code = Look {
        own_code: true,
        ..Look::default()
    };
    for (look, unknown) in [(Look::default(), "(unknown)"), (own_code, "(no own code)")] {
        let scope = whole(&profile);
        let nameless = |name: &str| name.starts_with("0x") || name.starts_with('(');
        let shown = scope.clone().showing(&look);
        let folded = lines(&shown, Leaf::Function).into_iter();
        let mut folded: Vec<String> = folded.map(|(stack, _)| stack).collect();
        folded.retain(|stack| nameless(stack));
        assert_eq!(folded, [unknown, "0x3"]);
        let options = TreeOptions {
            min: Share(0.0),
            look: look.clone(),
            ..TreeOptions::default()
        };
        let nodes = tree(&scope, &options).nodes.into_iter();
        let tops = nodes.filter(|node| node.parent.is_none());
        let mut tops: Vec<String> = tops.map(|node| node.label.name).collect();
        tops.retain(|name| nameless(name));
        tops.sort();
        assert_eq!(tops, folded);
        let options = HotspotOptions {
            look: Look {
                all_code: !look.own_code,
                ..look
            },
            ..HotspotOptions::default()
        };
        let rows = hotspots(&scope, &options).rows.into_iter();
        let rows: Vec<String> = rows.map(|row| row.label.name).collect();
        assert!(folded.iter().all(|name| rows.contains(name)), "{rows:?}");
    }
}

#[test]
fn stacks_can_end_with_the_place_of_allocation() {
    let profile = load("mix-ocaml413/trace.ctf");
    let scope = whole(&profile);
    let sites = lines(&scope, Leaf::Site);
    let big = sites
        .iter()
        .find(|(stack, _)| stack.ends_with("Mix.big;mix.ml:11"));
    assert_eq!(big.unwrap().1, 12_800_128);
    let sum: u64 = sites.iter().map(|(_, bytes)| bytes).sum();
    assert!(about(scope.total().bytes.value, sum as f64, sites.len()));
}

#[test]
fn flame_graphs_are_well_formed_and_show_all_bytes() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        for icicle in [false, true] {
            let options = SvgOptions {
                title: "<all> & \"everything\"".into(),
                icicle,
                ..SvgOptions::default()
            };
            let text = picture(&scope, &options);
            assert!(text.contains("&lt;all&gt; &amp;"), "{name}");
            if profile.is_empty() {
                assert!(text.contains("No blocks were sampled"));
                continue;
            }
            let total = text.split("<title>all (").nth(1).unwrap();
            let total = total.split(" bytes").next().unwrap().replace(',', "");
            let total: f64 = total.parse().unwrap();
            assert!(
                about(scope.total().bytes.value, total, profile.len()),
                "{name}"
            );
            assert_eq!(text, picture(&scope, &options), "{name}: colours differ");
        }
    }
}

#[test]
fn a_frame_is_as_wide_as_what_it_allocates() {
    let profile = load("mix-ocaml413/trace.ctf");
    let text = picture(&whole(&profile), &SvgOptions::default());
    assert!(text.contains("<title>Mix.big (12,800,128 bytes, 32.93%)</title>"));
    // What is below a function is in one piece.
    assert_eq!(text.matches("<title>Mix.words (").count(), 1);
}

#[test]
fn flame_graphs_leave_out_what_nobody_can_see() {
    let profile = load("generated/domains.ctf");
    let scope = whole(&profile);
    let text = picture(&scope, &SvgOptions::default());
    let frames = text.matches("<title>").count();
    assert!(frames > 100);
    // One huge stack of two functions, and the others are one frame.
    let huge = picture(&whole(&odd()), &SvgOptions::default());
    assert_eq!(huge.matches("<title>").count(), 4, "{huge}");
}

#[test]
fn speedscope_profiles_add_up() {
    for (name, profile) in profiles() {
        let scope = whole(&profile);
        let middle = profile.before(profile.micros(profile.end()) / 2);
        let mut text = Vec::new();
        speedscope(&scope, Some(middle), Leaf::Function, &mut text).unwrap();
        let file: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            file["$schema"],
            "https://www.speedscope.app/file-format-schema.json"
        );
        let frames = file["shared"]["frames"].as_array().unwrap();
        let peak = profile.peak(scope.estimator()).moment;
        let expected = [
            ("allocated", scope.clone()),
            ("live at peak", scope.live_at(peak)),
            ("live at end", scope.live_at(profile.end())),
            ("live at", scope.live_at(middle)),
        ];
        let written = file["profiles"].as_array().unwrap();
        assert_eq!(written.len(), expected.len());
        for (written, (title, scope)) in written.iter().zip(expected) {
            assert!(written["name"].as_str().unwrap().starts_with(title));
            assert_eq!(written["type"], "sampled");
            assert_eq!(written["unit"], "bytes");
            let samples = written["samples"].as_array().unwrap();
            let weights = written["weights"].as_array().unwrap();
            assert_eq!(samples.len(), weights.len());
            let mut found: BTreeMap<Vec<&str>, f64> = BTreeMap::new();
            for (sample, weight) in samples.iter().zip(weights) {
                let stack = sample.as_array().unwrap().iter().map(|frame| {
                    let frame = usize::try_from(frame.as_u64().unwrap()).unwrap();
                    frames[frame]["name"].as_str().unwrap()
                });
                let bytes = weight.as_f64().unwrap();
                assert!(found.insert(stack.collect(), bytes).is_none());
            }
            let sum: f64 = found.values().sum();
            assert!(about(written["endValue"].as_f64().unwrap(), sum, 0));
            let expected = by_names(&profile, &scope);
            assert_eq!(found.len(), expected.len(), "{name}, {title}");
            for (stack, bytes) in expected {
                assert!(about(bytes, found[&stack], 1), "{name}, {title}: {stack:?}");
            }
        }
    }
}

#[test]
fn speedscope_knows_where_allocations_are() {
    let profile = load("mix-ocaml413/trace.ctf");
    let mut text = Vec::new();
    speedscope(&whole(&profile), None, Leaf::Site, &mut text).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let site = frames.iter().find(|frame| frame["name"] == "mix.ml:11");
    let site = site.unwrap();
    assert_eq!(site["file"], "mix.ml");
    assert_eq!(site["line"], 11);
    let function = frames.iter().find(|frame| frame["name"] == "Mix.big");
    assert_eq!(function.unwrap()["file"], "mix.ml");
    assert_eq!(file["profiles"].as_array().unwrap().len(), 3);
}

#[test]
fn a_full_disk_is_reported() {
    let profile = odd();
    let scope = whole(&profile);
    assert!(collapsed(&scope, Leaf::Function, &mut Full).is_err());
    assert!(speedscope(&scope, None, Leaf::Function, &mut Full).is_err());
    assert!(svg(&scope, &SvgOptions::default(), &mut Full).is_err());
}

#[test]
fn flame_graphs_count_even_a_program_of_small_parts() {
    let mut writer = Writer::new(Vec::new(), &generate::info()).unwrap();
    let block = Block {
        length: 1,
        samples: 1,
        source: Source::Minor,
    };
    for id in 0..20_000 {
        writer.alloc(0, id, id, block, &[id], |_, _| ()).unwrap();
    }
    let profile = parse(&writer.finish().unwrap());
    let text = picture(&whole(&profile), &SvgOptions::default());
    let other = text.split("<title>(other) (").nth(1).unwrap();
    assert!(other.starts_with("160,080,"), "{other}");
    assert!(other.contains(" bytes, 100.00%)</title>"), "{other}");
}
