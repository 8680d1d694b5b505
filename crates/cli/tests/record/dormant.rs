//! Programs that wait for `heapline attach`: they run as if nothing had been, and can be recorded where
//! tracing them is not possible.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::attach::{
    Running, assert_undisturbed, attach_again_and_again, attach_in_system_calls, attach_until,
    is_any, listens, said,
};
use crate::killed::send;
use crate::run::{Ended, Program, heapline, shell_status};
use crate::toolchain::{Compiler, compilers, root, with_domains};
use crate::trace::Trace;

/// A user without rights.
const NOBODY: u32 = 65534;

#[test]
fn waiting_programs_are_recorded_again_and_again() {
    for compiler in compilers("waiting_programs_are_recorded_again_and_again") {
        attach_again_and_again(compiler, "steady", 1, Running::start_waiting);
    }
}

#[test]
fn waiting_domains_are_recorded_again_and_again() {
    for compiler in with_domains("waiting_domains_are_recorded_again_and_again") {
        let name = "ocaml5/steady_domains";
        attach_again_and_again(compiler, name, 4, Running::start_waiting);
    }
}

#[test]
fn waiting_programs_in_system_calls_are_recorded_and_not_interrupted() {
    let test = "waiting_programs_in_system_calls_are_recorded_and_not_interrupted";
    attach_in_system_calls(test, waiting);
}

/// A command that starts a program which waits.
pub(crate) fn waiting(program: PathBuf) -> Command {
    let mut command = heapline();
    command
        .args(["record", "--wait", "--quiet", "--"])
        .arg(program);
    command
}

/// Attaches for a moment, and returns what was said and the trace.
fn record(running: &Running) -> (Output, Trace) {
    let trace = running.folder.path().join("trace.ctf");
    let options = ["--rate", "1e-3", "--force", "-v", "-o"];
    attach_until(&trace, is_any, |period| {
        running.attach(&[&["--for", period], &options[..], &[trace.to_str().unwrap()]].concat())
    })
}

/// A program that starts others so that they cannot be traced.
fn launcher() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let launcher = folder.join("launch");
    let unique = folder.join(format!("launch.{:?}", thread::current().id()));
    let status = Command::new("cc")
        .arg("-o")
        .arg(&unique)
        .arg(root().join("tests/ocaml/launch.c"))
        .status();
    assert!(status.unwrap().success());
    fs::rename(unique, &launcher).unwrap();
    launcher
}

/// Starts a program in one of the ways of the launcher.
fn launch(launcher: &Path, how: &str, waits: bool, program: &Path) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let mut command = Command::new(launcher);
    command.arg(how).arg(&pid);
    if waits {
        let waiting = waiting(program.to_owned());
        command.arg(waiting.get_program()).args(waiting.get_args());
    } else {
        command.arg(program);
    }
    let mut running = Running::spawn(command, &[]);
    let pid = heapline_testkit::wait_for("the program's process id", || {
        let text = fs::read_to_string(&pid).unwrap_or_default();
        Some(text.strip_suffix('\n')?.parse().unwrap())
    });
    running.has_pid(pid);
    if waits {
        running.wait_for_listener();
    } else {
        running.wait_for_runtime();
    }
    running
}

#[test]
fn programs_that_cannot_be_traced_are_recorded_if_they_wait() {
    let launcher = launcher();
    for compiler in compilers("programs_that_cannot_be_traced_are_recorded_if_they_wait") {
        let program = compiler.program("steady");
        for (how, reason) in [
            ("traced", "is traced by process"),
            ("filtered", "runs under a seccomp filter"),
            ("deaf", "ignores SIGTRAP"),
        ] {
            let plain = launch(&launcher, how, false, &program);
            let refused = plain.attach(&[]);
            assert_eq!(refused.status.code(), Some(2), "{refused:?}");
            assert!(said(&refused).contains(reason), "{how}: {refused:?}");
            assert_undisturbed(&program, &plain.finish(), 1);

            let waits = launch(&launcher, how, true, &program);
            let (output, _) = record(&waits);
            assert!(
                said(&output).contains("the program was not stopped to attach"),
                "{how}: {output:?}"
            );
            assert_undisturbed(&program, &waits.finish(), 1);
        }
    }
}

