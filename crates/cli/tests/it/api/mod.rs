//! The API, the viewer and the report file: the same numbers as the commands print.

mod snapshots;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::report_file::{embedded, unpacked};
use heapline_engine::{Cancel, Request, Session};
use heapline_server::{Progress, Subjects, Trace, load, missing_page};
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
        executable: None,
        file: None,
        open: Box::new(move || Ok(Box::new(std::io::Cursor::new(bytes.clone())))),
    }
}

pub(crate) fn session(name: &str, against: Option<&str>) -> Session {
    let against = against.map(|name| trace(&fixture(name)));
    let subjects = Subjects::new(trace(&fixture(name)), against);
    load(&subjects, &Progress::default()).unwrap()
}

/// The request of a text such as `hotspots?by=site`.
fn request(text: &str) -> Request {
    let (report, query) = text.split_once('?').unwrap_or((text, ""));
    let pairs = form_urlencoded::parse(query.as_bytes());
    Request::from_pairs(report, pairs).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn answer(session: &Session, request: &Request) -> Value {
    let answer = session.answer(request, &Cancel::default());
    let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", request.key()));
    serde_json::from_slice(&answer.json().unwrap()).unwrap()
}

/// Options are parsed and reports computed by the same code for both; what can still differ is how
/// traces are loaded, and the command line that "copy as command" gives.
#[test]
fn commands_print_what_the_api_answers() {
    let (before, after) = ("mix-ocaml413/trace.ctf", "mix-ocaml53/trace.ctf");
    let session = session(after, Some(before));
    for text in [
        "info",
        "summary?by=module&rows=2",
        "hotspots?live=peak&estimator=count",
        "hotspots?where=inside+%22Mix.words%22&where=lifetime+%3E+2ms",
        "hotspots?hide=Stdlib.*&hide=/tree/i&split-anonymous=true",
        "hotspots?keep-recursion=true",
        "hotspots?own-code=true&by=site&where=live+at+end",
        "leaks?mine=Mix.*",
        "tree?own-code=true&bottom-up=true",
        "diff?own-code=true&rows=5",
        "hotspots?where=size+%3E+1TiB",
        "summary?live=@00:45:47.43",
        "tree?bottom-up=true",
        "tree?focus=Mix.words&focus=Stdlib.Map.Make.add&live=90%25",
        "series",
        "series?from=10ms&to=peak&points=7&by=module",
        "series?callers-of=Stdlib.Map.Make.bal&callers-of=Stdlib.Map.Make.add&by=module",
        "stats?bins=5&segments=3",
        "heatmap?times=7",
        "leaks?by=function&tail=20%25&rows=2",
        "peak?without=inside+%22Mix.words%22&without=size+%3E+64KiB&window=10ms..90%25&rows=3",
        "blocks?sort=birth&rows=20&hide=Stdlib.*&where=live+at+end",
        "source?name=Mix.big&where=live+at+end&own-code=true",
        "source?name=map.ml&live=peak&all=true",
        "diff?window=..50%25&window=50%25..&of=end&by=site&rows=3",
        "diff?of=peak&by=site&rows=3",
        "diff?per=allocated&where=heap+%3D+minor&only-real=true",
        "diff?keep-recursion=true",
        "diff?window=..20%25&window=20%25..",
        "diff?window=..20%25&window=20%25..&per=none",
        "diff-tree?window=..20%25&window=20%25..&per=allocated&by=module",
        "diff-tree?of=peak&min=0.1%25&hide=Stdlib.*",
    ] {
        let request = request(text);
        let command = session.command_line(&request).unwrap();
        let words = shlex::split(&command).unwrap();
        let arguments = [&words[1..], &["--json".to_owned()]].concat();
        assert_eq!(answer(&session, &request), printed(&arguments), "{command}");
    }
}

/// The token in the URL of a line.
fn token_in(line: &str) -> Option<String> {
    let (_, token) = line.trim().split_once("#token=")?;
    Some(token.to_owned())
}

/// A viewer, ended with the test.
struct Viewer {
    child: Child,
    address: String,
    token: Option<String>,
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
        let address = heapline_testkit::served_address(&line);
        Self {
            address: address.to_owned(),
            token: token_in(&line),
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
    assert!(summary.contains("\"sampled_blocks\":4062"), "{summary}");
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
        let address = heapline_testkit::served_address(&line);
        Viewer {
            address: address.to_owned(),
            token: token_in(&line),
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
    let data = embedded(&page);
    assert_eq!(data["version"], 3);
    assert_eq!(data["status"]["command"], "heapline view trace.ctf");
    assert_eq!(data["status"]["state"], "ready");
    assert_eq!(data["slices"].as_array().unwrap().len(), 4);

    let unpacked = |key: &str| unpacked(&data, key);
    assert_eq!(unpacked("info")["report"]["file"], "trace.ctf");
    assert_eq!(
        unpacked("flame?min=0.1%25&where=live+at+peak")["command"],
        "heapline tree trace.ctf --where 'live at peak' --min 0.1%"
    );
    let session = session("mix-ocaml53/trace.ctf", None);
    // As the page writes them.
    for key in [
        "summary?findings=0",
        "hotspots?rows=1000",
        "hotspots?by=site&rows=1000&where=live+at+peak",
        "flame?bottom-up=true&min=0.1%25&where=live+at+end",
        "flame?min=0.1%25&where=allocated+in+0.013973s..0.041922s",
        "stats?where=allocated+in+0s..0.013973s",
        "heatmap",
        "series?branches=true&measure=allocation-rate&points=400",
        "leaks?rows=100",
        "diff?rows=5000&window=0s..0.02096s&window=0.02096s..0.041921s",
        "diff-tree?min=0.1%25&window=0s..0.02096s&window=0.02096s..0.041921s",
    ] {
        let expected = answer(&session, &request(key));
        assert_near(&unpacked(key)["report"], &expected, key);
    }
}

#[test]
fn the_report_of_the_demo_is_small() {
    if let Some(reason) = missing_page() {
        heapline_testkit::missing(&format!("the_report_of_the_demo_is_small: {reason}"));
        return;
    }
    let output = heapline()
        .args(["report", "demo", "-o", "-"])
        .output()
        .unwrap();
    assert!(output.status.success());
    // It is sent by mail and attached to tickets.
    let size = output.stdout.len();
    assert!(size <= 330_000, "{size} bytes");
}

/// Compares reports, except for digits that nobody sees.
fn assert_near(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!(
                (a - b).abs() <= 5e-6 * b.abs(),
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

/// A file that turns out to be unreadable after its header: the page says so, the terminal too, and the program ends.
#[test]
fn a_trace_that_cannot_be_loaded_ends_the_viewer_with_the_reason() {
    let output = heapline()
        .arg("view")
        .arg(fixture("damaged/truncated.ctf"))
        .args(["--strict", "--no-browser", "--port", "0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("heapline: "), "{error}");
    assert!(error.contains("truncated.ctf: damaged trace"), "{error}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("serving on"), "{printed}");
}

/// The status of the answer to a request of a user without rights.
fn status_for_nobody(viewer: &Viewer, headers: &str) -> String {
    let (host, port) = viewer.address.split_once(':').unwrap();
    let script = format!(
        "exec 3<>/dev/tcp/{host}/{port}
        printf 'GET /api/v1/status HTTP/1.0\\r\\nHost: {host}\\r\\n{headers}\\r\\n' >&3
        head -n 1 <&3"
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).uid(65534).gid(65534);
    let output = bash.output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn other_users_of_the_machine_need_the_token() {
    let test = "other_users_of_the_machine_need_the_token";
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        heapline_testkit::missing(&format!("{test}: needs root"));
        return;
    }
    let trace = fixture("odd/peakend.ctf").display().to_string();
    let viewer = Viewer::start(&["view", &trace]);
    assert_eq!(status_for_nobody(&viewer, ""), "HTTP/1.0 401 Unauthorized");
    let token = format!(
        "Authorization: Bearer {}\\r\\n",
        viewer.token.as_ref().unwrap()
    );
    assert_eq!(status_for_nobody(&viewer, &token), "HTTP/1.0 200 OK");
    let open = Viewer::start(&["view", &trace, "--no-token"]);
    assert_eq!(open.token, None);
    assert_eq!(status_for_nobody(&open, ""), "HTTP/1.0 200 OK");
}

#[test]
fn no_token_is_refused_where_other_machines_can_connect() {
    let trace = fixture("odd/peakend.ctf");
    let options = [
        "--no-token",
        "--listen",
        "0.0.0.0",
        "--no-browser",
        "--port",
        "0",
    ];
    let output = heapline().arg("view").arg(&trace).args(options).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("to all who can reach 0.0.0.0"), "{error}");
}
