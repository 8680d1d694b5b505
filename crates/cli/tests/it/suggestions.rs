//! Commands that reports suggest: they do what they say, whatever things are called.

use std::path::Path;
use std::process::{Command, Output};

use heapline_testkit as testkit;
use heapline_trace::{Block, Frame, FrameSink, Source, TraceInfo, Writer};

/// Names that a shell, a query or a terminal could take for something else.
const NAMES: [&str; 7] = [
    "Parser.parse'",
    "Ops.*",
    "M.it's \"both\" \\ quotes",
    "x\"' ; touch pwned #",
    "x'; touch pwned; '",
    "$(touch pwned)`touch pwned`",
    "bell\u{7} and\u{1b}[31m colour",
];

/// A trace of one function that allocates more and more.
fn leak(path: &Path, name: &str) {
    let info = TraceInfo {
        sample_rate: 1.0,
        word_size: 64,
        start_time: 0,
        ..testkit::generate::info()
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    let block = Block {
        length: 3,
        samples: 3,
        source: Source::Minor,
    };
    // Neighbours, which a pattern that is not exact would take too.
    for (id, name) in [(0, "Ops.add"), (1, "Parser.parse")] {
        let named = |_, frames: &mut FrameSink<'_>| push(frames, name);
        writer.alloc(0, id, id, block, &[id + 100], named).unwrap();
    }
    for id in 2..2000 {
        let named = |_, frames: &mut FrameSink<'_>| push(frames, name);
        writer.alloc(0, id * 1000, id, block, &[1], named).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

fn push(frames: &mut FrameSink<'_>, name: &str) {
    frames.push(Frame {
        file: b"m.ml",
        name: name.as_bytes(),
        line: 1,
        start_char: 0,
        end_char: 1,
    });
}

/// Runs a suggested line in a shell, as a user who copies it.
fn type_in(folder: &Path, line: &str) -> Output {
    let heapline = Path::new(env!("CARGO_BIN_EXE_heapline"));
    let paths = std::env::join_paths([
        heapline.parent().unwrap(),
        "/usr/bin".as_ref(),
        "/bin".as_ref(),
    ]);
    Command::new("sh")
        .args(["-c", line])
        .env("PATH", paths.unwrap())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The commands below "Next", without the reason that stands three spaces behind each.
fn suggestions(report: &Output) -> Vec<String> {
    assert!(report.status.success(), "{report:?}");
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    let (_, next) = text.split_once("Next\n").expect("something is suggested");
    let lines = next
        .lines()
        .filter_map(|line| line.trim_start().rsplit_once("   "));
    lines
        .map(|(command, _)| command.trim_end().to_owned())
        .collect()
}

#[test]
fn suggested_commands_work_whatever_functions_are_called() {
    for name in NAMES {
        let folder = tempfile::tempdir().unwrap();
        leak(&folder.path().join("trace.ctf"), name);
        for by in ["site", "function", "file", "module", "crate"] {
            let leaks = format!("heapline leaks trace.ctf --by {by}");
            for suggestion in suggestions(&type_in(folder.path(), &leaks)) {
                assert!(!suggestion.contains(char::is_control), "{suggestion:?}");
                let json = format!("{suggestion} --json");
                let output = type_in(folder.path(), &json);
                assert!(output.status.success(), "{suggestion}\n{output:?}");
                assert!(output.stderr.is_empty(), "{suggestion}\n{output:?}");
                let tree: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                let roots = tree["nodes"].as_array().unwrap().iter();
                let roots: Vec<_> = roots.filter(|node| node["parent"].is_null()).collect();
                if by == "site" || by == "function" {
                    assert_eq!(roots.len(), 1, "{suggestion}\n{tree:#}");
                    assert_eq!(roots[0]["label"]["name"], name, "{suggestion}");
                }
            }
        }
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "{name} made a file");
    }
}

#[test]
fn suggested_commands_work_whatever_files_are_called() {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "a b.ctf",
        "it's.ctf",
        "\"q\" $(touch pwned).ctf",
        "-v.ctf",
        "\u{e9}.ctf",
    ] {
        let path = folder.path().join(file);
        leak(&path, "M.f");
        let quoted = shell_word(&format!("./{file}"));
        for command in ["summary", "hotspots", "leaks", "series --by function"] {
            let report = type_in(folder.path(), &format!("heapline {command} {quoted}"));
            if !String::from_utf8_lossy(&report.stdout).contains("Next\n") {
                continue;
            }
            for suggestion in suggestions(&report) {
                let output = type_in(folder.path(), &suggestion);
                assert!(output.status.success(), "{suggestion}\n{output:?}");
            }
        }
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_filter_by_time_can_be_typed_again() {
    let folder = tempfile::tempdir().unwrap();
    leak(&folder.path().join("trace.ctf"), "M.f");
    for command in ["summary", "leaks"] {
        let report = type_in(
            folder.path(),
            &format!("heapline {command} trace.ctf --live peak"),
        );
        for suggestion in suggestions(&report) {
            let output = type_in(folder.path(), &suggestion);
            assert!(output.status.success(), "{suggestion}\n{output:?}");
        }
    }
}

/// `info` is about the whole trace, and takes no filter.
#[test]
fn commands_of_findings_work_with_a_filter() {
    let trace = testkit::fixtures::folder().join("damaged/garbage.ctf");
    let trace = shell_word(trace.to_str().unwrap());
    let summary = format!("heapline summary {trace} --where 'size < 100'");
    let report = type_in(Path::new("/"), &summary);
    assert!(report.status.success(), "{report:?}");
    let text = String::from_utf8_lossy(&report.stdout);
    let lines = text.lines().map(str::trim);
    let info: Vec<&str> = lines
        .filter(|line| line.starts_with("heapline info"))
        .collect();
    assert!(!info.is_empty(), "{text}");
    for line in info {
        let output = type_in(Path::new("/"), line);
        assert!(output.status.success(), "{line}\n{output:?}");
    }
}

/// Quoted by hand, so that the program's own quoting is not what is relied on.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