#[test]
fn programs_that_allow_it_are_attached_to_under_a_filter() {
    let launcher = launcher();
    for compiler in compilers("programs_that_allow_it_are_attached_to_under_a_filter") {
        let program = compiler.program("steady");
        let running = launch(&launcher, "filtered", false, &program);
        let trace = running.folder.path().join("trace.ctf");
        let options = ["--allow-seccomp", "--force", "--rate", "1e-3", "-o"];
        attach_until(&trace, is_any, |period| {
            running.attach(&[&["--for", period], &options[..], &[trace.to_str().unwrap()]].concat())
        });
        assert_undisturbed(&program, &running.finish(), 1);
    }
}

/// A folder for all users, with heapline and its library.
struct Shared {
    folder: tempfile::TempDir,
    heapline: PathBuf,
    agent: PathBuf,
}

impl Shared {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let copy = |from: &Path, name: &str| {
            let to = folder.path().join(name);
            heapline_testkit::copy_program(from, &to);
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
            to
        };
        Self {
            heapline: copy(Path::new(env!("CARGO_BIN_EXE_heapline")), "heapline"),
            agent: copy(&agent(), "agent.so"),
            folder,
        }
    }

    /// Attaches as a user without rights.
    fn attach_as_nobody(&self, pid: u32, period: &str) -> Output {
        Command::new(&self.heapline)
            .args(["attach", &pid.to_string(), "--for", period])
            .args(["--rate", "1e-3", "--force", "-o"])
            .arg(self.folder.path().join("trace.ctf"))
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap()
    }
}

/// The library to preload.
fn agent() -> PathBuf {
    let output = heapline().args(["record", "--print-agent"]).output();
    let path = String::from_utf8(output.unwrap().stdout).unwrap();
    path.trim_end().into()
}

fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        heapline_testkit::missing(&format!("{test}: needs root"));
    }
    is_root
}

#[test]
fn users_record_their_own_protected_programs_and_no_others() {
    if !is_root("users_record_their_own_protected_programs_and_no_others") {
        return;
    }
    let shared = Shared::new();
    for compiler in compilers("users_record_their_own_protected_programs_and_no_others") {
        // Nobody may read it, so the system protects the process.
        let program = shared.folder.path().join("steady");
        let _ = fs::remove_file(&program);
        heapline_testkit::copy_program(&compiler.program("steady"), &program);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).unwrap();
        let mut command = Command::new(&program);
        command.uid(NOBODY).gid(NOBODY);
        let plain = Running::start_as(command, &[]);
        let refused = shared.attach_as_nobody(plain.pid(), "1s");
        assert!(said(&refused).contains("protects itself"), "{refused:?}");
        assert_undisturbed(&program, &plain.finish(), 1);

        let mut command = Command::new(&program);
        command
            .uid(NOBODY)
            .gid(NOBODY)
            .env("LD_PRELOAD", &shared.agent)
            .env("HEAPLINE_WAIT", "1");
        let waits = Running::spawn(command, &[]);
        waits.wait_for_listener();
        attach_until(&shared.folder.path().join("trace.ctf"), is_any, |period| {
            shared.attach_as_nobody(waits.pid(), period)
        });
        // Root may do so too.
        record(&waits);
        assert_undisturbed(&program, &waits.finish(), 1);

        let roots = Running::start_waiting(&compiler.program("steady"), &[]);
        let refused = shared.attach_as_nobody(roots.pid(), "1s");
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(
            said(&refused).contains("only the user of the program and root"),
            "{refused:?}"
        );
        assert!(roots.finish().status.success());
    }
}

/// Connects to a program that waits.
fn connect(pid: u32) -> UnixStream {
    let name = format!("heapline-agent.{pid}.0");
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
}

