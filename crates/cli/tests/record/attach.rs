//! Programs that are attached to run as if nothing had been, and are recorded meanwhile.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;

use crate::run::heapline;
use crate::toolchain::{Compiler, compilers, with_domains};
use crate::trace::Trace;

/// How often programs are attached to; set it to 1000 for a long test.
const TIMES: &str = "HEAPLINE_ATTACH_TIMES";

/// A user without rights.
const NOBODY: u32 = 65534;

/// A process that ends with the test, also if that fails.
struct Ended(Option<Child>);

impl Ended {
    /// Waits for its end.
    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program that runs.
pub(crate) struct Running {
    child: Ended,
    pid: u32,
    stop: PathBuf,
    pub(crate) folder: tempfile::TempDir,
}

impl Running {
    /// Starts a program that works until a file exists.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Self {
        Self::start_as(Command::new(program), arguments)
    }

    /// Starts a program by a command.
    pub(crate) fn start_as(command: Command, arguments: &[&str]) -> Self {
        let running = Self::spawn(command, arguments);
        running.wait_for_runtime();
        running
    }

    /// Starts a program that works until a file exists, and waits for heapline meanwhile.
    pub(crate) fn start_waiting(program: &Path, arguments: &[&str]) -> Self {
        let mut command = heapline();
        command
            .args(["record", "--wait", "--quiet", "--"])
            .arg(program);
        let running = Self::spawn(command, arguments);
        running.wait_for_listener();
        running
    }

    pub(crate) fn spawn(mut command: Command, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let stop = folder.path().join("stop");
        command
            .arg(&stop)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Self {
            pid: child.id(),
            child: Ended(Some(child)),
            stop,
            folder,
        }
    }

    /// The program, if another process has started it.
    pub(crate) fn has_pid(&mut self, pid: u32) {
        self.pid = pid;
    }

    /// Waits until the program is loaded.
    pub(crate) fn wait_for_runtime(&self) {
        let stat = format!("/proc/{}/stat", self.pid());
        let time = || -> Option<u64> {
            let stat = fs::read_to_string(&stat).ok()?;
            stat.rsplit_once(") ")?.1.split(' ').nth(11)?.parse().ok()
        };
        // Some time of its own.
        heapline_testkit::wait("the program to run", || time().is_none_or(|time| time >= 3));
    }

