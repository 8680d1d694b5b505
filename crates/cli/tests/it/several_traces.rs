//! `heapline summary` of several traces.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TRACES: [&str; 3] = [
    "mix-ocaml53/trace.ctf",
    "odd/empty.ctf",
    "mix-ocaml413/trace.ctf",
];

fn heapline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"))
        .env("COLUMNS", "160")
        .output()
        .unwrap()
}

fn summary(arguments: &[&str]) -> Value {
    let output = heapline(&[&["summary", "--json"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn assert_near(value: &Value, expected: f64, what: &str) {
    let value = value.as_f64().unwrap();
    let error = (value - expected).abs();
    assert!(error <= 1e-9 * expected.abs(), "{what}: {value} {expected}");
}

fn sum(values: &[&Value], f: impl Fn(f64) -> f64) -> f64 {
    values.iter().map(|value| f(value.as_f64().unwrap())).sum()
}

#[test]
fn amounts_add_up_and_so_do_variances() {
    for options in [
        &[][..],
        &["--where", "size >= 64"],
        &["--estimator", "count"],
    ] {
        let all = summary(&[&TRACES, options].concat());
        let each = TRACES.map(|trace| summary(&[&[trace], options].concat()));
        for total in ["allocated", "promoted", "collected"] {
            // Where nothing was sampled, the error is an upper bound and not a deviation.
            let used: Vec<&Value> = each
                .iter()
                .filter(|one| one[total]["samples"] != 0)
                .collect();
            if used.is_empty() {
                continue;
            }
            for unit in ["bytes", "blocks"] {
                let of = |field: &'static str| -> Vec<&Value> {
                    used.iter().map(|one| &one[total][unit][field]).collect()
                };
                let figures = &all[total][unit];
                assert_near(&figures["value"], sum(&of("value"), |v| v), total);
                let variance = sum(&of("error"), |error| error * error);
                assert_near(&figures["error"], variance.sqrt(), total);
            }
        }
        // A row for each trace has what its own summary says.
        let rows = all["traces"].as_array().unwrap();
        assert_eq!(rows.len(), TRACES.len());
        for (trace, one) in TRACES.iter().zip(&each) {
            let row = rows.iter().find(|row| row["file"] == *trace).unwrap();
            for field in [
                "subject",
                "allocated",
                "live_at_peak",
                "live_at_end",
                "peak_time",
            ] {
                assert_eq!(row[field], one[field], "{trace}: {field}");
            }
        }
        let bytes = |row: &Value| row["allocated"]["bytes"]["value"].as_f64().unwrap();
        assert!(rows.is_sorted_by(|a, b| bytes(a) >= bytes(b)));
    }
}

#[test]
fn places_are_ranked_over_all_traces() {
    let by = ["--by", "module", "--rows", "1000"];
    let all = summary(&[&TRACES[..], &by].concat());
    let each = TRACES.map(|trace| summary(&[&[trace], &by[..]].concat()));
    let list = |report: &Value, kind: &str| -> Vec<Value> {
        let mut lists = report["lists"].as_array().unwrap().iter();
        let list = lists.find(|list| list["kind"] == kind).unwrap();
        list["rows"].as_array().unwrap().clone()
    };
    for kind in ["allocated", "blocks"] {
        let rows = list(&all, kind);
        assert!(rows.len() > 3, "{all:#}");
        let mut percent = 0.0;
        for row in &rows {
            let parts: Vec<Value> = each
                .iter()
                .flat_map(|one| list(one, kind))
                .filter(|part| part["label"] == row["label"])
                .collect();
            let values: Vec<&Value> = parts
                .iter()
                .map(|part| &part["figures"]["bytes"]["value"])
                .collect();
            let expected = sum(&values, |value| value);
            assert_near(&row["figures"]["bytes"]["value"], expected, kind);
            percent += row["percent"].as_f64().unwrap();
        }
        assert!((percent - 100.0).abs() < 1e-6, "{percent}");
    }
}

#[test]
fn traces_are_listed_by_what_they_allocate() {
    let output = heapline(&[&["summary"], &TRACES[..]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("3 traces\n"), "{text}");
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
    assert!(place("  mix-ocaml413/trace.ctf") < place("  mix-ocaml53/trace.ctf"));
    assert!(text.contains("1 trace has no sampled blocks"), "{text}");
    assert!(!text.contains("odd/empty.ctf"), "{text}");
    assert!(
        text.contains("heapline summary mix-ocaml413/trace.ctf"),
        "{text}"
    );
}

#[test]
fn traces_without_any_sample_are_bounded() {
    let all = summary(&["odd/empty.ctf", "./odd/empty.ctf"]);
    let one = summary(&["odd/empty.ctf"]);
    assert_eq!(all["sampled_blocks"], 0);
    // Twice the memory of which nothing is known is not twice as likely to be missed.
    assert_eq!(all["allocated"], one["allocated"]);
}

#[test]
fn names_that_no_trace_has_are_warned_about_once() {
    let warned = |query: &str| {
        let output = heapline(&[&["summary", "--where", query], &TRACES[..]].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(warned("inside \"Mix.words\""), "", "some have it");
    let said = warned("inside \"No.such\"");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("no trace has a function \"No.such\""),
        "{said}"
    );
}

#[test]
fn mistakes_are_errors() {
    let error = |arguments: &[&str]| {
        let output = heapline(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = error(&[
        "summary",
        "odd/empty.ctf",
        "odd/peakend.ctf",
        "odd/empty.ctf",
    ]);
    assert!(said.contains("odd/empty.ctf is given twice"), "{said}");
    let said = error(&["summary", "odd/empty.ctf", "odd/missing.ctf"]);
    assert!(said.contains("cannot open odd/missing.ctf"), "{said}");
    assert!(error(&["summary"]).contains("TRACE"));
}

#[test]
fn groups_and_queries_that_one_trace_does_not_tell_are_refused() {
    let traces = [
        "mix-ocaml53/trace.ctf",
        "spacetime/mix/spacetime.profile.zst",
    ];
    for (option, value) in [("--by", "size"), ("--where", "size > 1k")] {
        let output = heapline(&[&["summary", option, value], &traces[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains(traces[1]) && said.contains("does not tell"),
            "{said}"
        );
    }
}

#[test]
fn snapshots_do_not_tell_how_many_blocks_were_allocated() {
    let profiles = ["mix", "events"].map(|name| format!("spacetime/{name}/spacetime.profile.zst"));
    let profiles = [&*profiles[0], &*profiles[1]];
    let text = heapline(&[&["summary"], &profiles[..]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("The figures are exact. Live memory is known at snapshots"),
        "{text}"
    );
    assert!(
        !text.contains("Blocks allocated") && !text.contains("NaN"),
        "{text}"
    );
    let all = summary(&profiles);
    assert!(all["allocated"]["blocks"]["value"].is_null(), "{all}");
    let each = profiles.map(|profile| summary(&[profile]));
    let bytes = each
        .each_ref()
        .map(|one| &one["allocated"]["bytes"]["value"]);
    assert_near(
        &all["allocated"]["bytes"]["value"],
        sum(&bytes, |bytes| bytes),
        "bytes",
    );
    // What was alive of blocks that were allocated in a span of time is not known.
    let span = summary(&[&profiles[..], &["--where", "allocated in 2s..3s"]].concat());
    assert!(
        span["traces"][0]["live_at_peak"]["bytes"]["value"].is_null(),
        "{span}"
    );
}
