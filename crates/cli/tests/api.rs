//! The API, the viewer and the report file: the same numbers as the commands print.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heapline_server::{Engine, Progress, Request, Subjects, Trace, missing_page};
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

fn heapline() -> Command {
    Command::new(env!("CARGO_BIN_EXE_heapline"))
}

fn printed(arguments: &[String]) -> Value {
    let output = heapline().args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn trace(path: &Path) -> Trace {
    let bytes = std::fs::read(path).unwrap();
    Trace {
        path: path.display().to_string(),
        size: Some(bytes.len() as u64),
        strict: false,
        open: Box::new(move || Ok(Box::new(std::io::Cursor::new(bytes.clone())))),
    }
}

fn engine(name: &str, against: Option<&str>) -> Engine {
    let subjects = Subjects {
        trace: trace(&fixture(name)),
        against: against.map(|name| trace(&fixture(name))),
    };
    Engine::load(Arc::new(subjects), &Progress::default()).unwrap()
}

fn answer(engine: &Engine, request: &Request) -> Value {
    let answer = engine.answer(request);
    serde_json::from_slice(&answer.unwrap_or_else(|error| panic!("{}: {error}", request.key())))
        .unwrap()
}

/// A report with parameters, written as `name=value`; flags without a value.
fn asked(text: &str) -> (Request, Vec<String>) {
    let mut words = text.split(" | ");
    let report = words.next().unwrap();
    let mut request = Request::new(report);
    let mut options = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => {
                request = request.with(name, value);
                options.extend([format!("--{name}"), value.to_owned()]);
            }
            None => {
                request = request.with(word, "true");
                options.push(format!("--{word}"));
            }
        }
    }
    (request, options)
}

const QUESTIONS: [&str; 44] = [
    "info",
    "summary",
    "summary | by=module | rows=2",
    "summary | where=heap = major",
    "hotspots",
    "hotspots | by=site | rows=1000",
    "hotspots | by=address | sort=inclusive | rows=3",
    "hotspots | by=domain | sort=peak",
    "hotspots | by=size | sort=end",
    "hotspots | by=age | sort=blocks",
    "hotspots | live=peak | estimator=count",
    "hotspots | where=inside \"Mix.words\" | where=lifetime > 2ms",
    "hotspots | hide=Stdlib.* | hide=/tree/i | split-anonymous",
    "hotspots | keep-recursion",
    "tree",
    "tree | bottom-up",
    "tree | bottom-up | by=site",
    "tree | by=module | min=0% | sites",
    "tree | by=file | depth=2 | min=0.5%",
    "tree | focus=Mix.words",
    "tree | focus=Mix.words | focus=Stdlib.Map.Make.add | live=90%",
    "tree | hide=Stdlib.* | keep-recursion | min=0.1%",
    "tree | details | min=0.1%",
    "series",
    "series | measure=allocation-rate | by=function | top=3 | points=17",
    "series | measure=promoted-bytes | by=domain",
    "series | measure=live-words | by=size | where=promoted",
    "series | from=10ms | to=peak | points=7 | by=module",
    "series | from=50%",
    "series | to=20ms | measure=allocated-bytes",
    "series | callers-of=Stdlib.Map.Make.bal",
    "series | callers-of=Stdlib.Map.Make.bal | callers-of=Stdlib.Map.Make.add | by=module",
    "stats",
    "stats | bins=5 | segments=3 | where=size > 10w",
    "heatmap",
    "heatmap | times=7 | where=heap = major",
    "leaks",
    "leaks | by=function | tail=20% | rows=2",
    "diff | window=..50% | window=50%..",
    "diff | window=..50% | window=50%.. | of=end | by=site | rows=3",
    "diff | window=..50% | window=50%.. | only-real | rows=2",
    "diff | window=0s..10ms | window=10ms..20ms | where=heap = minor | hide=Stdlib.*",
    "hotspots | where=size > 1TiB",
    "summary | live=@00:00:01",
];

#[test]
fn the_api_answers_what_the_commands_print() {
    let name = "mix-ocaml53/trace.ctf";
    let engine = engine(name, None);
    for question in QUESTIONS {
        let (request, options) = asked(question);
        let path = fixture(name).display().to_string();
        let command = [request.report().to_owned(), path];
        let arguments = [&command[..], &options, &["--json".to_owned()]].concat();
        assert_eq!(answer(&engine, &request), printed(&arguments), "{question}");
    }
}

