//! Programs that link the OCaml library instead of being recorded from outside.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use heapline_heap::Graph;
use heapline_trace::Source;

use crate::attach::{Running, attach_until, is_any};
use crate::run::{Program, heapline, truths};
use crate::setuid::setuid;
use crate::toolchain::{compilers, with_domains};
use crate::trace::Trace;

/// Linked as usual, and with everything in one static file.
const KINDS: [&str; 2] = ["linked.exe", "static.exe"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_program_records_itself_when_memtrace_is_set() {
    for compiler in compilers("a_program_records_itself_when_memtrace_is_set") {
        for kind in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("trace.ctf");
            let program = Program::new(compiler.linked_programs().join(kind)).args(&["requested"]);
            let (unasked, _) = program.plain();
            assert_eq!(unasked.stdout, "recording: false\nchildren are not\n");
            assert_eq!(unasked.status, 3);

            let program = program
                .env("MEMTRACE", text(&file))
                .env("MEMTRACE_RATE", "0.01")
                .env("HEAPLINE_SEED", "1");
            let (asked, output) = program.plain();
            assert_eq!(asked.stdout, "recording: true\nchildren are not\n");
            assert_eq!((asked.status, asked.stderr.as_str()), (3, ""));
            let trace = Trace::strict(&file);
            assert_eq!(trace.context.as_deref(), Some("linked"));
            assert!((trace.rate - 0.01).abs() < 1e-12, "{}", trace.rate);
            let truth: f64 = truths(&output, "words")[0].parse().unwrap();
            trace.assert_near(trace.heap_words(), truth, &compiler.version);
            let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "{left:?}");
        }
    }
}

#[test]
fn a_setuid_program_does_not_record_itself_to_a_file_of_its_users_choice() {
    let test = "a_setuid_program_does_not_record_itself_to_a_file_of_its_users_choice";
    for compiler in compilers(test) {
        for kind in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let program = compiler.linked_programs().join(kind);
            let Some(mut command) = setuid(test, &program, folder.path()) else {
                return;
            };
            let file = folder.path().join("trace.ctf");
            let output = command.arg("requested").env("MEMTRACE", &file).output();
            let output = output.unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("recording: false"), "{output:?}");
            assert!(!file.exists(), "OCaml {}", compiler.version);
        }
    }
}

#[test]
fn recordings_can_be_started_and_stopped() {
    for compiler in compilers("recordings_can_be_started_and_stopped") {
        for kind in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let files = ["first.ctf", "second.ctf"].map(|name| folder.path().join(name));
            let (ended, output) = Program::new(compiler.linked_programs().join(kind))
                .args(&["manual", text(&files[0]), text(&files[1])])
                .env("HEAPLINE_SEED", "1")
                .plain();
            assert_eq!(ended.status, 0, "{ended:?}");
            let truth: f64 = truths(&output, "words")[0].parse().unwrap();
            for file in files {
                let trace = Trace::strict(&file);
                trace.assert_near(trace.heap_words(), truth, &compiler.version);
                assert!(trace.collections > 0 && trace.depth > 2);
            }
        }
    }
}

#[test]
fn memory_that_the_program_tells_of_is_recorded() {
    for compiler in compilers("memory_that_the_program_tells_of_is_recorded") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.ctf");
        let (ended, output) = Program::new(compiler.linked_programs().join("linked.exe"))
            .args(&["external", text(&file)])
            .env("HEAPLINE_SEED", "1")
            .plain();
        assert_eq!(ended.status, 0, "{ended:?}");
        let truth: f64 = truths(&output, "external words")[0].parse().unwrap();
        let trace = Trace::strict(&file);
        let is_external = |source| source == Source::External;
        let words = trace.words_where(|a| is_external(a.source));
        trace.assert_near(words, truth, &compiler.version);
        // Every other one is freed.
        let blocks = trace.allocations.iter().filter(|a| is_external(a.source));
        let blocks = blocks.count() as f64;
        let freed = trace.collections as f64;
        assert!(
            (freed - blocks / 2.0).abs() < 4.0 * blocks.sqrt(),
            "{freed} of {blocks}"
        );
        // The allocation point is the program's function, not the library's.
        let hotspots = heapline()
            .args(["hotspots", "--where", "heap = external"])
            .arg(&file)
            .output()
            .unwrap();
        let hotspots = String::from_utf8_lossy(&hotspots.stdout);
        assert!(hotspots.contains("Linked.allocate_outside"), "{hotspots}");
        assert!(!hotspots.contains("Heapline.External"), "{hotspots}");
    }
}

