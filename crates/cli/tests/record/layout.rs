//! The data of each runtime are found, and a runtime whose data are elsewhere is refused.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use heapline_trace::Source;

use crate::attach::{Running, attach, said};
use crate::attach_refusals::compile;
use crate::dormant::waiting;
use crate::run::{Program, heapline};
use crate::toolchain::{Compiler, compilers, with_domains};
use crate::trace::Trace;

/// The time in which something that does happen has happened, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A program that reads lines and answers them. It ends with the test, also if that fails.
struct Answering {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Answering {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut program = Self { child, stdout };
        assert_eq!(program.answer(), "ready");
        program
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Lets it end.
    fn finish(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        std::thread::yield_now();
    }
}

/// From 5.4 on.
fn is_newer(compiler: &Compiler) -> bool {
    compiler.is_5() && !compiler.version.starts_with("5.3")
}

#[test]
fn the_layout_of_each_runtime_is_found() {
    for compiler in compilers("the_layout_of_each_runtime_is_found") {
        let version = &compiler.version;
        let program = compiler.program("steady");
        for start in [Running::start, Running::start_waiting] {
            let running = start(&program, &[]);
            let output = running.attach(&["--explain"]);
            assert!(output.status.success(), "{version}: {output:?}");
            let found = String::from_utf8(output.stdout).unwrap();
            if compiler.is_5() {
                assert!(found.contains(&format!("OCaml {version}\n")), "{found}");
                assert!(found.contains("requested_external_interrupt"), "{found}");
                assert!(found.contains("verified"), "{found}");
            } else {
                assert!(found.starts_with("OCaml 4"), "{found}");
            }
            assert!(running.finish().status.success());
        }
    }
}

/// OCaml seeds all domains of a slot alike.
#[test]
fn domains_that_are_started_after_attaching_have_their_own_seeds() {
    for compiler in with_domains("domains_that_are_started_after_attaching_have_their_own_seeds") {
        let program = compiler.program("ocaml5/later");
        for command in [Command::new(&program), waiting(program.clone())] {
            let mut program = Answering::start(command);
            let folder = tempfile::tempdir().unwrap();
            let trace = folder.path().join("trace.ctf");
            let mut recording = heapline()
                .args(["attach", &program.child.id().to_string(), "--rate", "1e-3"])
                .arg("-o")
                .arg(&trace)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stderr = BufReader::new(recording.stderr.take().unwrap());
            let mut line = String::new();
            stderr.read_line(&mut line).unwrap();
            assert!(line.contains("attached to process"), "{line}");
            program.tell("go");
            let words: f64 = program.answer().parse().unwrap();
            program.tell("end");
            assert_eq!(program.finish(), Some(0));
            wait_for("heapline does not end", || {
                recording.try_wait().unwrap().is_some()
            });
            let trace = Trace::strict(&trace);
            let estimate = trace.words_where(|a| a.domain != 0);
            trace.assert_near(estimate, words, &compiler.version);
        }
    }
}

#[test]
fn mapped_files_are_outside_of_the_heap() {
    for compiler in compilers("mapped_files_are_outside_of_the_heap") {
        // Before, the sampler does not see them.
        if !is_newer(compiler) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mapped");
        let program = Program::new(compiler.program("mapped")).args(&[file.to_str().unwrap()]);
        let recording = program.record(&["--rate", "1e-2"]);
        let words: f64 = recording.ended.stdout.trim_end().parse().unwrap();
        let trace = recording.read();
        let external = trace.words_where(|a| a.source == Source::External);
        trace.assert_near(external, words, &compiler.version);
        assert_eq!(trace.external_promotions, 0, "{}", compiler.version);
    }
}

/// A program with a runtime whose domain state has one more word.
fn shifted(folder: &Path) -> PathBuf {
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/simulated_runtime.c");
    compile(folder, &code, "shifted")
}

#[test]
fn a_runtime_with_a_shifted_layout_is_refused_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = shifted(folder.path());
    let output = folder.path().join("output");
    let output = output.to_str().unwrap();
    for command in ["attach", "snapshot"] {
        let program = Answering::start(Command::new(&program));
        let refused = heapline()
            .args([command, &program.child.id().to_string(), "-o", output])
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let said = said(&refused);
        assert!(
            said.contains("OCaml runtime (like that of 5.4) has memprof at word 63")
                && said.contains("use `heapline record`"),
            "{said}"
        );
        // It is as it was, and ends as it should.
        assert_eq!(program.finish(), Some(0), "{command}");
    }
    let left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["shifted"]);
}

#[test]
fn a_busy_program_of_which_nothing_was_recorded_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("busy.c");
    let names = [
        "caml_start_program",
        "caml_c_call",
        "caml_debuginfo_extract",
        "caml_debuginfo_next",
        "caml_debuginfo_location",
        "caml_memprof_start",
        "caml_memprof_stop",
        "caml_memprof_young_trigger",
    ];
    let functions = names.map(|name| format!("void {name}(void) {{}}\n"));
    // It is in C code all the time, or waits for a moment.
    let main = "int usleep(unsigned);\n\
                int main(void) {\n\
                  for (;;) { for (volatile int i = 0; i < 1000000; i++) {} usleep(100); }\n\
                }\n";
    fs::write(&code, functions.concat() + main).unwrap();
    let program = compile(folder.path(), &code, "busy");
    let mut child = Command::new(program).spawn().unwrap();
    let trace = folder.path().join("trace.ctf");
    let output = attach(child.id(), &["--for", "1s", "-o", trace.to_str().unwrap()]);
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said(&output).contains("nothing was recorded"), "{output:?}");
    assert!(!trace.exists());
}
