//! Traces of programs that run: every command sees all of them, and changes nothing.
//!
//! The program is this test itself. The commands also run in a pid namespace of their own, where it
//! cannot be seen.
#![cfg(recording)]

#[path = "common/unshare.rs"]
mod unshare;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heapline_recorder::gaps::Unit;
use heapline_recorder::{Block, Frame, Options, Recorder, Source, TaggedCode, tail};
use serde_json::Value;
use unshare::unshare;

const BLOCKS: u64 = 5000;

/// The function that all blocks are allocated by.
const FUNCTION: &str = "Live.allocate";

/// Records blocks, and goes on recording: some of them are in the trace, some in its tail.
fn record(trace: &Path) -> &'static Recorder {
    let recorder = Recorder::start(&Options {
        trace: trace.to_owned(),
        supervised: false,
        sample_rate: 1e-3,
        unit: Unit::Word,
        context: None,
        runtime_params: String::new(),
        max_size: None,
        stack_depth: None,
        first_id: 0,
    })
    .unwrap();
    (0..BLOCKS).for_each(|_| allocate(recorder));
    recorder
}

fn allocate(recorder: &Recorder) {
    let block = Block {
        length: 3,
        samples: 1,
        source: Source::Minor,
    };
    let frame = Frame {
        file: b"live.ml",
        name: FUNCTION.as_bytes(),
        line: 1,
        start_char: 2,
        end_char: 3,
    };
    let stack = [TaggedCode::new(7)];
    let id = recorder.alloc(0, block, &stack, |_, frames| frames.push(frame));
    id.expect("it is recorded");
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
    (0..BLOCKS).for_each(|_| allocate(recorder));
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
    run(&[
        "report",
        text(&trace),
        "-o",
        text(&page),
        "--force",
        "--slices",
        "1",
    ]);
    let page = fs::read_to_string(&page).unwrap();
    let (_, data) = page
        .split_once("<script id=\"heapline-report\" type=\"application/json\">")
        .unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let packed = data["answers"]["summary"].as_str().unwrap();
    let packed = BASE64_STANDARD.decode(packed).unwrap();
    let summary: Value =
        serde_json::from_reader(flate2::read::DeflateDecoder::new(&packed[..])).unwrap();
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
        let (_, address) = line.trim().split_once("http://").unwrap();
        let address = address.trim_end_matches('/');
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
