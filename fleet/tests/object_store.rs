//! Datasets in an object store, with a server that speaks the protocol of S3.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use support::{free_port, wait_for};

/// A Python with the package moto.
const PYTHON: &str = "HEAPLINE_PYTHON";

const TRACES: [&str; 2] = ["mix-ocaml53/trace.ctf", "generated/domains.ctf"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fixtures")
        .join(name)
}

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts one with an empty bucket; `None`, after a message, if it is not here.
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os(PYTHON) else {
            heapline_testkit::missing(&format!("{PYTHON} is not set; see cargo xtask fleet"));
            return None;
        };
        let port = free_port();
        let child = Command::new(python)
            .args([
                "-m",
                "moto.server",
                "-H",
                "127.0.0.1",
                "-p",
                &port.to_string(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        wait_for(port);
        let answer = server.request("PUT", "/bucket");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Some(server)
    }

    /// Sends a request without a body.
    fn request(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: AWS4-HMAC-SHA256 \
             Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The first object with this name.
    fn key(&self, name: &str) -> String {
        let list = self.request("GET", "/bucket?list-type=2");
        let mut keys = list
            .split("<Key>")
            .filter_map(|rest| rest.split_once("</Key>"));
        let (key, _) = keys.find(|(key, _)| key.ends_with(name)).unwrap();
        key.to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_heapline-fleet"))
            .args(arguments)
            .env("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .output()
            .unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn traces_are_added_once_and_answer_as_in_a_folder() {
    let Some(server) = Server::start() else {
        return;
    };
    let location = "s3://bucket/some/fleet";
    let traces = TRACES.map(fixture);
    let mut add = vec![
        "dataset",
        "add",
        location,
        "--label",
        "service=a/b é",
        "--label",
        "version=1.0",
    ];
    add.extend(traces.iter().map(|trace| trace.to_str().unwrap()));
    let error = server.error(&["sql", location, "select 1"]);
    assert!(error.contains("is not a dataset"), "{error}");
    let added = server.ok(&add);
    assert_eq!(added.matches("added as service=a").count(), 2, "{added}");
    let again = server.ok(&add);
    assert_eq!(again.matches("already there").count(), 2, "{again}");

    let folder = tempfile::tempdir().unwrap();
    let local = heapline_dataset::Dataset::create(folder.path()).unwrap();
    let labels = heapline_dataset::Labels::parse(["service=a/b é", "version=1.0"]).unwrap();
    for trace in &traces {
        local.add(trace, &labels).unwrap();
    }
    for statement in [
        "select run, service, version, allocated_bytes from runs order by run",
        "select run, count(*), sum(allocated_bytes), sum(sampled_blocks) from sites group by run order by run",
        "select count(*), sum(estimated_bytes) from blocks",
        "select count(*) from stacks join frames using (run, frame_id)",
        "select labels['service'] from runs",
    ] {
        let there = server.ok(&["sql", location, statement, "--format", "csv"]);
        let here = server.ok(&[
            "sql",
            folder.path().to_str().unwrap(),
            statement,
            "--format",
            "csv",
        ]);
        assert_eq!(there, here, "{statement}");
    }
    assert!(server.ok(&["top", location]).contains("mean of 2 runs"));

    let listed = server.ok(&["dataset", "list", location, "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let runs = local.runs().unwrap();
    let runs: Vec<_> = runs.into_iter().map(|(_, run)| run.unwrap()).collect();
    assert_eq!(listed["runs"], serde_json::to_value(&runs).unwrap());
    let table = server.ok(&["dataset", "list", location]);
    assert_eq!(table.matches("a/b é    1.0 ").count(), 2, "{table}");
    let state = server.ok(&["dataset", "check", location]);
    assert_eq!(state, "2 runs, 0 problems\n");
}

#[test]
fn damaged_and_foreign_objects_are_found() {
    let Some(server) = Server::start() else {
        return;
    };
    let location = "s3://bucket/fleet";
    for trace in TRACES {
        server.ok(&["dataset", "add", location, fixture(trace).to_str().unwrap()]);
    }
    let sites = server.key("sites.parquet");
    server.request("PUT", &format!("/bucket/{sites}"));
    server.request("PUT", "/bucket/fleet/notes.txt");
    let output = server.run(&["dataset", "check", location]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("s3://bucket/{sites}: ")), "{text}");
    assert!(
        text.contains("s3://bucket/fleet/notes.txt: it does not belong to a dataset"),
        "{text}"
    );
    assert!(text.ends_with("2 runs, 2 problems\n"), "{text}");

    let runs = server.key("runs.parquet");
    server.request("PUT", &format!("/bucket/{runs}"));
    let output = server.run(&["dataset", "list", location]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(".ctf").count(), 1, "{text}");
}

#[test]
fn runs_without_their_last_file_are_not_read() {
    let Some(server) = Server::start() else {
        return;
    };
    let location = "s3://bucket/fleet";
    for trace in TRACES {
        server.ok(&["dataset", "add", location, fixture(trace).to_str().unwrap()]);
    }
    let mark = server.key("runs.parquet");
    let answer = server.request("DELETE", &format!("/bucket/{mark}"));
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let count = |table: &str| {
        let statement = format!("select count(distinct run) from {table}");
        server
            .ok(&["sql", location, &statement, "--format", "csv"])
            .lines()
            .last()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        (count("runs"), count("sites")),
        ("1".to_owned(), "1".to_owned())
    );
    let state = server.ok(&["dataset", "check", location]);
    assert_eq!(state, "1 run, 0 problems, 1 add under way\n");
}

#[test]
fn other_prefixes_and_buckets_are_clear_errors() {
    let Some(server) = Server::start() else {
        return;
    };
    let trace = fixture(TRACES[0]);
    let trace = trace.to_str().unwrap();
    server.request("PUT", "/bucket/other/file");
    let error = server.error(&["dataset", "add", "s3://bucket/other", trace]);
    assert!(
        error.contains("has other objects, such as other/file"),
        "{error}"
    );
    let error = server.error(&["dataset", "add", "s3://nowhere/fleet", trace]);
    assert!(error.contains("s3://nowhere/fleet"), "{error}");
    let error = server.error(&["dataset", "add", "folder", trace]);
    assert!(error.contains("use: heapline dataset add"), "{error}");
}
