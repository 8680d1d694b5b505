//! Heap snapshots in the API, the viewer and the report file.

use std::fs;

use heapline_engine::{Cancel, Request, SnapshotSession};
use heapline_server::{Progress, SiteSource, Subjects, load_snapshots, missing_page};
use serde_json::Value;

use super::{Viewer, assert_near, embedded, fixture, heapline, printed, request, trace, unpacked};

const BEFORE: &str = "generated/server.heap";
const AFTER: &str = "generated/server-later.heap";
/// It is made up, as the snapshots are.
const RECORDING: &str = "generated/domains.ctf";

fn session(name: &str, against: Option<&str>) -> SnapshotSession {
    let sites = SiteSource {
        given: Some(trace(&fixture(RECORDING))),
        find: Box::new(|_| Err("not needed".to_owned())),
    };
    let against = against.map(|name| trace(&fixture(name)));
    let subjects = Subjects::of_snapshots(trace(&fixture(name)), against, sites);
    load_snapshots(&subjects, &Progress::default()).unwrap()
}

fn answer(session: &SnapshotSession, request: &Request) -> Value {
    let answer = session.answer(request, &Cancel::default());
    let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", request.key()));
    serde_json::from_slice(&answer.json().unwrap()).unwrap()
}

#[test]
fn commands_print_what_the_api_answers_about_snapshots() {
    let session = session(AFTER, Some(BEFORE));
    for text in [
        "retained",
        "retained?by=module&rows=2",
        "retained?by=closure",
        "retained?at=Cache.table+%3E+Hashtbl.t&rows=3",
        "dominators",
        "dominators?min=0.1%25&depth=3",
        "why",
        "why?kind=string&rows=2",
        "why?address=0x8000",
        "why?held-by=Cache.table&depth=2",
        "why?site=Module2.*",
        "why?where=size+%3C+1KiB&rows=1",
        "findings?rows=1",
        "diff",
        "diff?rows=1",
    ] {
        let request = request(text);
        let command = session.command_line(&request).unwrap();
        let words = shlex::split(&command).unwrap();
        let arguments = [&words[1..], &["--json".to_owned()]].concat();
        assert_eq!(answer(&session, &request), printed(&arguments), "{command}");
    }
}

fn path(name: &str) -> String {
    fixture(name).display().to_string()
}

#[test]
fn a_snapshot_can_be_viewed() {
    let viewer = Viewer::start(&["view", &path(AFTER), "--against", &path(BEFORE)]);
    let retained = viewer.get("/api/v1/retained?by=module");
    assert!(retained.contains("\"name\":\"module Cache\""), "{retained}");
    let diff = viewer.get("/api/v1/diff");
    assert!(diff.contains("\"bytes\":511976"), "{diff}");
    let status = viewer.get("/api/v1/status");
    assert!(status.contains("\"kind\":\"snapshot\""), "{status}");
    assert!(status.contains("\"sites\":false"), "{status}");
    for (target, error) in [
        ("hotspots", "is a report on traces"),
        ("diff?of=peak", "heap snapshots are compared as a whole"),
        ("retained?at=nothing", "the snapshot has no `nothing`"),
        ("why?address=0x1", "no block at 0x1"),
        ("why?site=f", "need the recording of the same run"),
    ] {
        let answer = viewer.get(&format!("/api/v1/{target}"));
        assert!(answer.starts_with("HTTP/1.0 400"), "{answer}");
        assert!(answer.contains(error), "{target}: {answer}");
    }
}

#[test]
fn a_trace_has_no_reports_on_snapshots() {
    let viewer = Viewer::start(&["demo"]);
    let answer = viewer.get("/api/v1/retained");
    assert!(answer.starts_with("HTTP/1.0 400"), "{answer}");
    assert!(
        answer.contains("`retained` is a report on heap snapshots"),
        "{answer}"
    );
}