/// As with `heapline record`: the sampler tells that the heap's part of a custom block is promoted,
/// but its memory is outside, and stays there.
#[test]
fn memory_outside_of_the_heap_is_not_promoted() {
    for compiler in compilers("memory_outside_of_the_heap_is_not_promoted") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.ctf");
        let (ended, _) = Program::new(compiler.linked_programs().join("linked.exe"))
            .args(&["custom", text(&file)])
            .plain();
        assert_eq!(ended.status, 0, "{ended:?}");
        let trace = Trace::strict(&file);
        let allocations = trace.allocations.iter();
        let externals = allocations.filter(|a| a.source == Source::External);
        assert!(externals.count() > 100, "OCaml {}", compiler.version);
        assert_eq!(trace.external_promotions, 0, "OCaml {}", compiler.version);
    }
}

#[test]
fn mistakes_are_exceptions() {
    for compiler in compilers("mistakes_are_exceptions") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.ctf");
        let (ended, _) = Program::new(compiler.linked_programs().join("linked.exe"))
            .args(&["mistakes", text(&file)])
            .plain();
        assert_eq!(
            ended.stdout,
            "0.: invalid argument\n\
             -1.: invalid argument\n\
             1.5: invalid argument\n\
             nan: invalid argument\n\
             nowhere: system error\n\
             sampler taken: failure\n\
             file left: false\n\
             first: started\n\
             second: failure\n",
            "{ended:?}"
        );
        Trace::strict(&file);
    }
}

#[test]
fn a_killed_program_that_recorded_itself_can_be_read() {
    for compiler in compilers("a_killed_program_that_recorded_itself_can_be_read") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.ctf");
        let mut child = Command::new(compiler.linked_programs().join("linked.exe"))
            .args(["killed", text(&file)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child.kill().unwrap();
        child.wait().unwrap();
        let mut stderr = String::new();
        child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
        let truth = stderr.trim().strip_prefix("truth: words ").unwrap();
        // Whoever reads it first puts the last packets where they belong.
        let summary = heapline().arg("summary").arg(&file).output().unwrap();
        assert!(summary.status.success(), "{summary:?}");
        let trace = Trace::strict(&file);
        trace.assert_near(
            trace.heap_words(),
            truth.parse().unwrap(),
            &compiler.version,
        );
    }
}

#[test]
fn domains_of_a_program_that_records_itself_are_seen() {
    for compiler in with_domains("domains_of_a_program_that_records_itself_are_seen") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.ctf");
        let (ended, output) = Program::new(compiler.linked_programs().join("parallel.exe"))
            .args(&[text(&file)])
            .env("HEAPLINE_SEED", "1")
            .plain();
        assert_eq!(ended.status, 0, "{ended:?}");
        let trace = Trace::strict(&file);
        let seen = trace.words_by_domain();
        let truth = truths(&output, "words");
        assert_eq!(seen.len(), truth.len());
        for (words, truth) in seen.values().zip(truth) {
            trace.assert_near(*words, truth.parse().unwrap(), "a domain");
        }
    }
}

#[test]
fn programs_that_listen_are_recorded_again_and_again() {
    for compiler in compilers("programs_that_listen_are_recorded_again_and_again") {
        for kind in KINDS {
            let mut command = Command::new(compiler.linked_programs().join(kind));
            command.arg("listening");
            let running = Running::spawn(command, &[]);
            running.wait_for_listener();
            let trace = running.folder.path().join("trace.ctf");
            let options = ["--rate", "1e-3", "--force", "-v", "-o", text(&trace)];
            for _ in 0..5 {
                let (output, _) = attach_until(&trace, is_any, |period| {
                    running.attach(&[&["--for", period], &options[..]].concat())
                });
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.contains("was not stopped to attach"), "{said}");
            }
            let output = running.finish();
            assert!(output.status.success(), "{output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "worked: true\n");
        }
    }
}

#[test]
fn programs_take_snapshots_of_themselves() {
    for compiler in compilers("programs_take_snapshots_of_themselves") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.heap");
        let (ended, _) = Program::new(compiler.linked_programs().join("linked.exe"))
            .args(&["snapshot", env!("CARGO_BIN_EXE_heapline"), text(&file)])
            .plain();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        assert_eq!(ended.stdout, "kept: 1000\n");
        let graph = Graph::read(BufReader::new(File::open(&file).unwrap())).unwrap();
        // The list has as many cells, and strings.
        assert!(graph.blocks() >= 2000, "{}", graph.blocks());
    }
}