#[test]
fn hostile_clients_do_no_harm() {
    for compiler in compilers("hostile_clients_do_no_harm") {
        let program = compiler.program("steady");
        let running = Running::start_waiting(&program, &[]);
        let silent: Vec<UnixStream> = (0..3).map(|_| connect(running.pid())).collect();
        let large = vec![1; 1 << 20];
        let messages: [&[u8]; 7] = [
            b"",
            b"\x01",
            b"\x01\x09",
            b"\x01\x01rate=often\0",
            b"\x01\x01rate=1e-3\0trace=/nonexistent/folder/trace.ctf\0",
            b"GET / HTTP/1.1\r\n\r\n",
            &large,
        ];
        for message in messages {
            let mut stream = connect(running.pid());
            let _ = stream.write_all(message);
            let _ = stream.shutdown(Shutdown::Write);
            let mut reply = Vec::new();
            let _ = stream.read_to_end(&mut reply);
            assert!(reply.len() < 4096);
        }
        // The path that cannot be written may still be tried.
        let trace = running.folder.path().join("trace.ctf");
        heapline_testkit::wait("the program to take requests again", || {
            let options = ["--for", "10ms", "--force", "-o", trace.to_str().unwrap()];
            let output = running.attach(&options);
            !said(&output).contains("already")
        });
        record(&running);
        drop(silent);
        record(&running);
        assert_undisturbed(&program, &running.finish(), 1);
    }
}

#[test]
fn names_of_sockets_that_others_have_taken_are_ignored() {
    for compiler in compilers("names_of_sockets_that_others_have_taken_are_ignored") {
        let program = compiler.program("steady");
        let running = Running::start(&program, &[]);
        let name = format!("heapline-agent.{}.0", running.pid());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let _impostor = UnixListener::bind_addr(&address).unwrap();
        let (output, _) = record(&running);
        assert!(said(&output).contains("was stopped for"), "{output:?}");
        assert_undisturbed(&program, &running.finish(), 1);
    }
}

