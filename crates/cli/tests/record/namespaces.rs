//! Readers that cannot see the program, as in another container, neither harm nor miss anything.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::killed::{BLOCK, recorded, send, start};
use crate::run::heapline;
use crate::toolchain::compilers;
use crate::trace::Trace;
use crate::unshare::unshare;

const TICKS: usize = 1000;

#[test]
fn a_reader_in_another_pid_namespace_does_no_harm() {
    for compiler in compilers("a_reader_in_another_pid_namespace_does_no_harm") {
        let program = compiler.program("ticker");
        for supervised in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let trace = folder.path().join("trace.ctf");
            let mut child = if supervised {
                start(&program, &[&TICKS.to_string()], "1", folder.path())
            } else {
                preload(&program, &trace)
            };
            // It sleeps then.
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert_eq!(lines.take(TICKS).map_while(Result::ok).count(), TICKS);
            let pid = recorded(&child, &program);
            read(&trace);
            send("-KILL", pid);
            child.wait().unwrap();
            read(&trace);
            let tail = heapline_recorder::tail::path(&trace);
            assert_eq!(tail.exists(), !supervised, "who is there completes it");
        }
    }
}

/// Reads a trace in a namespace, then here: it has all blocks.
fn read(trace: &Path) {
    let output = unshare(env!("CARGO_BIN_EXE_heapline"))
        .args(["summary", "--strict"])
        .arg(trace)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let blocks = Trace::strict(trace).allocations;
    assert_eq!(blocks.iter().filter(|a| a.words == BLOCK).count(), TICKS);
}

/// Records a program that `heapline record` did not start.
pub(crate) fn preload(program: &Path, trace: &Path) -> Child {
    preloaded(program, trace)
        .arg(TICKS.to_string())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A program that records itself, and OCaml programs that it starts, to a trace.
pub(crate) fn preloaded(program: &Path, trace: &Path) -> Command {
    let agent = heapline()
        .args(["record", "--print-agent"])
        .output()
        .unwrap();
    let mut command = Command::new(program);
    command
        .env(
            "LD_PRELOAD",
            String::from_utf8(agent.stdout).unwrap().trim(),
        )
        .env("MEMTRACE", trace)
        .env("MEMTRACE_RATE", "1")
        .stdout(Stdio::piped());
    command
}