#[test]
fn two_traces_are_compared_as_the_command_does() {
    let (before, after) = ("mix-ocaml413/trace.ctf", "mix-ocaml53/trace.ctf");
    let engine = engine(after, Some(before));
    for question in [
        "diff",
        "diff | of=peak | by=site | rows=3",
        "diff | of=end | by=module | only-real",
        "diff | per=time",
        "diff | per=allocated | where=heap = minor",
    ] {
        let (request, options) = asked(question);
        let paths = [before, after].map(|name| fixture(name).display().to_string());
        let command = [&["diff".to_owned()][..], &paths, &options].concat();
        let arguments = [&command[..], &["--json".to_owned()]].concat();
        assert_eq!(answer(&engine, &request), printed(&arguments), "{question}");
    }
}

#[test]
fn a_flame_graph_is_the_tree_in_columns() {
    let name = "mix-ocaml53/trace.ctf";
    let engine = engine(name, None);
    for options in [
        "min=0.1%",
        "min=0% | bottom-up",
        "focus=Mix.words",
        "by=module | sites",
    ] {
        let flame = answer(&engine, &asked(&format!("flame | {options}")).0);
        let tree = answer(&engine, &asked(&format!("tree | details | {options}")).0);
        assert_eq!(flame["total"], tree["total"]);
        for part in ["nodes", "callers"] {
            let (columns, nodes) = (&flame[part], tree[part].as_array().unwrap());
            assert_eq!(columns["parent"].as_array().unwrap().len(), nodes.len());
            for (i, node) in nodes.iter().enumerate() {
                let is_other = node["kind"] == "other";
                let label = columns["label"][i].as_i64().unwrap();
                match usize::try_from(label) {
                    Ok(label) => assert_eq!(flame["labels"][label], node["label"]),
                    Err(_) => assert!(is_other),
                }
                assert_eq!(
                    columns["parent"][i].as_i64(),
                    node["parent"].as_i64().or(Some(-1))
                );
                assert_eq!(columns["bytes"][i], node["total"]["bytes"]["value"]);
                assert_eq!(columns["error"][i], node["total"]["bytes"]["error"]);
                assert_eq!(columns["own"][i], node["own"]["bytes"]["value"]);
                assert_eq!(columns["blocks"][i], node["total"]["blocks"]["value"]);
                assert_eq!(columns["samples"][i], node["total"]["samples"]);
                assert_eq!(columns["at_end"][i], node["details"]["live_at_end"]);
                assert_eq!(columns["promoted"][i], node["details"]["promoted"]);
            }
        }
    }
    let few = answer(&engine, &asked("flame | min=0% | max-nodes=5").0);
    assert!(few["nodes"]["parent"].as_array().unwrap().len() <= 5);
    assert!(few["min"].as_f64().unwrap() > 0.0);
}

