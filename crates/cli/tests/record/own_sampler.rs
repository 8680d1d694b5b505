//! Programs that use `Gc.Memprof` themselves behave as without Heapline, whenever they do so.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use crate::dormant::waiting;
use crate::run::{Program, heapline};
use crate::toolchain::{Compiler, compilers};
use crate::trace::Trace;

/// A program that does what characters of its input say.
struct Obedient {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Obedient {
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

    fn tell(&mut self, order: char) -> String {
        write!(self.child.stdin.as_ref().unwrap(), "{order}").unwrap();
        self.answer()
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it end, and returns the rest of its output.
    fn finish(mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

/// A recording of a process.
struct Attached {
    heapline: Child,
    stderr: BufReader<ChildStderr>,
}

impl Attached {
    /// Attaches to a program.
    fn start(program: &Obedient, trace: &Path) -> Self {
        let mut heapline = heapline()
            .args(["attach", &program.pid().to_string(), "--rate", "0.1"])
            .args(["--force", "-o"])
            .arg(trace)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(heapline.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("attached to process"), "{line}");
        Self { heapline, stderr }
    }

    /// Attaches to a program that is waiting for input, and makes it run until it is recorded.
    fn begin(program: &mut Obedient, trace: &Path) -> Self {
        let attached = Self::start(program, trace);
        while !heapline_recorder::tail::path(trace).exists() {
            program.tell('w');
        }
        attached
    }

    /// Waits for its end, and returns what it said.
    fn said(mut self) -> String {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).unwrap();
        assert!(self.heapline.wait().unwrap().success(), "{text}");
        text
    }

    fn interrupt(&self) {
        let pid = self.heapline.id().to_string();
        let kill = Command::new("kill").args(["-INT", &pid]).status();
        assert!(kill.unwrap().success());
    }
}

/// The answers of a program to stopping a sampler that it has not started, and to starting a second one.
fn exceptions(compiler: &Compiler) -> (String, String) {
    let mut plain = Obedient::start(Command::new(compiler.program("own_sampler")));
    let not_started = plain.tell('x');
    assert_eq!(plain.tell('s'), "started");
    let already_started = plain.tell('s');
    assert_eq!(plain.finish(), "");
    (not_started, already_started)
}

/// Follows a program through all states of its sampler and ours.
fn use_both_samplers(test: &str, start: fn(PathBuf) -> Command) {
    for compiler in compilers(test) {
        let (not_started, already_started) = exceptions(compiler);
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        for order in ['s', 'm'] {
            let what = format!("{order} (OCaml {})", compiler.version);
            let mut program = Obedient::start(start(compiler.program("own_sampler")));
            let attached = Attached::begin(&mut program, &trace);
            // Ours is not the program's.
            assert_eq!(program.tell('x'), not_started, "{what}");
            assert_eq!(program.tell('w'), "not sampled", "{what}");
            // It gets it, and the recording ends.
            assert_eq!(program.tell(order), "started", "{what}");
            assert_eq!(program.tell('w'), "sampled", "{what}");
            let said = attached.said();
            let ended = "when the program started its own sampler";
            assert!(said.contains(ended), "{what}: {said}");
            assert!(!Trace::strict(&trace).allocations.is_empty(), "{what}");
            assert_eq!(program.tell('s'), already_started, "{what}");
            // As long as it has one, it is not recorded.
            let said = refused(&mut program, &trace);
            let reason = "the program uses Gc.Memprof itself";
            assert!(said.contains(reason), "{what}: {said}");
            assert_eq!(program.tell('x'), "stopped", "{what}");
            assert_eq!(program.tell('x'), not_started, "{what}");
            assert_eq!(program.tell('w'), "not sampled", "{what}");
            // Then it is again. It waits for input when ours is to be stopped, and starts one at once.
            let attached = Attached::begin(&mut program, &trace);
            attached.interrupt();
            let said = attached.said();
            assert!(said.contains("blocks sampled"), "{what}: {said}");
            assert_eq!(program.tell('s'), "started", "{what}");
            assert_eq!(program.tell('w'), "sampled", "{what}");
            assert_eq!(program.tell('x'), "stopped", "{what}");
            assert_eq!(program.finish(), "", "{what}");
        }
    }
}

/// Attaches to a program that uses its sampler. Returns what heapline says.
fn refused(program: &mut Obedient, trace: &Path) -> String {
    let mut attached = Attached::start(program, trace);
    while attached.heapline.try_wait().unwrap().is_none() {
        assert_eq!(program.tell('w'), "sampled");
    }
    assert_eq!(attached.heapline.wait().unwrap().code(), Some(2));
    let mut said = String::new();
    attached.stderr.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn a_program_that_starts_its_own_sampler_gets_it_from_an_attached_recording() {
    let test = "a_program_that_starts_its_own_sampler_gets_it_from_an_attached_recording";
    use_both_samplers(test, Command::new);
}

#[test]
fn a_program_that_starts_its_own_sampler_gets_it_if_it_has_waited() {
    let test = "a_program_that_starts_its_own_sampler_gets_it_if_it_has_waited";
    use_both_samplers(test, waiting);
}

/// The processes have our sampler, and the code that guards it.
#[test]
fn forked_processes_that_are_not_recorded_get_their_own_sampler() {
    let test = "forked_processes_that_are_not_recorded_get_their_own_sampler";
    for compiler in compilers(test) {
        let program = Program::new(compiler.program("own_sampler")).input("wfw");
        let (plain, _) = program.plain();
        let child = "started\nsampled\nstopped\nnot sampled\n";
        assert!(plain.stdout.contains(child), "{}", plain.stdout);
        for whose in ["ours", "theirs"] {
            let recording = program.record(&["--rate", "1e-2", "--memprof", whose]);
            let what = format!("{whose} (OCaml {})", compiler.version);
            assert_eq!(recording.ended, plain, "{what}");
            assert!(!recording.read().allocations.is_empty(), "{what}");
        }
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ctf");
        let mut attached_to = Obedient::start(Command::new(compiler.program("own_sampler")));
        let attached = Attached::begin(&mut attached_to, &trace);
        assert_eq!(attached_to.tell('f'), "started", "{}", compiler.version);
        for answer in ["sampled", "stopped", "not sampled"] {
            assert_eq!(attached_to.answer(), answer, "{}", compiler.version);
        }
        assert_eq!(attached_to.finish(), "");
        assert!(attached.said().contains("blocks sampled"));
    }
}
