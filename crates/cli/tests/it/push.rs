//! `heapline push`: what a server gets is what the reports say.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use heapline_testkit::collector::{Collector, Received, Reply, dead_url};
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use prost::Message;
use serde_json::Value;

const TRACE: &str = "fixtures/mix-ocaml53/trace.ctf";

fn heapline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapline"));
    command
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("COLUMNS", "200");
    for variable in ["HEAPLINE_PUSH_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"] {
        command.env_remove(variable);
    }
    command
}

fn run(arguments: &[&str]) -> (Output, String) {
    let output = heapline(arguments).output().unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.stdout.is_empty() || arguments.contains(&"--json"));
    (output, said)
}

/// The objects and bytes that a query selects.
fn reported(query: &str) -> [f64; 2] {
    let (output, _) = run(&["summary", TRACE, "--json", "--where", query]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let allocated = &summary["allocated"];
    ["blocks", "bytes"].map(|unit| allocated[unit]["value"].as_f64().unwrap())
}

/// The sums of each type of samples in an OTLP request.
fn sums(request: &Received) -> Vec<(String, i64)> {
    let mut body = Vec::new();
    let mut gzip = GzDecoder::new(&request.body[..]);
    gzip.read_to_end(&mut body).unwrap();
    let message = ExportProfilesServiceRequest::decode(&body[..]).unwrap();
    let strings = message.dictionary.unwrap().string_table;
    let profiles = &message.resource_profiles[0].scope_profiles[0].profiles;
    let sum = |profile: &opentelemetry_proto::tonic::profiles::v1development::Profile| {
        let name = profile.sample_type.unwrap().type_strindex;
        let values = profile.samples.iter().flat_map(|sample| &sample.values);
        (
            strings[usize::try_from(name).unwrap()].clone(),
            values.sum(),
        )
    };
    profiles.iter().map(sum).collect()
}

fn assert_reported(request: &Received, allocated: [f64; 2], live: [f64; 2]) {
    let expected = [
        ("inuse_space", live[1]),
        ("inuse_objects", live[0]),
        ("alloc_space", allocated[1]),
        ("alloc_objects", allocated[0]),
    ];
    let sums = sums(request);
    assert_eq!(sums.len(), expected.len());
    for ((name, sum), (expected_name, value)) in sums.iter().zip(expected) {
        assert_eq!(name, expected_name);
        // Each of some hundred stacks is rounded.
        assert!((*sum as f64 - value).abs() < 200.0, "{name}: {sum} {value}");
        assert!(value > 1000.0, "{name} says something: {value}");
    }
}

#[test]
fn a_server_gets_the_numbers_of_the_reports() {
    let server = Collector::start(|_, _| Reply::status(200));
    let url = server.url();
    let server_url = format!("otlp={url}");
    let (output, said) = run(&["push", TRACE, &server_url, "--at", "peak"]);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("stacks to otlp {url}")), "{said}");
    let query = "inside Mix.*";
    let options = ["--where", query, "--at", "peak"];
    let (output, said) = run(&[&["push", TRACE, "--to", "otlp", &url], &options[..]].concat());
    assert!(output.status.success(), "{said}");
    let received = server.wait_for(2);
    assert_reported(
        &received[0],
        reported("size >= 0"),
        reported("live at peak"),
    );
    let live = format!("({query}) and live at peak");
    assert_reported(&received[1], reported(query), reported(&live));
}

#[test]
fn secrets_come_from_the_environment() {
    let server = Collector::start(|_, _| Reply::status(200));
    let arguments = [
        "push",
        TRACE,
        "--to",
        "otlp",
        &server.url(),
        "--header",
        "X-One: 1",
    ];
    let output = heapline(&arguments)
        .env(
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20a,x-one=2,x-two=2",
        )
        .env("HEAPLINE_PUSH_HEADERS", "x-two=3")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let received = server.wait_for(1).remove(0);
    assert_eq!(received.header("authorization"), Some("Bearer a"));
    assert_eq!(received.header("x-one"), Some("1"));
    assert_eq!(received.header("x-two"), Some("3"));
    assert!(!said.contains("Bearer"), "{said}");

    // Errors do not repeat them either.
    let arguments = [
        "push",
        TRACE,
        "--to",
        "otlp",
        &server.url(),
        "--header",
        "secret",
    ];
    let (output, said) = run(&arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("cannot use --header: expected NAME: VALUE"),
        "{said}"
    );
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn what_a_server_refuses_is_told() {
    let server = Collector::start(|_, number| match number {
        0 => Reply::Answer(422, Vec::new(), b"profile too old".to_vec()),
        _ => {
            let partial = ExportProfilesServiceResponse {
                partial_success: Some(ExportProfilesPartialSuccess {
                    rejected_profiles: 3,
                    error_message: "quota".to_owned(),
                }),
            };
            Reply::Answer(200, Vec::new(), partial.encode_to_vec())
        }
    });
    let url = server.url();
    for expected in [
        format!("cannot push to otlp {url}: 422 Unprocessable Entity: profile too old\n"),
        format!("otlp {url} has rejected 3 of 4 profiles: quota\n"),
    ] {
        let (output, said) = run(&["push", TRACE, "--to", "otlp", &url]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said.ends_with(&expected), "{said}");
    }
}

#[test]
fn a_server_that_is_down_is_tried_again_and_given_up() {
    let url = dead_url();
    let (output, said) = run(&["push", TRACE, "--to", "parca", &url]);
    assert_eq!(output.status.code(), Some(2));
    let retries = said
        .lines()
        .filter(|line| line.contains("; trying again in "));
    assert_eq!(retries.count(), 4, "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with(&format!("heapline: cannot push to parca {url}: ")));
}

#[test]
fn urls_that_cannot_work_are_refused_before_the_trace_is_read() {
    for (url, expected) in [
        (
            "localhost:4318",
            "expected a URL, such as http://localhost:4318",
        ),
        ("http://a:b@localhost", "a URL with credentials is visible"),
    ] {
        let (output, said) = run(&["push", "missing.ctf", "--to", "otlp", url]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains(expected), "{said}");
    }
    if !cfg!(feature = "tls") {
        let (_, said) = run(&["push", TRACE, "otlp=https://localhost"]);
        assert!(
            said.contains("cargo install --path crates/cli --features tls"),
            "{said}"
        );
    }
}