/// The C library handles signals 32 and 33 for itself once there is a thread.
fn without_internal_signals(stdout: &str) -> String {
    let lines = stdout.lines().map(|line| {
        let set = line
            .strip_prefix("SigIgn:\t")
            .or(line.strip_prefix("SigCgt:\t"));
        match set.map(|set| u64::from_str_radix(set, 16).unwrap()) {
            Some(set) => format!("{}{:016x}", &line[..8], set & !(3 << 31)),
            None => line.to_owned(),
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// Runs a program that waits, and as it is.
fn assert_same(compiler: &Compiler, name: &str, options: &[&str], adapt: fn(Ended) -> Ended) {
    let program = Program::new(compiler.program(name)).args(&["an argument"]);
    let (mut plain, _) = program.plain();
    plain.stdout = without_internal_signals(&plain.stdout);
    let mut words = vec!["record", "--wait"];
    words.extend(options);
    words.push("--");
    let waits = program.under(env!("CARGO_BIN_EXE_heapline"), &words);
    assert_eq!(adapt(waits), plain, "{name} (OCaml {})", compiler.version);
}

#[test]
fn waiting_programs_behave_as_by_themselves() {
    for compiler in compilers("waiting_programs_behave_as_by_themselves") {
        for name in [
            "exits",
            "signals",
            "streams",
            "descriptors",
            "fork",
            "exec",
            "exceptions",
            "threads",
            "memprof",
            "main_ends",
        ] {
            assert_same(compiler, name, &[], |ended| ended);
        }
        assert_same(compiler, "fork", &["--follow-fork"], |ended| ended);
        // There is one more thread, and nothing else.
        assert_same(compiler, "surroundings", &[], |mut ended| {
            let stdout = ended.stdout.replace("Threads:\t2", "Threads:\t1");
            ended.stdout = without_internal_signals(&stdout);
            ended
        });
    }
}

#[test]
fn programs_that_close_all_descriptors_still_wait() {
    for compiler in compilers("programs_that_close_all_descriptors_still_wait") {
        let program = compiler.program("closes");
        let plain = Running::start(&program, &[]).finish();
        let running = Running::start_waiting(&program, &[]);
        record(&running);
        let (descriptors, _) = running.resources();
        record(&running);
        // That of the last recording is closed when the next begins.
        assert!(running.resources().0 <= descriptors + 1);
        let output = running.finish();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, plain.stdout);
    }
}

#[test]
fn a_recording_that_was_left_running_is_ended_without_tracing() {
    for compiler in compilers("a_recording_that_was_left_running_is_ended_without_tracing") {
        let program = compiler.program("steady");
        let running = Running::start_waiting(&program, &[]);
        let trace = running.folder.path().join("trace.ctf");
        let mut first = heapline()
            .args(["attach", &running.pid().to_string(), "--quiet", "-o"])
            .arg(&trace)
            .spawn()
            .unwrap();
        heapline_testkit::wait("the recording to start", || {
            heapline_recorder::tail::path(&trace).exists()
        });
        let refused = running.attach(&[]);
        assert!(said(&refused).contains("heapline attach --detach"));
        first.kill().unwrap();
        first.wait().unwrap();
        let output = running.attach(&["--detach"]);
        assert!(output.status.success(), "{output:?}");
        let refused = running.attach(&["--detach"]);
        assert!(said(&refused).contains("is not recording process"));
        assert!(!Trace::strict(&trace).allocations.is_empty());
        record(&running);
        assert_undisturbed(&program, &running.finish(), 1);
    }
}

#[test]
fn only_the_program_itself_waits_unless_others_are_followed() {
    for compiler in compilers("only_the_program_itself_waits_unless_others_are_followed") {
        let program = compiler.program("daemon");
        for follows in [false, true] {
            let mut command = heapline();
            command.args(["record", "--wait", "--quiet"]);
            if follows {
                command.arg("--follow-fork");
            }
            let output = command.arg("--").arg(&program).output().unwrap();
            let daemon = String::from_utf8(output.stdout).unwrap();
            let daemon: u32 = daemon.trim().parse().unwrap();
            let waits = listens(daemon);
            send("-KILL", daemon);
            assert_eq!(waits, follows, "OCaml {}", compiler.version);
        }
    }
}

/// A shell is replaced by the program.
#[test]
fn programs_that_others_execute_wait_if_they_are_followed() {
    for compiler in compilers("programs_that_others_execute_wait_if_they_are_followed") {
        let program = compiler.program("steady");
        let mut command = heapline();
        command
            .args(["record", "--wait", "--follow-exec", "--quiet", "--"])
            .args(["sh", "-c", "exec \"$0\" \"$@\""])
            .arg(&program);
        let running = Running::spawn(command, &[]);
        running.wait_for_listener();
        record(&running);
        assert_undisturbed(&program, &running.finish(), 1);
    }
}

#[test]
fn programs_that_are_not_of_ocaml_do_not_wait() {
    let mut sleep = Command::new("sleep")
        .arg("1000")
        .env("LD_PRELOAD", agent())
        .env("HEAPLINE_WAIT", "1")
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", sleep.id());
    // It sleeps when it is loaded.
    heapline_testkit::wait("the process to be loaded", || {
        let status = fs::read_to_string(&status).unwrap();
        status.contains("Name:\tsleep\n") && status.contains("(sleeping)")
    });
    let threads = fs::read_to_string(&status).unwrap();
    assert!(threads.contains("Threads:\t1\n"), "{threads}");
    assert!(!listens(sleep.id()));
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

#[test]
fn options_of_recordings_are_refused_together_with_wait() {
    for options in [
        &["-o", "trace.ctf"][..],
        &["--rate", "1e-3"],
        &["--view"],
        &["--summary"],
        &["--memprof", "theirs"],
        &["--port", "80"],
    ] {
        let output = heapline()
            .args(["record", "--wait"])
            .args(options)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said(&output).contains("cannot be used with"), "{output:?}");
    }
}

#[test]
fn a_waiting_program_is_the_process_that_was_started() {
    for compiler in compilers("a_waiting_program_is_the_process_that_was_started") {
        let program = compiler.program("steady");
        let folder = tempfile::tempdir().unwrap();
        let mut child = heapline()
            .args(["record", "--wait", "--"])
            .arg(&program)
            .arg(folder.path().join("stop"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        heapline_testkit::wait("the program to listen", || listens(pid));
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        assert_eq!(executable, program.canonicalize().unwrap());
        send("-TERM", pid);
        let output = child.wait().unwrap();
        assert_eq!(shell_status(output), 128 + 15);
        let mut stderr = String::new();
        child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
        assert!(
            stderr.contains(&format!("heapline attach {pid}\n")),
            "{stderr}"
        );
    }
}
