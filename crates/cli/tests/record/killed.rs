//! Programs that are killed leave a trace that has everything but the last moment.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::run::{heapline_with_default_signals, shell_status};
use crate::toolchain::compilers;
use crate::trace::Trace;

/// The size that only the ticks of `ticker.ml` have.
pub(crate) const BLOCK: u64 = 777;

/// How much may be missing.
const LOST: u64 = 100_000;

/// In all, over all compilers.
const KILLS: usize = 60;

#[test]
fn a_killed_program_loses_at_most_a_tenth_of_a_second() {
    let compilers = compilers("a_killed_program_loses_at_most_a_tenth_of_a_second");
    for round in 0..KILLS {
        let Some(compiler) = compilers.get(round % compilers.len().max(1)) else {
            return;
        };
        // From before the first line to well after the first packet.
        let wait = Duration::from_millis(3 + (round as u64 * 7_919) % 240);
        let rate = if round % 2 == 0 { "1" } else { "0.1" };
        let killed = Killed::after(&compiler.program("ticker"), &[], rate, wait);
        killed.check(LOST);
    }
}

#[test]
fn a_program_that_is_killed_while_it_sleeps_loses_nothing() {
    for compiler in compilers("a_program_that_is_killed_while_it_sleeps_loses_nothing") {
        for ticks in [1, 10, 1000] {
            let killed = Killed::asleep(&compiler.program("ticker"), ticks);
            assert_eq!(killed.ticks.len(), ticks);
            killed.check(0);
        }
    }
}

#[test]
fn a_signal_to_heapline_is_one_to_the_program() {
    for compiler in compilers("a_signal_to_heapline_is_one_to_the_program") {
        for (signal, status) in [("-TERM", 143), ("-INT", 130), ("-HUP", 129)] {
            let program = compiler.program("ticker");
            let folder = tempfile::tempdir().unwrap();
            let mut recorder = start(&program, &["50"], "0.1", folder.path());
            let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
            // Well after the first line of the program.
            assert!(lines.nth(20).unwrap().is_ok());
            send(signal, recorder.id());
            lines.for_each(drop);
            assert_eq!(shell_status(recorder.wait().unwrap()), status);
            assert!(
                Trace::strict(&folder.path().join("trace.ctf"))
                    .allocations
                    .len()
                    > 20
            );
        }
    }
}

/// What a killed program had printed, and its trace.
struct Killed {
    folder: tempfile::TempDir,
    /// When each block had been allocated, in microseconds since 1970.
    ticks: Vec<u64>,
}

impl Killed {
    /// A program that is killed after so many ticks, when it does nothing any more.
    fn asleep(program: &Path, ticks: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = start(program, &[&ticks.to_string()], "1", folder.path());
        let lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
        let ticks = lines.take(ticks).filter_map(|line| time_of(&line.unwrap()));
        let ticks = ticks.collect();
        send("-KILL", recorded(&recorder, program));
        recorder.wait().unwrap();
        Self { folder, ticks }
    }

    fn after(program: &Path, arguments: &[&str], rate: &str, wait: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = start(program, arguments, rate, folder.path());
        let mut stdout = recorder.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        let pid = recorded(&recorder, program);
        heapline_testkit::pass_time(wait);
        send("-KILL", pid);
        recorder.wait().unwrap();
        let ticks = reader
            .join()
            .unwrap()
            // The last line may be cut off.
            .split_inclusive('\n')
            .filter_map(|line| time_of(line.strip_suffix('\n')?))
            .collect();
        Self { folder, ticks }
    }

    fn check(&self, may_be_lost: u64) {
        let path = self.folder.path().join("trace.ctf");
        if self.ticks.is_empty() && !path.exists() {
            // Killed before it began.
            return;
        }
        let trace = Trace::strict(&path);
        let Some(&last) = self.ticks.last() else {
            return;
        };
        let blocks = trace.allocations.iter().filter(|a| a.words == BLOCK);
        let blocks = blocks.count();
        let due = self.ticks.iter().filter(|&&t| t + may_be_lost <= last);
        let due = due.count();
        // At a rate of 0.1 a block of 778 words is missed once in 10^35 times.
        assert!(
            blocks >= due,
            "{blocks} blocks are in the trace, {due} of {} were due",
            self.ticks.len()
        );
    }
}

/// The time in a line of `ticker.ml`.
fn time_of(line: &str) -> Option<u64> {
    line.split_once(' ')?.1.parse().ok()
}

/// The process that runs `program`: heapline itself or its child.
pub(crate) fn recorded(recorder: &Child, program: &Path) -> u32 {
    let program = program.canonicalize().unwrap();
    let is_program =
        |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    heapline_testkit::wait_for("the program to be started", || {
        let children = format!("/proc/{0}/task/{0}/children", recorder.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        children.chain([recorder.id()]).find(is_program)
    })
}

pub(crate) fn start(program: &Path, arguments: &[&str], rate: &str, folder: &Path) -> Child {
    heapline_with_default_signals()
        .args(["record", "--rate", rate, "-o"])
        .arg(folder.join("trace.ctf"))
        .arg("--")
        .arg(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}