#[test]
fn names_are_completed_by_what_is_allocated_in_them() {
    let engine = engine("mix-ocaml53/trace.ctf", None);
    let names = |question: &str| -> Vec<String> {
        let answer = answer(&engine, &asked(question).0);
        let names = answer["names"].as_array().unwrap().iter();
        names
            .map(|name| name["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names("complete | q=MAP.make"),
        [
            "Stdlib.Map.Make.add",
            "Stdlib.Map.Make.bal",
            "Stdlib.Map.Make.create"
        ]
    );
    assert_eq!(names("complete | kind=module | rows=1"), ["Mix"]);
    assert_eq!(names("complete | kind=file | q=mix"), ["mix.ml"]);
    assert!(names("complete | q=nothing like that").is_empty());
}

/// A viewer, ended with the test.
struct Viewer {
    child: Child,
    address: String,
}

impl Viewer {
    fn start(arguments: &[&str]) -> Self {
        let mut child = heapline()
            .args(arguments)
            .args(["--port", "0", "--no-browser"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (_, address) = line.trim().split_once("http://").unwrap();
        Self {
            address: address.trim_end_matches('/').to_owned(),
            child,
        }
    }

    fn get(&self, target: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(stream, "GET {target} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_demo_is_served_where_there_is_no_display() {
    let viewer = Viewer::start(&["demo"]);
    let summary = viewer.get("/api/v1/summary");
    assert!(summary.contains("\"sampled_blocks\":2787"), "{summary}");
    let page = viewer.get("/");
    match missing_page() {
        None => assert!(page.contains("<title>Heapline</title>"), "{page}"),
        Some(reason) => assert!(page.contains(reason), "{page}"),
    }
}

#[test]
fn a_trace_from_a_pipe_can_be_viewed() {
    let trace = std::fs::File::open(fixture("mix-ocaml53/trace.ctf")).unwrap();
    let mut viewer = {
        let mut child = heapline()
            .args(["view", "-", "--port", "0", "--no-browser"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::copy(&mut &trace, &mut stdin).unwrap();
        drop(stdin);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (_, address) = line.trim().split_once("http://").unwrap();
        Viewer {
            address: address.trim_end_matches('/').to_owned(),
            child,
        }
    };
    assert!(
        viewer
            .get("/api/v1/summary")
            .contains("\"sampled_blocks\":2787")
    );
    // Read once more, from the beginning.
    assert!(viewer.get("/api/v1/info").contains("\"packets\""));
    assert!(viewer.child.try_wait().unwrap().is_none());
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let trace = fixture("odd/empty.ctf");
    let output = heapline()
        .args([
            "view",
            trace.to_str().unwrap(),
            "--no-browser",
            "--port",
            &port,
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains(&format!("on port {port}")), "{error}");
}

#[test]
fn traces_that_are_not_there_are_not_served() {
    let output = heapline().args(["view", "nowhere.ctf"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cannot open nowhere.ctf"), "{error}");
}

#[test]
fn a_report_has_the_answers_in_it() {
    if let Some(reason) = missing_page() {
        heapline_testkit::missing(&format!("a_report_has_the_answers_in_it: {reason}"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let trace = fixture("mix-ocaml53/trace.ctf");
    let report = || {
        let mut command = heapline();
        command.args(["report", trace.to_str().unwrap(), "--slices", "3", "-o"]);
        command.arg(&path).output().unwrap()
    };
    let output = report();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(report().status.code(), Some(2), "nothing is overwritten");

    let page = std::fs::read_to_string(&path).unwrap();
    for outside in ["src=\"", "href=\"./", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    let folder = trace.parent().unwrap().display().to_string();
    assert!(
        !page.contains(&folder),
        "nobody needs to know where the trace was"
    );
    let (_, data) = page
        .split_once("<script id=\"heapline-report\" type=\"application/json\">")
        .unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["version"], 1);
    assert_eq!(data["status"]["state"], "ready");
    assert_eq!(data["slices"].as_array().unwrap().len(), 4);

    let unpacked = |key: &str| -> Value {
        let packed = data["answers"][key]
            .as_str()
            .unwrap_or_else(|| panic!("{key}"));
        let packed = BASE64_STANDARD.decode(packed).unwrap();
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(&packed[..])
            .read_to_string(&mut text)
            .unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(unpacked("info")["file"], "trace.ctf");
    let engine = engine("mix-ocaml53/trace.ctf", None);
    for question in [
        "summary",
        "hotspots | rows=1000",
        "hotspots | by=site | rows=1000 | where=live at peak",
        "flame | bottom-up | min=0.1% | where=live at end",
        "flame | min=0.1% | where=allocated in 0.013973s..0.041922s",
        "stats | where=allocated in 0s..0.013973s",
        "heatmap",
        "series | by=module | measure=allocated-bytes | points=400",
        "leaks | rows=100",
        "diff | rows=200 | window=0s..0.027947s | window=0.027947s..0.041922s",
    ] {
        let (request, _) = asked(question);
        let expected = answer(&engine, &request);
        let found = unpacked(&request.key());
        assert_near(&found, &expected, question);
    }
}

/// The same but for digits that nobody sees.
fn assert_near(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!(
                (a - b).abs() <= 1e-8 * b.abs(),
                "{place}: {a} instead of {b}"
            );
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{place}");
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                assert_near(a, b, &format!("{place}[{i}]"));
            }
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{place}");
            for (name, a) in a {
                assert_near(a, &b[name], &format!("{place}.{name}"));
            }
        }
        (a, b) => assert_eq!(a, b, "{place}"),
    }
}
