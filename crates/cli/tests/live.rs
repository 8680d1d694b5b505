//! Traces of programs that run: every command sees all of them, and changes nothing.
//!
//! The program is this test itself. The commands also run in a pid namespace of their own, where it
//! cannot be seen.
#![cfg(recording)]

#[path = "common/recording.rs"]
mod recording;
#[path = "common/report_file.rs"]
mod report_file;
#[path = "common/unshare.rs"]
mod unshare;

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};
use std::time::SystemTime;

use heapline_recorder::{Recorder, tail};
use heapline_testkit::Killed;
use recording::{FUNCTION, allocate};
use report_file::{embedded, unpacked};
use serde_json::Value;
use unshare::unshare;

const BLOCKS: u64 = 5000;

/// Records blocks, and goes on recording: some of them are in the trace, some in its tail.
fn record(trace: &Path) -> &'static Recorder {
    let recorder = recording::record(trace, 1e-3);
    allocate(recorder, BLOCKS);
    recorder
}

/// How commands are run: as they are, and where the program seems to be dead.
fn ways() -> [Command; 2] {
    let heapline = env!("CARGO_BIN_EXE_heapline");
    [Command::new(heapline), unshare(heapline)]
}

fn run(arguments: &[&str]) -> [Output; 2] {
    ways().map(|mut command| {
        let output = command.args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert!(!said.contains("warning"), "{arguments:?}: {said}");
        output
    })
}