#[test]
fn snapshots_beside_a_trace_are_served_with_their_sites() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("server.ctf");
    fs::copy(fixture(RECORDING), &trace).unwrap();
    let mut snapshot = heapline_testkit::heap::server();
    // It was recorded elsewhere, and moved together with the trace.
    snapshot.property("trace", "/elsewhere/server.ctf");
    snapshot.property("time_ns", "1700000000123456789");
    fs::write(folder.path().join("server end.heap"), snapshot.finish()).unwrap();
    fs::copy(fixture(AFTER), folder.path().join("other.heap")).unwrap();
    let mut earlier = heapline_testkit::heap::server();
    earlier.property("trace", "server.ctf");
    earlier.property("time_ns", "1600000000000000000");
    fs::write(folder.path().join("z written last.heap"), earlier.finish()).unwrap();
    let viewer = Viewer::start(&["view", trace.to_str().unwrap()]);
    assert!(viewer.get("/api/v1/info").contains("\"packets\""));
    let status = viewer.get("/api/v1/status");
    let listed = [
        r#""snapshots":[{"name":"z written last.heap","time_us":1600000000000000,"file_bytes":"#,
        r#"},{"name":"server end.heap","time_us":1700000000123456,"file_bytes":"#,
    ];
    for listed in listed {
        assert!(status.contains(listed), "{status}");
    }
    let why = viewer.get("/snapshots/server%20end.heap/api/v1/why?site=Module2.*");
    assert!(why.starts_with("HTTP/1.0 200"), "{why}");
    let status = viewer.get("/snapshots/server%20end.heap/api/v1/status");
    assert!(status.contains("\"sites\":true"), "{status}");
    for name in ["other.heap", "..", "%2e%2e%2fserver.ctf", "server.ctf", ""] {
        let answer = viewer.get(&format!("/snapshots/{name}/api/v1/status"));
        assert!(answer.starts_with("HTTP/1.0 404"), "{name}: {answer}");
    }
}

#[test]
fn a_damaged_snapshot_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.heap");
    let bytes = fs::read(fixture(BEFORE)).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let viewer = Viewer::start(&["view", file.to_str().unwrap()]);
    let answer = viewer.get("/api/v1/retained");
    assert!(answer.starts_with("HTTP/1.0 503"), "{answer}");
    let status = viewer.get("/api/v1/status");
    assert!(status.contains("\"state\":\"failed\""), "{status}");
    assert!(status.contains("cut.heap: "), "{status}");
}

#[test]
fn files_that_do_not_go_together_are_refused() {
    let (snapshot, trace) = (path(BEFORE), path(RECORDING));
    for (arguments, message) in [
        (
            ["view", &snapshot, "--against", &trace],
            "is not a heap snapshot",
        ),
        (
            ["view", &trace, "--against", &snapshot],
            "is a heap snapshot",
        ),
        (
            ["view", &trace, "--trace", &trace],
            "--trace is for heap snapshots",
        ),
    ] {
        let output = heapline().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn a_report_of_a_snapshot_has_the_answers_in_it() {
    if let Some(reason) = missing_page() {
        heapline_testkit::missing(&format!(
            "a_report_of_a_snapshot_has_the_answers_in_it: {reason}"
        ));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let output = heapline()
        .args(["report", &path(AFTER), "--against", &path(BEFORE)])
        .args(["--trace", &path(RECORDING), "-o"])
        .arg(&file)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let page = fs::read_to_string(&file).unwrap();
    let directory = fixture("generated").display().to_string();
    assert!(
        !page.contains(&directory),
        "the directory is nobody's business"
    );
    let data = embedded(&page);
    assert_eq!(
        data["status"]["command"],
        "heapline view server-later.heap --against server.heap --trace domains.ctf"
    );
    let session = session(AFTER, Some(BEFORE));
    // As the page writes them.
    for key in [
        "dominators?min=0.1%25",
        "retained?rows=1000",
        "retained?by=kind&rows=1000",
        "retained?at=Cache.table&rows=1000",
        "why?rows=100",
        "why?held-by=Cache.table&rows=100",
        "why?kind=Hashtbl+binding&rows=100",
        "why?rows=100&site=Module20.function3",
        "findings?rows=20",
        "diff?rows=200",
    ] {
        let expected = answer(&session, &request(key));
        assert_near(&unpacked(&data, key)["report"], &expected, key);
    }
    assert_eq!(
        unpacked(&data, "why?rows=100&site=Module20.function3")["command"],
        "heapline why server-later.heap --site Module20.function3 --rows 100 --trace domains.ctf"
    );
}
