//! The data of each runtime are found, and a runtime whose data are elsewhere is refused.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use heapline_testkit::Killed;
use heapline_trace::Source;

use crate::attach::Running;
use crate::attach_refusals::compile;
use crate::dormant::waiting;
use crate::run::{Program, heapline};
use crate::toolchain::{Compiler, compilers, with_domains};
use crate::trace::Trace;

/// The lines that somebody writes, who may never do so.
struct Lines(Receiver<String>);

impl Lines {
    fn new(from: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self(receiver)
    }

    #[track_caller]
    fn next(&self) -> String {
        self.0.recv_timeout(heapline_testkit::DEADLINE).unwrap()
    }
}

/// A process that ends with the test, also if that fails.
struct Process(Killed);

impl Process {
    fn pid(&self) -> String {
        self.0.0.id().to_string()
    }

    #[track_caller]
    fn wait(&mut self) -> Option<i32> {
        heapline_testkit::wait_for("the end of the process", || self.0.0.try_wait().unwrap()).code()
    }
}

/// A program that reads lines and answers them.
struct Answering {
    process: Process,
    stdin: ChildStdin,
    answers: Lines,
}

impl Answering {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let program = Self {
            stdin: child.stdin.take().unwrap(),
            answers: Lines::new(child.stdout.take().unwrap()),
            process: Process(Killed(child)),
        };
        assert_eq!(program.answers.next(), "ready");
        program
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Lets it end.
    #[track_caller]
    fn finish(self) -> Option<i32> {
        let mut process = self.process;
        drop(self.stdin);
        process.wait()
    }
}

/// Runs heapline to its end. Returns its exit code, and what it said.
#[track_caller]
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = heapline()
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = Lines::new(child.stderr.take().unwrap());
    let code = Process(Killed(child)).wait();
    (code, said.0.iter().collect::<Vec<_>>().join("\n"))
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
                .args(["attach", &program.process.pid(), "--rate", "1e-3", "-o"])
                .arg(&trace)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let said = Lines::new(recording.stderr.take().unwrap());
            let mut recording = Process(Killed(recording));
            let line = said.next();
            assert!(line.contains("attached to process"), "{line}");
            program.tell("go");
            let words: f64 = program.answers.next().parse().unwrap();
            program.tell("end");
            assert_eq!(program.finish(), Some(0));
            assert_eq!(recording.wait(), Some(0));
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
        let (code, said) = run(&[command, &program.process.pid(), "-o", output]);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("OCaml runtime (like that of 5.4) has memprof at word 63")
                && said.contains("`heapline record` works"),
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
    let mut busy = Process(Killed(Command::new(program).spawn().unwrap()));
    let trace = folder.path().join("trace.ctf");
    let options = ["--for", "1s", "-o", trace.to_str().unwrap()];
    let (code, said) = run(&[&["attach", &busy.pid()], &options[..]].concat());
    assert!(busy.0.0.try_wait().unwrap().is_none());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nothing was recorded"), "{said}");
    assert!(!trace.exists());
}