fn blocks(trace: &Path) -> u64 {
    let [here, elsewhere] = run(&["summary", "--strict", "--json", text(trace)]).map(|output| {
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        summary["subject"]["sampled_blocks"].as_u64().unwrap()
    });
    assert_eq!(here, elsewhere);
    here
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All that a reader could change.
fn state(trace: &Path) -> [(Vec<u8>, SystemTime); 2] {
    [trace.to_owned(), tail::path(trace)].map(|path| {
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        (fs::read(&path).unwrap(), modified)
    })
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.ctf");
    (folder, trace)
}

#[test]
fn every_command_sees_all_and_changes_nothing() {
    let (_folder, trace) = place();
    let recorder = record(&trace);
    let name = text(&trace);
    let before = state(&trace);
    for arguments in [
        &["summary", name][..],
        &["hotspots", name],
        &["tree", name],
        &["flame", name, "--format", "folded"],
        &["series", name, "--by", "function"],
        &["export", name, "--format", "csv", "-o", "-"],
        &["dump", name],
    ] {
        for output in run(arguments) {
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(printed.contains(FUNCTION), "{arguments:?}: {printed}");
        }
    }
    for arguments in [
        &["info", "--strict", name][..],
        &["leaks", name],
        &["heatmap", name],
        &["stats", name],
        &["diff", name, name],
        &["check", name, "--budget", "live at peak < 1TiB"],
    ] {
        run(arguments);
    }
    assert_eq!(blocks(&trace), BLOCKS);
    assert_eq!(state(&trace), before);
    recorder.stop();
    assert!(!tail::path(&trace).exists());
    assert_eq!(blocks(&trace), BLOCKS);
}

#[test]
fn reading_does_not_harm_a_recording_that_goes_on() {
    let (_folder, trace) = place();
    let recorder = record(&trace);
    assert_eq!(blocks(&trace), BLOCKS);
    allocate(recorder, BLOCKS);
    assert_eq!(blocks(&trace), 2 * BLOCKS);
    // As if the program was killed: its tail stays.
    recorder.abandon();
    let before = state(&trace);
    assert_eq!(blocks(&trace), 2 * BLOCKS);
    assert_eq!(state(&trace), before);
}

#[test]
fn cut_makes_one_file_of_a_trace_and_its_tail() {
    let (folder, trace) = place();
    record(&trace).abandon();
    let whole = folder.path().join("whole.ctf");
    run(&["cut", text(&trace), "-o", text(&whole), "--force"]);
    assert_eq!(blocks(&whole), BLOCKS);
    assert!(!tail::path(&whole).exists());
}

#[test]
fn a_report_has_all() {
    assert_eq!(
        heapline_server::missing_page(),
        None,
        "reports need the page"
    );
    let (folder, trace) = place();
    let recorder = record(&trace);
    let before = state(&trace);
    let page = folder.path().join("page.html");
    run(&["report", text(&trace), "-o", text(&page), "--force"]);
    let page = fs::read_to_string(&page).unwrap();
    let summary = unpacked(&embedded(&page), "summary?findings=0");
    assert_eq!(summary["report"]["subject"]["sampled_blocks"], BLOCKS);
    assert_eq!(state(&trace), before);
    recorder.stop();
}

#[test]
fn the_viewer_shows_all() {
    let (_folder, trace) = place();
    let recorder = record(&trace);
    let before = state(&trace);
    for mut command in ways() {
        let mut child = command
            .args(["view", "--no-browser", text(&trace)])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = heapline_testkit::served_address(&line);
        let get = |target: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {target} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            response
        };
        let summary = get("/api/v1/summary");
        assert!(
            summary.contains(&format!("\"sampled_blocks\":{BLOCKS}")),
            "{summary}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(state(&trace), before);
    recorder.stop();
}

#[test]
fn reports_say_that_the_program_still_runs() {
    let (_folder, trace) = place();
    let recorder = record(&trace);
    let says_so = || {
        run(&["summary", text(&trace)])
            .map(|output| String::from_utf8_lossy(&output.stderr).contains("is still recording to"))
    };
    assert_eq!(says_so(), [true; 2]);
    recorder.stop();
    assert_eq!(says_so(), [false; 2]);
}

#[test]
fn a_tail_of_another_recording_is_ignored_with_a_warning() {
    let (_folder, trace) = place();
    record(&trace).stop();
    let (_other_folder, other) = place();
    record(&other).abandon();
    fs::copy(tail::path(&other), tail::path(&trace)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(["info", "--strict", text(&trace)])
        .output()
        .unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let name = trace.display();
    let expected = format!(
        "cannot recover the last events of {name}: {name}.tail belongs to another recording; remove it"
    );
    assert!(said.contains(&expected), "{said}");
}

/// A command that runs until it is dropped.
struct Running {
    child: Killed,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_heapline"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child: Killed(child),
            lines,
        }
    }

    fn next_line(&mut self) -> Option<String> {
        self.lines.next().map(Result::unwrap)
    }
}

#[test]
fn a_followed_summary_is_printed_when_it_has_changed_and_ends_with_the_recording() {
    let (_folder, trace) = place();
    let recorder = record(&trace);
    let mut follow = Running::start(&[
        "summary",
        "--follow",
        "--interval",
        "0.1",
        "--json",
        text(&trace),
    ]);
    let mut next = || {
        let summary: Value = serde_json::from_str(&follow.next_line()?).unwrap();
        summary["subject"]["sampled_blocks"].as_u64()
    };
    assert_eq!(next(), Some(BLOCKS));
    for round in 2..5 {
        // Others may be printed on the way.
        allocate(recorder, BLOCKS);
        while next().unwrap() < round * BLOCKS {}
    }
    recorder.stop();
    let mut last = None;
    while let Some(blocks) = next() {
        last = Some(blocks);
    }
    assert_eq!(last, Some(4 * BLOCKS), "the end is news");
    assert!(follow.child.0.wait().unwrap().success());
}

#[test]
fn a_trace_that_is_complete_is_followed_to_its_end() {
    let (_folder, trace) = place();
    record(&trace).stop();
    let output = run(&["summary", "--follow", text(&trace)]);
    let plain = run(&["summary", text(&trace)]);
    let of = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    // The plain one suggests what to do next.
    let (followed, plain) = (of(&output[0]), of(&plain[0]));
    let first = followed.lines().take(8).collect::<Vec<_>>();
    assert_eq!(first, plain.lines().take(8).collect::<Vec<_>>());
}

/// A stream of server-sent events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(address: &str, query: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /api/v1/events{query} HTTP/1.1\r\nHost: {address}\r\n\r\n"
        )
        .unwrap();
        Self(BufReader::new(stream))
    }

    /// The data of the next event; `None` at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            // The last chunk is empty.
            if self.0.read_line(&mut line).unwrap() == 0 || line == "0\r\n" {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

#[test]
fn the_viewer_follows_a_recording() {
    let (_folder, trace) = place();
    let recorder = record(&trace);
    let mut view = Running::start(&["view", "--no-browser", "--port", "0", text(&trace)]);
    let line = view.next_line().unwrap();
    let address = heapline_testkit::served_address(&line);
    let get = |target: &str, headers: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /api/v1/{target} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        (head.to_lowercase(), body)
    };
    let blocks = |headers: &str| {
        let (head, summary) = get("summary", headers);
        let (_, epoch) = head.split_once("heapline-epoch: ").unwrap();
        let epoch: u64 = epoch.lines().next().unwrap().trim().parse().unwrap();
        (
            epoch,
            summary["subject"]["sampled_blocks"].as_u64().unwrap(),
        )
    };
    let mut events = Events::open(address, "");
    let first = events.next().unwrap();
    assert_eq!(
        (&first["epoch"], &first["recording"]),
        (&0.into(), &true.into())
    );
    assert_eq!(blocks(""), (0, BLOCKS));
    assert_eq!(get("status", "").1["recording"], true);
    // A page that is paused.
    let mut paused = Events::open(address, "?hold=0");
    paused.next().unwrap();
    let mut epoch = 0;
    for round in 2..8 {
        allocate(recorder, BLOCKS);
        // Those of the last round may be split over two events.
        while blocks("").1 < round * BLOCKS {
            let event = events.next().unwrap();
            assert!(event["epoch"].as_u64().unwrap() > epoch);
            assert_eq!(event["recording"], true);
            epoch = event["epoch"].as_u64().unwrap();
        }
    }
    assert!(epoch > 4, "more than are kept for all: {epoch}");
    assert_eq!(blocks("Heapline-Epoch: 0\r\n"), (0, BLOCKS), "it is held");
    assert_eq!(
        blocks("Heapline-Epoch: 1\r\n"),
        (epoch, 7 * BLOCKS),
        "it is not"
    );
    recorder.stop();
    let last = loop {
        let event = events.next().unwrap();
        if event["recording"] == false {
            break event;
        }
    };
    assert_eq!(last["error"], Value::Null);
    assert!(events.next().is_none(), "nothing more will come");
    assert_eq!(blocks("").1, 7 * BLOCKS);
    assert_eq!(
        blocks("Heapline-Epoch: 0\r\n"),
        (0, BLOCKS),
        "it is still held"
    );
    let (head, refused) = get("events?hold=x", "");
    assert!(head.contains("400"), "{head}: {refused}");
}
