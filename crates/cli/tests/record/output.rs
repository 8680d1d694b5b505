//! The output of a recording: one process at a time writes it, and where it cannot be written, the
//! program runs on, and the trace says so.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use heapline_recorder::tail;

use crate::killed::{BLOCK, recorded, send, start};
use crate::namespaces::{preload, preloaded};
use crate::run::{Program, heapline};
use crate::toolchain::compilers;
use crate::trace::Trace;

/// Waits until a ticker has allocated this many blocks.
fn wait(ticker: &mut Child, ticks: usize) -> Lines<BufReader<ChildStdout>> {
    let mut lines = BufReader::new(ticker.stdout.take().unwrap()).lines();
    for _ in 0..ticks {
        lines.next().unwrap().unwrap();
    }
    lines
}

#[test]
fn a_trace_that_is_being_recorded_is_not_overwritten() {
    for compiler in compilers("a_trace_that_is_being_recorded_is_not_overwritten") {
        let program = compiler.program("ticker");
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        let mut first = start(&program, &["50"], "1", folder.path());
        let lines = wait(&mut first, 50);
        let pid = recorded(&first, &program);

        let second = heapline()
            .args(["record", "--force", "-o"])
            .arg(&trace)
            .arg("--")
            .arg(compiler.program("maps"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&second.stderr);
        assert_eq!(second.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("process {pid} is recording to")),
            "{said}"
        );

        // A program that was not started by heapline runs, unrecorded.
        let mut third = preload(&program, &trace);
        wait(&mut third, 20);
        send("-KILL", third.id());
        third.wait().unwrap();

        send("-KILL", pid);
        assert_eq!(first.wait().unwrap().code(), Some(128 + 9));
        drop(lines);
        let blocks = Trace::strict(&trace).allocations;
        assert_eq!(blocks.iter().filter(|a| a.words == BLOCK).count(), 50);
    }
}

/// A program that was killed, and whose parent does not want to know.
#[test]
fn a_zombie_does_not_own_its_trace() {
    for compiler in compilers("a_zombie_does_not_own_its_trace") {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        let script = "\"$0\" 50 & echo $! >&2; exec sleep 60";
        let mut parent = preloaded(Path::new("sh"), &trace)
            .args(["-c", script])
            .arg(compiler.program("ticker"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        let stderr = parent.stderr.take().unwrap();
        BufReader::new(stderr).read_line(&mut pid).unwrap();
        let _lines = wait(&mut parent, 50);
        assert_eq!(tail::owner(&trace).unwrap(), pid.trim().parse().ok());
        send("-KILL", pid.trim().parse().unwrap());
        let state = format!("/proc/{}/stat", pid.trim());
        heapline_testkit::wait("the program to be a zombie", || {
            fs::read_to_string(&state).unwrap().contains(") Z ")
        });
        assert_eq!(tail::owner(&trace).unwrap(), None);
        let blocks = Trace::strict(&trace).allocations;
        assert_eq!(blocks.iter().filter(|a| a.words == BLOCK).count(), 50);
        parent.kill().unwrap();
        parent.wait().unwrap();
    }
}

/// A limit on the size of files is to a program what a full disk is.
fn with_limit(program: &Path, blocks: &str) -> Program {
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    Program::new(program).started_by(&["sh", "-c", &script])
}

#[test]
fn programs_are_not_started_when_there_is_no_room_at_all() {
    for compiler in compilers("programs_are_not_started_when_there_is_no_room_at_all") {
        // 8 KiB.
        let recording = with_limit(&compiler.program("maps"), "16").record(&["--rate", "0.5"]);
        assert_eq!(recording.ended.status, 2, "{}", recording.said);
        assert_eq!(recording.ended.stdout, "");
        assert!(
            recording.said.contains("cannot write"),
            "{}",
            recording.said
        );
        let left: Vec<_> = recording.folder.path().read_dir().unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn traces_that_end_early_say_so() {
    for compiler in compilers("traces_that_end_early_say_so") {
        let program = compiler.program("maps");
        // Written before there is a limit.
        let agent = heapline().args(["record", "--print-agent"]).output();
        assert!(agent.unwrap().status.success());
        // 200 KiB.
        let limited = with_limit(&program, "400");
        let (plain, _) = limited.plain();
        let cases = [
            (
                limited.record(&["--rate", "0.5"]),
                "unwritable",
                "could not be written: File too large",
            ),
            (
                Program::new(&program).record(&["--rate", "0.5", "--max-size", "1MiB"]),
                "full",
                "reached its maximum size",
            ),
        ];
        for (recording, reason, words) in cases {
            assert_eq!(recording.ended, plain, "{}", recording.said);
            assert!(Trace::strict(&recording.trace).allocations.len() > 1000);
            let info = heapline()
                .arg("info")
                .arg(&recording.trace)
                .arg("--json")
                .output()
                .unwrap();
            let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
            let flaw = &info["damage"]["flaws"][0];
            assert_eq!(
                (&flaw["kind"], &flaw["reason"]),
                (&"ended-early".into(), &reason.into())
            );
            for command in ["info", "summary"] {
                let output = heapline()
                    .arg(command)
                    .arg(&recording.trace)
                    .output()
                    .unwrap();
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text).replace("\n    ", " ");
                assert!(text.contains(words), "{command}: {text}");
            }
        }
    }
}