    /// Waits until the program listens.
    pub(crate) fn wait_for_listener(&self) {
        heapline_testkit::wait("the program to listen", || {
            assert!(Path::new(&format!("/proc/{}", self.pid())).exists());
            listens(self.pid())
        });
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn attach(&self, options: &[&str]) -> Output {
        attach(self.pid(), options)
    }

    /// Lets it end.
    pub(crate) fn finish(self) -> Output {
        self.finish_in_folder().0
    }

    /// Lets it end, and keeps its folder.
    fn finish_in_folder(self) -> (Output, tempfile::TempDir) {
        fs::write(&self.stop, "").unwrap();
        (self.child.output(), self.folder)
    }

    /// Open descriptors, and mapped files.
    pub(crate) fn resources(&self) -> (usize, usize) {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        let files = maps.lines().filter(|line| line.contains('/'));
        (descriptors.count(), files.count())
    }
}

/// Returns true if a process waits for heapline.
pub(crate) fn listens(pid: u32) -> bool {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    sockets.contains(&format!("@heapline-agent.{pid}."))
}

pub(crate) fn attach(pid: u32, options: &[&str]) -> Output {
    heapline()
        .arg("attach")
        .arg(pid.to_string())
        .args(options)
        .output()
        .unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn times() -> usize {
    let times = std::env::var(TIMES).ok();
    times.map_or(15, |times| times.parse().unwrap())
}

/// Each line says the truth about the rounds that were done.
pub(crate) fn assert_undisturbed(program: &Path, output: &Output, lines: usize) {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said(output), "");
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(stdout.lines().count(), lines, "{stdout}");
    for line in stdout.lines() {
        let rounds = line.split(' ').next().unwrap();
        let check = Command::new(program).args(["check", rounds]).output();
        let check = String::from_utf8(check.unwrap().stdout).unwrap();
        assert_eq!(check.trim_end(), line);
    }
}

pub(crate) fn attach_again_and_again(
    compiler: &Compiler,
    name: &str,
    domains: usize,
    start: fn(&Path, &[&str]) -> Running,
) {
    let program = stripped(&compiler.program(name));
    let running = start(&program, &[]);
    let trace = running.folder.path().join("trace.ctf");
    let mut before = None;
    for time in 0..times() {
        let options = ["--rate", "1e-3", "--force", "-o", trace.to_str().unwrap()];
        attach_until(&trace, is_any, |period| {
            running.attach(&[&["--for", period], &options[..]].concat())
        });
        if time == 3 {
            before = Some(running.resources());
        }
    }
    // What an earlier recording had may still be there: it is freed when the next begins.
    let (descriptors, files) = running.resources();
    let before = before.unwrap();
    assert!(descriptors <= before.0 + 1, "{descriptors} {before:?}");
    assert!(files <= before.1 + 2 * domains, "{files} {before:?}");
    assert_undisturbed(&program, &running.finish(), domains);
}

/// Attaches for longer and longer until a trace has enough: on a busy machine a program may not run for a while.
pub(crate) fn attach_until(
    trace: &Path,
    is_enough: impl Fn(&Trace) -> bool,
    mut attach: impl FnMut(&str) -> Output,
) -> (Output, Trace) {
    for time in ["50ms", "500ms", "5s", "30s"] {
        let output = attach(time);
        if said(&output).contains("nothing was recorded") {
            continue;
        }
        assert!(output.status.success(), "{output:?}");
        let trace = Trace::strict(trace);
        if is_enough(&trace) {
            return (output, trace);
        }
    }
    panic!("{} has too little after 30 seconds", trace.display());
}

/// Returns true if anything was sampled.
pub(crate) fn is_any(trace: &Trace) -> bool {
    !trace.allocations.is_empty()
}

/// A copy without symbols that are not needed.
fn stripped(program: &Path) -> PathBuf {
    let copy = program.with_extension("stripped");
    let unique = program.with_extension(format!("{:?}", thread::current().id()));
    let status = Command::new("strip")
        .arg("-o")
        .arg(&unique)
        .arg(program)
        .status();
    assert!(status.unwrap().success(), "strip {}", program.display());
    fs::rename(unique, &copy).unwrap();
    copy
}

#[test]
fn attaching_again_and_again_does_not_disturb_a_busy_program() {
    for compiler in compilers("attaching_again_and_again_does_not_disturb_a_busy_program") {
        attach_again_and_again(compiler, "steady", 1, Running::start);
    }
}

#[test]
fn attaching_again_and_again_does_not_disturb_domains() {
    for compiler in with_domains("attaching_again_and_again_does_not_disturb_domains") {
        attach_again_and_again(compiler, "ocaml5/steady_domains", 4, Running::start);
    }
}

#[test]
fn all_domains_are_recorded() {
    for compiler in with_domains("all_domains_are_recorded") {
        let program = compiler.program("ocaml5/steady_domains");
        let running = Running::start(&program, &[]);
        let trace = running.folder.path().join("trace.ctf");
        let options = ["--rate", "1e-3", "--force", "-o", trace.to_str().unwrap()];
        let has_all = |trace: &Trace| {
            let domains = trace.allocations.iter().map(|a| a.domain);
            domains.collect::<std::collections::BTreeSet<u16>>().len() == 4
        };
        attach_until(&trace, has_all, |period| {
            running.attach(&[&["--for", period], &options[..]].concat())
        });
        assert_undisturbed(&program, &running.finish(), 4);
    }
}

/// A program that waits for lines of input, which it answers.
struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Waiting {
    fn start(mut command: Command, how: &str) -> Self {
        let mut child = command
            .arg(how)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut waiting = Self { child, stdout };
        assert_eq!(waiting.answer(), "ready\n");
        waiting
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn ask(&mut self) -> f64 {
        writeln!(self.child.stdin.as_ref().unwrap(), "go").unwrap();
        let answer = self.answer();
        let words = answer.trim_end().strip_prefix("go 3000000 ");
        let words = words.unwrap_or_else(|| panic!("{answer}"));
        words.parse().unwrap()
    }
}

#[test]
fn a_program_that_waits_in_a_system_call_is_recorded_and_not_interrupted() {
    let test = "a_program_that_waits_in_a_system_call_is_recorded_and_not_interrupted";
    attach_in_system_calls(test, Command::new);
}

/// Waits until the main thread of a program waits in a system call: until it has slept, and used no time, for some looks in
/// a row.
fn wait_until_idle(pid: u32) {
    let stat = format!("/proc/{pid}/task/{pid}/stat");
    let mut before = Vec::new();
    let mut same = 0;
    heapline_testkit::wait("the program to wait in a system call", || {
        let stat = fs::read_to_string(&stat).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // The state, and the time in user and kernel mode.
        let now = [fields[0], fields[11], fields[12]]
            .map(str::to_owned)
            .to_vec();
        same = if now == before && now[0] == "S" {
            same + 1
        } else {
            0
        };
        before = now;
        same >= 10
    });
}

/// Returns true if a recording that still runs has sampled a block.
fn has_blocks(trace: &Path) -> bool {
    let output = heapline()
        .args(["summary", "--json"])
        .arg(trace)
        .output()
        .unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    summary["subject"]["sampled_blocks"].as_u64() > Some(0)
}

/// Programs in system calls begin to be recorded when these end.
pub(crate) fn attach_in_system_calls(test: &str, start: fn(PathBuf) -> Command) {
    for compiler in compilers(test) {
        for how in ["read", "select", "sleep", "thread"] {
            attach_in_system_call(compiler, how, start);
        }
    }
}

/// Attaches to a program that waits in a system call, and compares the words that it allocates meanwhile.
pub(crate) fn attach_in_system_call(compiler: &Compiler, how: &str, start: fn(PathBuf) -> Command) {
    let mut waiting = Waiting::start(start(compiler.program("waits")), how);
    // The sampler allocates, too, and the runtime counts that: only an answer before it tells the truth.
    let words = waiting.ask();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.ctf");
    wait_until_idle(waiting.child.id());
    let pid = waiting.child.id().to_string();
    let mut heapline = heapline()
        .args(["attach", &pid, "--rate", "1e-3", "--seed", "1", "-o"])
        .arg(&trace)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(heapline.stderr.take().unwrap());
    let mut lines = String::new();
    while !lines.contains("recording starts when the program next runs OCaml code") {
        assert!(stderr.read_line(&mut lines).unwrap() > 0, "{how}: {lines}");
    }
    waiting.ask();
    waiting.ask();
    // It waits again.
    wait_until_idle(waiting.child.id());
    let pid = heapline.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.unwrap().success());
    let what = format!("{how} (OCaml {})", compiler.version);
    assert!(heapline.wait().unwrap().success(), "{what}");
    let trace = Trace::strict(&trace);
    trace.assert_near(trace.heap_words(), 2.0 * words, &what);
    assert!(trace.context.unwrap().contains("attached"), "{what}");
    // It goes on as ever.
    waiting.ask();
    drop(waiting.child.stdin.take());
    assert_eq!(waiting.answer(), "end\n", "{what}");
    assert!(waiting.child.wait().unwrap().success(), "{what}");
}

#[test]
fn a_program_that_ends_while_it_is_recorded_has_a_whole_trace() {
    for compiler in compilers("a_program_that_ends_while_it_is_recorded_has_a_whole_trace") {
        let program = compiler.program("steady");
        let running = Running::start(&program, &[]);
        let trace = running.folder.path().join("trace.ctf");
        let heapline = heapline()
            .args(["attach", &running.pid().to_string(), "-o"])
            .arg(&trace)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        heapline_testkit::wait("the first sampled block", || has_blocks(&trace));
        let (output, _folder) = running.finish_in_folder();
        assert_undisturbed(&program, &output, 1);
        let output = heapline.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(said(&output).contains("blocks sampled"), "{output:?}");
        assert!(!Trace::strict(&trace).allocations.is_empty());
    }
}

#[test]
fn root_attaches_to_programs_of_other_users_and_in_other_mount_namespaces() {
    if !rustix::process::geteuid().is_root() {
        heapline_testkit::missing("root_attaches_to_programs_of_other_users: needs root");
        return;
    }
    for compiler in compilers("root_attaches_to_programs_of_other_users") {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = place.path().join("steady");
        heapline_testkit::copy_program(&compiler.program("steady"), &program);
        let mut other_user = Command::new(&program);
        other_user.uid(NOBODY).gid(NOBODY);
        let mut other_namespace = Command::new("unshare");
        other_namespace.args(["--mount", "--"]).arg(&program);
        for command in [other_user, other_namespace] {
            let running = Running::start_as(command, &[]);
            let trace = place.path().join("trace.ctf");
            let options = ["--rate", "1e-3", "--force", "-o", trace.to_str().unwrap()];
            attach_until(&trace, is_any, |period| {
                running.attach(&[&["--for", period], &options[..]].concat())
            });
            assert_undisturbed(&program, &running.finish(), 1);
        }
    }
}
