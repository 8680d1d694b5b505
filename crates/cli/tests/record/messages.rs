//! Checks that the closing lines of `heapline record` are true, whatever happened to the files meanwhile.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use heapline_recorder::tail;

use crate::killed::{recorded, send};
use crate::run::{Program, heapline};
use crate::toolchain::{Compiler, compilers};
use crate::unshare::unshare;

/// Messages that must not be printed about a program that was recorded.
const NOTHING: &str = "nothing was recorded";

/// Records a program that is killed while it sleeps, after something was done to its trace; what
/// heapline said.
fn said_after(compiler: &Compiler, meanwhile: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.ctf");
    let program = compiler.program("ticker");
    let mut recorder = heapline()
        .args(["record", "--rate", "1", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(&program)
        .arg("50")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
    assert_eq!(lines.take(50).map_while(Result::ok).count(), 50);
    meanwhile(&trace);
    send("-KILL", recorded(&recorder, &program));
    let mut said = String::new();
    let mut stderr = recorder.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(recorder.wait().unwrap().code(), Some(128 + 9), "{said}");
    said
}

fn assert_described(said: &str) {
    assert!(
        said.contains("blocks sampled") && !said.contains(NOTHING),
        "{said}"
    );
}

#[test]
fn a_second_recording_does_not_change_what_is_said_of_the_first() {
    for compiler in compilers("a_second_recording_does_not_change_what_is_said_of_the_first") {
        let said = said_after(compiler, |trace| {
            let second = heapline()
                .args(["record", "--force", "-o"])
                .arg(trace)
                .arg("--")
                .arg(compiler.program("maps"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&second.stderr);
            assert!(
                said.contains("is recording to") && !said.contains(NOTHING),
                "{said}"
            );
        });
        assert_described(&said);
    }
}

#[test]
fn a_reader_in_another_pid_namespace_does_not_change_what_is_said() {
    for compiler in compilers("a_reader_in_another_pid_namespace_does_not_change_what_is_said") {
        let said = said_after(compiler, |trace| {
            let mut reader = unshare(env!("CARGO_BIN_EXE_heapline"));
            let output = reader.arg("summary").arg(trace).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        });
        assert_described(&said);
    }
}

#[test]
fn files_that_are_removed_meanwhile_are_named() {
    for compiler in compilers("files_that_are_removed_meanwhile_are_named") {
        let said = said_after(compiler, |trace| {
            fs::remove_file(tail::path(trace)).unwrap();
        });
        assert!(
            said.contains("trace.ctf.tail was removed while the program ran")
                && !said.contains(NOTHING),
            "{said}"
        );
        let said = said_after(compiler, |trace| fs::remove_file(trace).unwrap());
        assert!(
            said.contains("trace.ctf was removed while the program ran") && !said.contains(NOTHING),
            "{said}"
        );
        let said = said_after(compiler, |trace| {
            fs::write(trace, "something else").unwrap();
        });
        assert!(
            said.contains("trace.ctf was replaced while the program ran")
                && !said.contains(NOTHING),
            "{said}"
        );
    }
}

/// Callbacks for blocks that C code allocates, here Marshal, come when the program is back in OCaml code.
#[test]
fn the_time_spent_on_recording_is_not_that_of_the_program() {
    for compiler in compilers("the_time_spent_on_recording_is_not_that_of_the_program") {
        let started = Instant::now();
        let recording = Program::new(compiler.program("marshal")).record(&["--rate", "1e-1"]);
        let took = started.elapsed().as_secs_f64();
        let said = &recording.said;
        let (line, _) = said.split_once(" on recording").unwrap();
        let mut words = line.rsplit(' ');
        let unit = words.next().unwrap();
        let time: f64 = words.next().unwrap().parse().unwrap();
        let time = match unit {
            "s" => time,
            "ms" => time / 1e3,
            "µs" => time / 1e6,
            _ => panic!("{said}"),
        };
        // A seventh to a half, or more where the program is often preempted. The times of thousands of callbacks,
        // counted for each of them, were more than a hundred times that of the program.
        assert!(time < 10.0 * took, "{}: {said}", compiler.version);
    }
}

/// Most programs wait most of the time, so a share of the run time would be nearly 0.
#[test]
fn the_share_of_recording_is_one_of_cpu_time() {
    for compiler in compilers("the_share_of_recording_is_one_of_cpu_time") {
        let program = Program::new(compiler.program("steady")).args(&["check", "5000"]);
        let said = &program.record(&["--rate", "1e-4"]).said;
        let (line, _) = said.split_once(" of CPU time\n").unwrap();
        let (line, time) = line.rsplit_once(" % of its ").unwrap();
        let (_, share) = line.rsplit_once(", ").unwrap();
        assert!(time.ends_with('s'), "{}: {said}", compiler.version);
        let share: f64 = share.parse().unwrap();
        assert!(share > 0.0 && share < 100.0, "{}: {said}", compiler.version);
        // This one only waits.
        let said = said_after(compiler, |_| ());
        assert!(
            said.contains(" on recording\n"),
            "{}: {said}",
            compiler.version
        );
    }
}
