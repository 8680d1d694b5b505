//! `heapline record --push`: the program does not notice, and no number is lost.
#![cfg(recording)]

use std::process::{Command, Output};

use heapline_testkit::collector::{Collector, Reply, dead_url};
use serde_json::Value;
use tempfile::TempDir;

use crate::examples::example;

/// The output of the program.
const PRINTED: &str = "44688890\n";

fn heapline(folder: &TempDir, arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(arguments)
        .current_dir(folder)
        .env("COLUMNS", "200")
        .env_remove("MEMTRACE")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    (output, said)
}

/// The objects and bytes that a query selects.
fn reported(folder: &TempDir, query: &str) -> [f64; 2] {
    let (output, said) = heapline(folder, &["summary", "t.ctf", "--json", "--where", query]);
    assert!(output.status.success(), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let allocated = &summary["allocated"];
    ["blocks", "bytes"].map(|unit| allocated[unit]["value"].as_f64().unwrap())
}

#[test]
fn profiles_of_all_intervals_sum_up_to_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collector::start(|_, _| Reply::status(200));
    let push = format!("pyroscope={}", server.url());
    let leak = example("leak");
    // Many blocks, so that the program takes its time.
    let options = ["record", "-o", "t.ctf", "--rate", "0.1", "--push", &push];
    let more = [
        "--push-interval",
        "100ms",
        "--service",
        "leaky",
        "--",
        &leak,
    ];
    let (output, said) = heapline(&folder, &[&options[..], &more].concat());
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), PRINTED);
    let received = server.received();
    let pushed = format!(
        "pushed {} profiles to pyroscope {}",
        received.len(),
        server.url()
    );
    assert!(said.contains(&pushed), "{said}");
    assert!(received.len() > 1, "several intervals: {said}");

    for request in &received {
        assert!(
            request.path.contains("name=leaky%7Bhost%3D"),
            "{}",
            request.path
        );
    }
    let (allocated, live) = crate::pushed::sums(&received);
    for (sums, query) in [(allocated, "size >= 0"), (live, "live at end")] {
        crate::pushed::assert_close(sums, reported(&folder, query), 20.0);
        assert!(sums.iter().all(|&sum| sum > 100_000), "{query}: {sums:?}");
    }
}

#[test]
fn a_program_does_not_notice_a_server_that_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let (leak, url) = (example("leak"), dead_url());
    let (first, second) = (format!("otlp={url}"), format!("parca={url}"));
    let options = ["record", "-o", "t.ctf", "--push-interval", "100ms"];
    let more = ["--push", &first, "--push", &second, "--", &leak];
    let (output, said) = heapline(&folder, &[&options[..], &more].concat());
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), PRINTED);
    for server in ["otlp", "parca"] {
        let lost = format!("profiles were not pushed to {server} {url} (");
        assert!(said.contains(&lost), "{said}");
    }
    assert!(
        said.contains("not sent before the end") && said.contains("refused"),
        "{said}"
    );
    assert!(reported(&folder, "size >= 0")[1] > 1e6);
}

#[test]
fn a_silent_server_changes_neither_output_nor_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collector::start(|_, _| Reply::Silence);
    let push = format!("otlp={}", server.url());
    let script = format!("{}; exit 7", example("leak"));
    // The shell is not recorded, and has no trace; so nothing is pushed.
    let options = [
        "record",
        "-o",
        "t.ctf",
        "--push",
        &push,
        "--follow-exec",
        "--",
    ];
    let (output, said) = heapline(&folder, &[&options[..], &["sh", "-c", &script]].concat());
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), PRINTED);

    let options = ["record", "--force", "-o", "t.ctf", "--push", &push, "--"];
    let (output, said) = heapline(&folder, &[&options[..], &[&example("leak")]].concat());
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), PRINTED);
    let lost = format!("1 of 1 profiles were not pushed to otlp {}", server.url());
    assert!(
        said.contains(&lost) && said.contains("no answer within"),
        "{said}"
    );
}

#[test]
fn options_that_need_a_server_say_so() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (
            &["record", "--label", "a=b", "--", "true"][..],
            "--header, --label and --service need --push",
        ),
        (
            &[
                "record",
                "--push",
                "otlp=http://localhost",
                "--push-interval",
                "1ms",
                "--",
                "true",
            ],
            "--push-interval must be at least 100ms",
        ),
        (
            &["record", "--push", "http://localhost", "--", "true"],
            "expected PROTOCOL=URL with one of otlp, pyroscope and parca",
        ),
        (
            &[
                "record",
                "--push",
                "otlp=http://localhost",
                "--keep",
                "9MiB",
                "--",
                "true",
            ],
            "cannot be used with",
        ),
    ] {
        let (output, said) = heapline(&folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn credentials_are_not_for_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collector::start(|_, _| Reply::status(200));
    let seen = |push: Option<&str>, own: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapline"));
        command.args(["record", "--force", "--follow-exec", "-o", "t.ctf"]);
        if let Some(protocol) = push {
            command.args(["--push", &format!("{protocol}={}", server.url())]);
        }
        let names = "env | sed -n 's/^\\(OTEL_[A-Z_]*\\)=.*/\\1/p' | sort";
        let script = format!("{names}; {} > /dev/null", example("leak"));
        command.args(["--", "sh", "-c", &script]);
        command.current_dir(&folder).env_remove("MEMTRACE");
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=a");
        command.env("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "authorization=b");
        match own {
            Some(headers) => command.env("HEAPLINE_PUSH_HEADERS", headers),
            None => command.env_remove("HEAPLINE_PUSH_HEADERS"),
        };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let both = "OTEL_EXPORTER_OTLP_HEADERS\nOTEL_EXPORTER_OTLP_PROFILES_HEADERS\n";
    assert_eq!(seen(Some("otlp"), None), "");
    // They may be meant for the program.
    assert_eq!(seen(None, None), both);
    assert_eq!(seen(Some("pyroscope"), None), both);
    assert_eq!(seen(Some("otlp"), Some("x-one=1")), both);
}
