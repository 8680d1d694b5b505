//! Runs that are unlike most: idle for a while, or of programs that are not OCaml.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heapline_testkit as testkit;
use heapline_trace::{Block, DEEPER_CALLS, Frame, FrameSink, Source, TraceInfo, Writer};

/// A trace of blocks that are allocated at these times, in microseconds.
fn trace(folder: &Path, word_size: u8, source: Source, times: &[u64]) -> PathBuf {
    trace_of_stack(folder, word_size, source, times, &[1])
}

/// A trace of blocks with this stack, outermost caller first.
fn trace_of_stack(
    folder: &Path,
    word_size: u8,
    source: Source,
    times: &[u64],
    stack: &[u64],
) -> PathBuf {
    let info = TraceInfo {
        sample_rate: 1.0,
        word_size,
        start_time: 0,
        ..testkit::generate::info()
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    let block = Block {
        length: 3,
        samples: 3,
        source,
    };
    for (id, &time) in (0..).zip(times) {
        let frame = |_, frames: &mut FrameSink<'_>| {
            frames.push(Frame {
                file: b"program",
                name: b"main",
                line: 1,
                start_char: 0,
                end_char: 1,
            });
        };
        writer.alloc(0, time, id, block, stack, frame).unwrap();
    }
    let path = folder.join("trace.ctf");
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

fn heapline(arguments: &[&str], trace: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heapline"))
        .args(arguments)
        .arg(trace)
        .output()
        .unwrap()
}

fn assert_report(folder: &Path, trace: &Path) {
    if let Some(reason) = heapline_server::missing_page() {
        heapline_testkit::missing(&format!("reports of odd runs: {reason}"));
        return;
    }
    let page = folder.join("page.html");
    let output = heapline(&["report", "-o", page.to_str().unwrap()], trace);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_an_attached_recording_counts_is_said_beside_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    for (context, is_attached) in [
        (heapline_model::attached_context(4711, None), true),
        (
            heapline_model::attached_context(4711, Some("load test (2)")),
            true,
        ),
        ("attached to process 4711".to_owned(), false),
    ] {
        let info = TraceInfo {
            context: Some(context),
            ..testkit::generate::info()
        };
        let writer = Writer::new(Vec::new(), &info).unwrap();
        let trace = folder.path().join("trace.ctf");
        std::fs::write(&trace, writer.finish().unwrap()).unwrap();
        let summary = heapline(&["summary"], &trace);
        let text = String::from_utf8(summary.stdout).unwrap();
        assert_eq!(
            text.contains("Recorded since Heapline attached to the program"),
            is_attached,
            "{text}"
        );
        for report in ["info", "summary", "tree"] {
            let json = heapline(&[report, "--json"], &trace).stdout;
            let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
            let of = if report == "info" { "trace" } else { "subject" };
            let expected = is_attached.then_some(4711);
            assert_eq!(json[of]["attached_to"].as_u64(), expected, "{report}");
        }
    }
}

#[test]
fn a_run_whose_first_half_is_idle_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), 64, Source::Minor, &[900_000, 1_000_000]);
    assert_report(folder.path(), &trace);
    let halves = ["--window", "..50%", "--window", "50%.."];
    for of in ["allocated", "end"] {
        let compared = [&["diff", "--json", "--of", of][..], &halves].concat();
        let output = heapline(&compared, &trace);
        assert!(output.status.success(), "{output:?}");
        let diff: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let samples = |side: &str| diff["total"][side]["samples"].clone();
        assert_eq!((samples("before"), samples("after")), (0.into(), 6.into()));
    }
    let output = heapline(&["diff", "--window", "2s..3s", "--window", ".."], &trace);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the window 2s..3s contains no events"),
        "{said}"
    );
}

#[test]
fn native_programs_do_not_tell_promotions() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path(), 8, Source::External, &[0, 500, 1000]);
    for measure in ["promoted-bytes", "promotion-rate"] {
        let output = heapline(&["series", "--json", "--measure", measure], &trace);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = format!("cannot measure {measure}: this source does not tell promotions");
        assert!(said.contains(&expected), "{said}");
    }
    let output = heapline(&["check", "--budget", "promoted < 1MiB"], &trace);
    assert_eq!(
        output.status.code(),
        Some(2),
        "a budget that is always kept"
    );
    let output = heapline(&["hotspots"], &trace);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(
        table.contains("main") && !table.contains("promoted"),
        "{table}"
    );
    assert_report(folder.path(), &trace);
}

#[test]
fn stacks_that_were_cut_are_mentioned() {
    let folder = tempfile::tempdir().unwrap();
    let said = |stack: &[u64], command: &str| {
        let trace = trace_of_stack(folder.path(), 64, Source::Minor, &[1, 2], stack);
        let output = heapline(&[command], &trace);
        let [out, note] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (out.split_whitespace().collect::<Vec<_>>().join(" "), note)
    };
    let (info, _) = said(&[DEEPER_CALLS, 1], "info");
    assert!(
        info.contains("Stacks cut when they were recorded (--stack-depth)"),
        "{info}"
    );
    for command in ["summary", "hotspots", "tree", "leaks"] {
        let (_, note) = said(&[DEEPER_CALLS, 1], command);
        assert!(
            note.contains("were cut when they were recorded"),
            "{command}: {note}"
        );
        let (_, note) = said(&[1], command);
        assert_eq!(note, "", "{command}");
    }
    let (info, _) = said(&[1], "info");
    assert!(!info.contains("Stacks"), "{info}");
}
