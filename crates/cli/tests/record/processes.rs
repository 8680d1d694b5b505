//! Forked children and programs that are started by the recorded one.

use std::path::{Path, PathBuf};

use heapline_trace::{Options, Reader};

use crate::killed::send;
use crate::run::{Program, heapline};
use crate::toolchain::compilers;
use crate::trace::Trace;

/// All traces in a folder.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

#[test]
fn forked_children_are_left_alone() {
    for compiler in compilers("forked_children_are_left_alone") {
        let recording = Program::new(compiler.program("fork")).record(&["--rate", "1e-2"]);
        assert_eq!(
            traces(recording.folder.path()),
            std::slice::from_ref(&recording.trace)
        );
        assert!(
            recording
                .said
                .contains("forked other processes, which were not recorded"),
            "{}",
            recording.said
        );
        let trace = recording.read();
        // The parent's 200,000 cells and pairs, and not the children's 150,000.
        trace.assert_near(trace.heap_words(), 1_200_000.0, &compiler.version);
    }
}

#[test]
fn forked_children_get_traces_of_their_own_when_asked() {
    for compiler in compilers("forked_children_get_traces_of_their_own_when_asked") {
        let program = Program::new(compiler.program("fork"));
        let recording = program.record(&["--rate", "1e-2", "--follow-fork"]);
        let (plain, _) = program.plain();
        assert_eq!(recording.ended, plain);
        let paths = traces(recording.folder.path());
        assert_eq!(paths.len(), 5, "{paths:?}");
        let mut pids = Vec::new();
        for path in paths {
            let trace = Trace::strict(&path);
            pids.push(trace.pid);
            let truth = if path == recording.trace {
                1_200_000.0
            } else {
                300_000.0
            };
            trace.assert_near(trace.heap_words(), truth, &path.display().to_string());
            // The first block of a process too has its stack.
            assert_eq!(trace.without_stack, 0, "{}", path.display());
        }
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), 5);
    }
}

/// Looks at the process that goes on, not at the one between it and the program.
#[test]
fn a_daemon_is_listed_as_running() {
    for compiler in compilers("a_daemon_is_listed_as_running") {
        let program = Program::new(compiler.program("daemon"));
        let recording = program.record(&["--rate", "0.1", "--follow-fork"]);
        let pid = recording.ended.stdout.trim();
        let mut lines = recording.said.lines();
        let daemon = lines.find(|line| line.contains(&format!(".{pid}.ctf")));
        let running = daemon.is_some_and(|line| line.ends_with("(still running)"));
        send("-KILL", pid.parse().unwrap());
        assert!(running, "{}", recording.said);
    }
}

#[test]
fn a_program_that_becomes_another_one_is_said() {
    for compiler in compilers("a_program_that_becomes_another_one_is_said") {
        let program = Program::new(compiler.program("become")).args(&["/bin/true"]);
        let options = ["--rate", "1e-2", "--snapshot", "end"];
        let recording = program.record(&options);
        let said = &recording.said;
        assert_eq!(recording.ended, program.plain().0, "{said}");
        assert!(
            said.contains("another one in its place (true)") && said.contains("--follow-exec"),
            "{said}"
        );
        assert!(said.contains("no heap snapshot of the end"), "{said}");
        let followed = program.record(&["--follow-exec"]).said;
        assert!(!followed.contains("in its place"), "{followed}");
        let ordinary = Program::new(compiler.program("maps")).record(&[]).said;
        assert!(!ordinary.contains("in its place"), "{ordinary}");
    }
}

#[test]
fn started_programs_are_left_alone() {
    for compiler in compilers("started_programs_are_left_alone") {
        let recording = Program::new(compiler.program("exec")).record(&["--rate", "1e-2"]);
        assert_eq!(
            traces(recording.folder.path()),
            std::slice::from_ref(&recording.trace)
        );
        let trace = recording.read();
        let truth = Program::new(compiler.program("exec"))
            .args(&["child"])
            .words();
        trace.assert_near(trace.heap_words(), 2.0 * truth, &compiler.version);
    }
}

#[test]
fn arguments_of_programs_stay_out_of_traces_when_asked() {
    for compiler in compilers("arguments_of_programs_stay_out_of_traces_when_asked") {
        let program = Program::new(compiler.program("exec"));
        let recording = program.record(&["--rate", "1e-2", "--follow-exec", "--no-arguments"]);
        let paths = traces(recording.folder.path());
        assert_eq!(paths.len(), 3, "{paths:?}");
        for path in paths {
            let reader = Reader::open(&path, Options::new()).unwrap();
            assert_eq!(
                reader.info().context.as_deref(),
                Some("exec.exe"),
                "OCaml {}",
                compiler.version
            );
        }
    }
}

#[test]
fn started_programs_get_traces_of_their_own_when_asked() {
    for compiler in compilers("started_programs_get_traces_of_their_own_when_asked") {
        let program = Program::new(compiler.program("exec"));
        let recording = program.record(&["--rate", "1e-2", "--follow-exec"]);
        let paths = traces(recording.folder.path());
        // The first, its child, and the one that it becomes; not the shell.
        assert_eq!(paths.len(), 3, "{paths:?}");
        let listed = recording.said.lines().filter(|line| {
            line.contains("also recorded: ")
                && (line.contains(": exec.exe child (") || line.contains(": exec.exe last ("))
        });
        assert_eq!(listed.count(), 2, "{}", recording.said);
        let mut lines = recording.said.lines();
        let command = lines.find_map(|line| line.split_once("all together: heapline "));
        let (_, arguments) = command.expect(&recording.said);
        let arguments = shlex::split(arguments).unwrap();
        let summary = heapline().args(arguments).output().unwrap();
        assert!(summary.status.success(), "{summary:?}");
        let summary = String::from_utf8_lossy(&summary.stdout);
        assert!(summary.starts_with("3 traces\n"), "{summary}");
        assert!(summary.contains("exec.exe child"), "{summary}");
        let truth = Program::new(compiler.program("exec"))
            .args(&["child"])
            .words();
        for path in paths {
            let trace = Trace::strict(&path);
            let truth = if path == recording.trace {
                2.0 * truth
            } else {
                truth
            };
            trace.assert_near(trace.heap_words(), truth, &path.display().to_string());
        }
    }
}
